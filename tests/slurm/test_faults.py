"""Stubs, chaperon, controller, disk and directory fail under real submissions: what was acknowledged is kept, and nothing stays behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for
from tests.machines.users import TestUser
from tests.slurm.chaperons import alive
from tests.slurm.submitting import Session, session

ENDED, LOST = "the chaperon of this session has ended", "the chaperon ended before it answered"
AT_ONCE = 60  # seconds: for what takes no time on a machine that is not busy


@pytest.fixture
def top(project: Path, user: TestUser) -> Path:
    path = project / "session"
    path.mkdir()
    os.chown(path, user.uid, user.gid)
    script = path / "job.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    script.chmod(0o644)
    return path


@pytest.fixture
def name(slurm: Slurm, member: TestUser) -> Iterator[str]:
    """Of the jobs of one test, all of them held."""
    name = f"q{time.monotonic_ns()}"
    yield name
    slurm.run(member, "/usr/bin/scancel", f"--name={name}")


@pytest.fixture
def running(copy: Path, slurm: Slurm, member: TestUser, top: Path) -> Iterator[Session]:
    with session(copy, slurm, member, top) as started:
        assert started.call("sinfo").returncode == 0  # it has opened by now what it keeps open
        yield started


def submission(name: str) -> tuple[str, ...]:
    return "--hold", f"--job-name={name}", "job.sh"


def number(said: str) -> int:
    found = re.fullmatch(r"Submitted batch job (\d+)\n", said)
    assert found, said
    return int(found[1])


def test_a_stub_killed_at_any_step_loses_no_job_and_leaves_nothing(running: Session, name: str) -> None:
    files, outcomes = running.files(), []
    for step in range(1, 200):
        done = running.call_killed_at(step, "sbatch", *submission(name))
        outcomes.append(done.returncode)
        if done.returncode == 0:
            break
    assert outcomes == [-signal.SIGKILL] * (len(outcomes) - 1) + [0]
    assert len(outcomes) > 12  # it was killed everywhere: before, while and after it spoke
    running.settle()
    assert running.recorded() == running.queued(name)
    assert 1 < len(running.queued(name)) < len(outcomes)  # some died before they asked, some after
    assert number(running.call("sbatch", *submission(name)).stdout) in running.queued(name)
    wait_for(lambda: running.files() <= files, "closed lines", 90)


def test_when_the_chaperon_is_killed_stubs_say_so_at_once_and_nothing_acknowledged_is_lost(
    copy: Path, slurm: Slurm, member: TestUser, top: Path, running: Session, name: str
) -> None:  # fmt: skip
    acknowledged = [number(running.call("sbatch", *submission(name)).stdout) for _ in range(3)]
    os.kill(running.pid, signal.SIGSTOP)
    stubs = [running.start("squeue") for _ in range(10)]
    wait_for(lambda: len(running.left()) == 20, "stubs that wait")
    running.kill()
    said = [stub.communicate(timeout=AT_ONCE) for stub in stubs]
    assert [(stub.returncode, out) for stub, (out, _) in zip(stubs, said, strict=True)] == [(1, "")] * 10
    assert all(ENDED in err or LOST in err for _, err in said)
    assert ENDED in running.call("sbatch", *submission(name), timeout=AT_ONCE).stderr
    assert running.left() == []
    with session(copy, slurm, member, top) as later:
        shown = later.call("squeue", "--noheader", "--format=%i", f"--name={name}")
        assert sorted(map(int, shown.stdout.split())) == acknowledged == running.queued(name)


def test_a_job_that_was_submitted_while_the_chaperon_died_is_found_again(
    copy: Path, slurm: Slurm, member: TestUser, top: Path, name: str
) -> None:  # fmt: skip
    programs = top / "programs"
    programs.mkdir()
    (programs / "sbatch").write_text(f"#!/bin/sh\ncd '{top}'\n/usr/bin/sbatch \"$@\" > said\necho $PPID > parent\nsleep 60\n")
    (programs / "sbatch").chmod(0o755)
    os.chown(programs, member.uid, member.gid)
    with session(copy, slurm, member, top, programs=str(programs)) as first:
        stub = first.start("sbatch", *submission(name))
        wait_for(lambda: (top / "parent").exists(), "submission")
        first.kill()
        assert LOST in stub.communicate(timeout=AT_ONCE)[1]
        assert first.recorded() == []  # it could not be
    with session(copy, slurm, member, top) as later:
        shown = later.call("squeue", "--noheader", "--format=%i")
        assert [int(shown.stdout)] == later.queued(name) == [int((top / "said").read_text().partition(";")[0])]


def test_without_a_controller_slurm_says_so_and_afterwards_all_works(copy: Path, own_slurm: Slurm, user: TestUser, top: Path) -> None:
    own_slurm.allow(user)
    with session(copy, own_slurm, user, top) as running:
        before = number(running.call("sbatch", *submission("one")).stdout)
        own_slurm.stop_controller()
        asked = (("sbatch", *submission("two")), ("squeue",), ("sinfo",), ("scancel", str(before)))
        stubs = [running.start(*words) for words in asked]
        direct = own_slurm.run(user, "/usr/bin/sbatch", "--hold", "job.sh", cwd=top)
        through, *views = [(stub.communicate(timeout=60)[1], stub.returncode) for stub in stubs]
        assert direct.returncode and through == (direct.stderr, direct.returncode)  # Slurm's own words
        assert all(code and "slurm" in err for err, code in views), views
        own_slurm.start_controller()
        after = number(running.call("sbatch", *submission("three")).stdout)
        shown = running.call("squeue", "--noheader", "--format=%i %j")
        assert sorted(shown.stdout.splitlines()) == [f"{before} one", f"{after} three"]
        assert running.recorded() == [before, after]
        assert running.call("scancel", str(before), str(after)).returncode == 0
        running.settle()


@pytest.fixture
def small_disk(top: Path, user: TestUser) -> Iterator[Path]:
    """The state directory, on a disk that is soon full."""
    state = top / "state"
    state.mkdir()
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"size=256k,mode=700,uid={user.uid},gid={user.gid}", "none", str(state)], check=True)
    yield state
    subprocess.run(["/bin/umount", "--lazy", str(state)], check=True)


# The last page of the ledger's own file has to be filled too, with empty lines.
SUBMIT_AND_FILL = """#!/bin/sh
said=$(/usr/bin/sbatch "$@")
cat /dev/zero > '{disk}/filler' 2> /dev/null
for file in '{disk}'/ledger/*/*/*; do yes '' >> "$file" 2> /dev/null; done
echo "$said"
"""


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                pass
        except OSError:
            pass


def test_with_a_full_disk_nothing_is_submitted(copy: Path, slurm: Slurm, member: TestUser, top: Path, small_disk: Path, name: str) -> None:
    with session(copy, slurm, member, top) as running:
        first = number(running.call("sbatch", *submission(name)).stdout)  # control: there is room
        fill(small_disk)
        for _ in range(3):
            done = running.call("sbatch", *submission(name))
            assert (done.returncode, done.stdout) == (1, "")
            assert "nothing was submitted" in done.stderr and "No space left" in done.stderr
        assert running.queued(name) == running.recorded() == [first]
        assert running.call("squeue", "--noheader", "--format=%i").stdout == f"{first}\n"  # what needs no room works
        (small_disk / "filler").unlink()
        last = number(running.call("sbatch", *submission(name)).stdout)
        assert running.queued(name) == running.recorded() == [first, last]
        assert running.call("squeue", "--noheader", "--format=%i", "--sort=i").stdout == f"{first}\n{last}\n"


def test_a_disk_that_is_full_after_the_submission_loses_no_job(
    copy: Path, slurm: Slurm, member: TestUser, top: Path, small_disk: Path, name: str
) -> None:  # fmt: skip
    programs = top / "programs"
    programs.mkdir()
    for program in ("squeue", "sinfo", "scancel"):
        (programs / program).symlink_to(f"/usr/bin/{program}")
    (programs / "sbatch").write_text(SUBMIT_AND_FILL.format(disk=small_disk))
    (programs / "sbatch").chmod(0o755)
    with session(copy, slurm, member, top, programs=str(programs)) as running:
        acknowledged = number(running.call("sbatch", *submission(name)).stdout)
        assert running.recorded() == []  # the control: there was no room for it
        assert running.queued(name) == [acknowledged]
        (small_disk / "filler").unlink()
        wait_for(lambda: running.call("squeue", "--noheader", "--format=%i").stdout == f"{acknowledged}\n", "the job in the view")
        assert running.recorded() == [acknowledged]


def test_a_stub_whose_line_was_removed_before_it_was_opened_says_so(running: Session, name: str) -> None:
    first = number(running.call("sbatch", *submission(name)).stdout)
    os.kill(running.pid, signal.SIGSTOP)
    stub = running.start("sbatch", *submission(name))
    wait_for(lambda: len(running.left()) == 2, "a stub that waits")
    shutil.rmtree(running.fifos)
    os.kill(running.pid, signal.SIGCONT)
    assert ENDED in stub.communicate(timeout=AT_ONCE)[1]
    assert running.recorded() == running.queued(name) == [first]


def test_without_the_directory_stubs_say_so_and_those_inside_are_answered(running: Session, name: str) -> None:
    first = number(running.call("sbatch", *submission(name)).stdout)
    stubs = [running.start("sbatch", *submission(name)) for _ in range(5)]
    wait_for(lambda: len(running.recorded()) > 1, "a submission")
    shutil.rmtree(running.fifos)
    said = [stub.communicate(timeout=AT_ONCE) for stub in stubs]
    acknowledged = [number(out) for out, _ in said if out]
    assert all(out or err.startswith("sbatch: error: the chaperon") for out, err in said), said
    assert ENDED in running.call("squeue", timeout=AT_ONCE).stderr
    wait_for(lambda: not running.children(), "end of the programs")
    assert {first, *acknowledged} <= set(running.recorded())
    assert running.recorded() == running.queued(name)
    assert alive(running.pid)
    running.guard.send_signal(signal.SIGTERM)
    wait_for(lambda: not alive(running.pid), "end of the chaperon")


def test_500_stubs_at_once_are_all_submitted_in_bounded_memory(running: Session, name: str) -> None:
    before, files = running.memory(), running.files()
    argv = "for i in $(seq 500); do \"$@\" & done; wait"
    done = users.run_as(running.user, ["/bin/sh", "-c", argv, "sh", running.stub("sbatch"), *submission(name)], cwd=running.top, timeout=300)
    acknowledged = sorted(int(word) for word in re.findall(r"Submitted batch job (\d+)", done.stdout))
    assert (len(set(acknowledged)), done.stderr) == (500, "")
    assert running.recorded() == running.queued(name) == acknowledged
    assert running.memory() - before < 64_000
    running.settle()
    wait_for(lambda: running.files() <= files, "closed lines", 90)
