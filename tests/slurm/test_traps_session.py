"""What lies between a jail and its chaperon, attacked from inside: FIFOs, the records outside, and jobs that run again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.inside import python
from tests.machines import users
from tests.slurm.attacks import IN_A_JAIL, SECRET, Range, drive
from tests.slurm.conftest import Site

BACKENDS = ("bwrap", "landlock", "firejail")
HOMES = [*[(backend, "tmpwrite") for backend in BACKENDS], ("bwrap", "write"), ("firejail", "write")]  # Landlock names its gap, and does not start
PRECIOUS = "precious\n"
FIFOS = r"""
import glob, json, os, subprocess, sys, time
home, project = sys.argv[1:]
own = os.environ.get("AGENT_SANDBOX_OWN")
(place,) = [f"{os.path.dirname(own)}/slurm"] if own else glob.glob("/tmp/agent-sandbox-*/slurm") or ["/run/agent-sandbox/slurm"]
os.chdir(place)
ask = os.open("ask", os.O_WRONLY | os.O_NONBLOCK)

def request(*words):
    frames = [(b"N", b"squeue"), (b"A", b"".join(word + b"\0" for word in words)), (b"D", b"/"), (b"B", b""), (b"U", b"\0\x12"), (b"E", b"")]
    body = b"".join(kind + len(text).to_bytes(4, "big") + text for kind, text in frames)
    return b"V\0\0\0\x06\0\x01" + len(body).to_bytes(4, "big") + body

def announce(name):
    for attempt in range(100):
        try:
            os.write(ask, b"\nchaperon/1 " + name.encode() + b"\n")
            break
        except BlockingIOError:
            pass
        finally:
            time.sleep(0.1)

def fifo(name, text=b""):
    os.mkfifo(name, 0o600)
    handle = os.open(name, os.O_RDWR | os.O_NONBLOCK)
    os.write(handle, text)
    return handle

def garbage():
    lines = b"\nchaperon/1 ../../" + b"x" * 40 + b"\n", b"\nchaperon/2 " + b"0" * 32 + b"\n"
    for piece in (os.urandom(65536).replace(b"\n", b""), b"\n" * 4096, b"chaperon/1 " * 5000, *lines):
        try:
            os.write(ask, piece)
        except BlockingIOError:
            time.sleep(0.2)

def swapped(number, make_in, make_out):
    name = f"{number:032x}"
    make_in(f"{name}.in")
    make_out(f"{name}.out")
    announce(name)

said = lambda path: fifo(path, request(b"--version"))
targets = [f"{home}/.bashrc", f"{home}/.ssh/id_ed25519", f"{home}/new", "/proc/self/fd/0", f"{home}/.local/state/agent-sandbox"]
garbage()
for number, target in enumerate(targets):
    swapped(number, said, lambda path: os.symlink(target, path))
    swapped(number + 100, lambda path: os.symlink(target, path), fifo)
    swapped(number + 200, said, lambda path: os.symlink("../" * 9 + target.lstrip("/"), path))
swapped(300, said, lambda path: open(path, "w").write("x"))
swapped(301, lambda path: open(path, "wb").write(request(b"--version")), fifo)
swapped(302, said, os.mkdir)
fifo("one")
swapped(303, said, lambda path: os.link("one", path))
os.rename("ask", "kept")
os.symlink(f"{home}/.bashrc", "ask")
time.sleep(0.2)
os.unlink("ask")
os.rename("kept", "ask")
os.symlink(f"{home}/precious", "directory")
os.makedirs("a/b")
os.chmod("a/b", 0)
garbage()
heard = fifo(f"{400:032x}.out")
swapped(400, said, lambda path: None)
time.sleep(0.5)
print(json.dumps([os.read(heard, 4096)[5:10].decode(), subprocess.run(["squeue", "-h"], capture_output=True, text=True, timeout=20).returncode]))
"""
REACH = """
cat "$STATE"/jobs/*/*.env "$STATE"/ledger/*/*/* "$STATE"/audit/* 2>&1 | tr '\\0' '\\n'
ls -R "$STATE" | grep -c .; find "$STATE" -type f 2>/dev/null | wc -l
for p in "$STATE" "$STATE"/jobs "$STATE"/ledger "$STATE"/projects; do (echo planted > "$p/planted") 2>/dev/null; ln -s /x "$p/link" 2>/dev/null; done
mv "$STATE" "$STATE.old" 2>/dev/null; rm -rf "$STATE"/jobs "$STATE"/ledger 2>/dev/null
"""
AGAIN = """#!/bin/bash
bash "$S"; cat "$P/reports/$SLURM_JOB_ID" > "$P/reports/run-$SLURM_RESTART_COUNT"
test -n "$SLURM_RESTART_COUNT" || sleep 100
"""
REQUEUE = """
until_there() { for i in $(seq 200); do test -e "$1" && return; sleep 0.1; done; return 1; }
J=$(sbatch --parsable --requeue again.sh); until_there reports/run- || exit 3
scontrol requeue $J || exit 4
for i in $(seq 40); do scontrol update JobId=$J StartTime=now+2 && break; sleep 0.1; done  # by itself it would wait for two minutes
until_there reports/run-1 || exit 5
sbatch --array=0-3 "$S"
"""


@pytest.fixture
def project(user: users.TestUser) -> Iterator[Path]:
    path = user.home / "project"
    path.mkdir()
    os.chown(path, user.uid, user.gid)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def place(site: Site) -> Range:
    made = Range(site=site)
    made.prepare()
    return made


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_no_file_outside_is_touched_by_way_of_a_fifo(place: Range) -> None:
    jail, home = place.site.jail, place.site.jail.user.home
    kept = {jail.write(home / name, PRECIOUS): PRECIOUS for name in (".bashrc", "precious/file")}
    done = place.site.inside(*python(FIFOS, str(home), str(place.project)), options=())
    assert (done.code, json.loads(done.out or "null")) == (0, ["slurm", 0]), done.err  # a request of the same making is answered
    assert {path: path.read_text() for path in kept} == kept
    assert not (home / "new").exists()
    assert place.key.read_text() == f"{SECRET}\n"
    assert [path for path in Path("/tmp").glob("agent-sandbox-*/slurm") if path.stat().st_uid == jail.user.uid] == []  # all of it is gone


@pytest.mark.parametrize(("backend", "home"), HOMES, indirect=["backend"])
def test_ledger_logs_and_variables_are_out_of_reach_from_a_session_and_from_its_jobs(place: Range, home: str) -> None:
    jail = place.site.jail
    jail.configure(f'[slurm]\nenabled = "on"\n[filesystem]\nhome = "{home}"\n')
    state = jail.user.home / ".local/state/agent-sandbox"
    jail.write(place.project / "reach.sh", f"#!/bin/bash\n{REACH}")
    values = {"STATE": str(state), "MY_SETTING": SECRET[::-1], "P": str(place.project), "S": str(place.project / "s.sh")}
    lines = ["sbatch -o said reach.sh", "bash reach.sh > said-here 2>&1", 'sbatch "$S"']
    before = drive(place.site, [(line, place.project, values) for line in lines], jailed=True)
    place.settle()
    assert [one.code for one in before[::2]] == [0, 0], before
    for said in ((place.project / "said").read_text(), (place.project / "said-here").read_text()):
        assert SECRET[::-1] not in said and "intent" not in said and said.splitlines()[-1] == "0", said
    names = {path.name for path in state.rglob("*")}
    assert not names & {"planted", "link"} and len(list(state.glob("jobs/*/*.log"))) == 2 and list(state.glob("ledger/*/*/*"))
    outside = place.site.outside("bash", place.project / "reach.sh", env={"STATE": str(state)}).out
    assert SECRET[::-1] in outside and "intent" in outside  # the control: outside all of it is there, and can be changed
    assert not state.exists()


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_a_job_that_runs_again_and_every_task_of_an_array_are_jailed(place: Range) -> None:
    place.site.jail.write(place.project / "again.sh", AGAIN)
    (done,) = drive(place.site, [(REQUEUE, place.project, {"P": str(place.project), "S": str(place.project / "s.sh")})], jailed=True)
    assert done.code == 0, done
    place.settle()
    reports = {path.name: path.read_text().partition("\n")[0] for path in (place.project / "reports").iterdir()}
    assert set(reports.values()) == {IN_A_JAIL}
    assert {"run-", "run-1"} < reports.keys() and len(reports) == 2 + 1 + 4
    assert SECRET not in place.everything_written()
    assert list(place.outside.iterdir()) == []
