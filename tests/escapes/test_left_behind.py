"""A launch leaves its audit line and nothing else, however it ends; and what it removes is its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.escapes.backends import only, stopped
from tests.machines import users
from tests.machines.jail import Jail

FAMILY = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("grandchild", "w").write("x")
        time.sleep(300)
    os._exit(0)
os.wait()
while not os.path.exists("grandchild"):
    time.sleep(0.01)
print("ready", flush=True)
"""
STAY = "time.sleep(300)"


def processes_of(user: users.TestUser) -> list[int]:
    return [pid for pid in users.processes() if users.owner(pid) == user.uid and users.state(pid) != "Z"]


def session_directories(user: users.TestUser) -> list[Path]:
    bases = (Path(f"/tmp/agent-sandbox-{user.uid}"), Path(f"/run/user/{user.uid}/agent-sandbox"))
    return [entry for base in bases if base.exists() for entry in (base, *base.iterdir())]


def gone(user: users.TestUser, patience: float = 5) -> tuple[list[int], list[Path]]:
    """What is still there of the user's once nothing changes any more."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        left = processes_of(user), session_directories(user)
        if left == ([], []):
            break
        time.sleep(0.02)
    return left


def start_family(jail: Jail, *options: str) -> subprocess.Popen[str]:
    process = jail.start("/usr/bin/python3", "-c", FAMILY + STAY, options=["--quiet", *options], stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == "ready\n"
    assert (jail.project / "grandchild").exists()
    assert len(processes_of(jail.user)) >= 5  # launcher, guard, bwrap twice or the supervisor, the command and its grandchild
    return process


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_all_processes_and_the_session_end_with_the_launcher(jail: Jail, home: Path, number: int) -> None:
    process = start_family(jail)
    assert session_directories(jail.user)
    os.kill(process.pid, number)
    process.wait(20)
    assert gone(jail.user) == ([], [])


def test_all_processes_and_the_session_end_with_the_guard(jail: Jail, home: Path) -> None:
    process = start_family(jail)
    guard = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
    os.kill(guard, signal.SIGKILL)
    process.wait(20)
    assert gone(jail.user) == ([], [])


def test_a_double_forked_child_ends_with_the_command(jail: Jail, home: Path) -> None:
    assert jail.run("/usr/bin/python3", "-c", FAMILY).out == "ready\n"
    assert (jail.project / "grandchild").exists()
    assert gone(jail.user) == ([], [])


def test_nothing_is_left_in_project_home_and_tmp(jail: Jail, backend: str, home: Path) -> None:
    """Neither placeholders of absent protected files, nor mount points, nor temporary files. (/dev/shm is the host's on Landlock: `ipc`.)"""
    jail.write(jail.project / ".git/config", "")
    jail.write(home / ".bashrc", "")
    before = listing(jail)
    places = ["/tmp", "/var/tmp", *(["/dev/shm"] if backend == "bwrap" else ["~", "$TMPDIR"])]
    for mode in ("restricted", "tmpwrite", "read"):
        write = "; ".join(f"echo x > {place}/left" for place in places)
        inside = jail.run("sh", "-c", f"{write}; echo ran", options=["--quiet", "--home", mode])
        assert inside.out == "ran\n"
    after = listing(jail)
    assert {path for path in after - before if ".local" not in path} == set()
    state = home / ".local/state/agent-sandbox"
    tried = ["bwrap"] if backend == "bwrap" else []  # Landlock is asked of the kernel at every start
    assert sorted(path.name for path in state.iterdir()) == ["audit", *(["tried"] if tried else [])]  # the log, and which backends ran here
    assert [path.name for path in (state / "tried").rglob("*") if path.is_file()] == tried


def listing(jail: Jail) -> set[str]:
    own = [str(path) for path in jail.user.home.rglob("*")]
    public = [str(path) for top in ("/tmp", "/var/tmp", "/dev/shm") for path in Path(top).iterdir() if _owner(path) == jail.user.uid]
    return {*own, *public}


def _owner(path: Path) -> int:
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return -1


def test_no_mount_is_seen_outside(jail: Jail) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    process = jail.start("sh", "-c", "echo ready; sleep 100", stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == "ready\n"
    assert Path("/proc/self/mountinfo").read_text() == before
    process.terminate()
    process.wait(10)


@only("bwrap")
def test_two_jails_in_one_project_do_not_fight_over_what_they_hold(jail: Jail, home: Path) -> None:
    jail.write(jail.project / ".git/config", "[core]\n")
    jail.write(jail.project / "hidden", "hunter2\n")
    options = ["--quiet", "--hide", str(jail.project / "hidden")]
    first = jail.start(
        "sh", "-c", "echo ready; read go; cat hidden; echo x >> .git/config; echo done", options=options, stdin=-1, stdout=-1, stderr=-1
    )
    assert first.stdout and first.stdout.readline() == "ready\n"
    assert jail.run("cat", "hidden", options=options).out == ""
    out, err = first.communicate("go\n", timeout=20)
    assert out == "done\n"
    assert "Read-only file system" in err
    assert (jail.project / "hidden").read_text() == "hunter2\n"


@pytest.mark.parametrize("mode", ["tmpwrite", "write"])
def test_state_is_out_of_reach_in_a_projects_first_session(jail: Jail, backend: str, home: Path, mode: str) -> None:
    """The log as a link to a start-up file would be run at the next log-in."""
    jail.write(home / ".bashrc", "# mine\n")
    state = home / ".local/state/agent-sandbox"
    assert not state.exists()
    plant = f"mkdir -p {state}/audit; ln -s ~/.bashrc {state}/audit/$(date -u +%F).$(hostname).jsonl"
    script = f"ls {state}; rm -rf {state}; {plant}; echo ran"
    inside = jail.run("sh", "-c", script, options=["--quiet", "--home", mode])
    assert stopped(inside, "hidden") if (backend, mode) == ("landlock", "write") else inside.out.endswith("ran\n")
    assert [path for path in (state / "audit").iterdir() if path.is_symlink()] == []
    assert jail.run("true").code == 0
    assert (home / ".bashrc").read_text() == "# mine\n"


PLANT = """
cd /tmp/agent-sandbox-$(id -u) || exit 5
ln -s {precious} planted; mkdir -p dead/sub; ln -s {precious} dead/sub/link
for d in [0-9]*-*; do mv $d aside; ln -s {precious} $d; done
echo ran
"""


@pytest.mark.parametrize("how", ["private_tmp", "project"])
def test_clearing_up_never_follows_a_link_out_of_the_runtime_directory(jail: Jail, home: Path, how: str) -> None:
    """Where a jail is given the real /tmp it may reach the runtime directory: what it plants there must delete nothing."""
    precious = jail.write(home / "precious/sub/file", "mine\n").parents[1]
    options = ["--quiet", "--project-dir", "/tmp"]
    if how == "private_tmp":
        jail.configure("[filesystem]\nprivate_tmp = false\n")
        options = ["--quiet"]
    try:
        jail.run("sh", "-c", PLANT.format(precious=precious), options=options)
        jail.run("true")  # the next launch sweeps what dead sessions left
        assert (precious / "sub/file").read_text() == "mine\n"
    finally:
        subprocess.run(["rm", "-rf", f"/tmp/agent-sandbox-{jail.user.uid}"], check=True)


@only("landlock")
def test_with_the_real_tmp_nothing_starts_that_could_reach_the_runtime_directory(jail: Jail, home: Path) -> None:
    jail.configure("[filesystem]\nprivate_tmp = false\n")
    assert stopped(jail.run("echo", "ran"), "hidden", "self-protection")


@only("bwrap")
def test_a_jail_with_the_real_tmp_does_not_reach_the_runtime_directory(jail: Jail, home: Path) -> None:
    jail.configure("[filesystem]\nprivate_tmp = false\n")
    base = Path(f"/tmp/agent-sandbox-{jail.user.uid}")
    rename = f"import os; os.rename('{base}', '{base}x')"  # `mv` would make a copy
    inside = jail.run("sh", "-c", f'ls /tmp >/dev/null && echo ran; ls {base}/*; /usr/bin/python3 -c "{rename}"')
    assert inside.out == "ran\n"
    assert "busy" in inside.err and not Path(f"{base}x").exists()
    assert gone(jail.user) == ([], [])
