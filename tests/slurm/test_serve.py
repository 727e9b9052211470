"""Stub, FIFOs, loop and a real Slurm: what the stub says is what Slurm said, from inside every jail, and nothing submitted is lost."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for
from tests.machines.users import TestUser
from tests.slurm.chaperons import alive, call, chaperon

SCRIPT = "#!/bin/sh\ntrue\n"


@pytest.fixture
def top(project: Path) -> Path:
    return project / "session"


@pytest.fixture
def running(copy: Path, slurm: Slurm, member: TestUser, top: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with chaperon(copy, slurm, member, top) as pair:
        yield pair


@pytest.fixture
def script(running: object, project: Path) -> Path:
    path = project / "job.sh"
    path.write_text(SCRIPT)
    path.chmod(0o644)
    return path


def test_a_stub_says_what_slurm_says(slurm: Slurm, member: TestUser, running: object, top: Path) -> None:
    asked = (("sinfo", "--noheader", "--format=%P %l"), ("squeue", "--me"), ("squeue", "--nonsense"), ("squeue", "--format=%i %j", "--jobs=999999"))
    for name, *words in asked:
        direct = slurm.run(member, name, *words)
        through = call(member, top, name, *words)
        assert (through.returncode, through.stdout, through.stderr) == (direct.returncode, direct.stdout, direct.stderr), name


def test_a_command_that_is_not_for_a_jail_is_refused_in_words(member: TestUser, running: object, top: Path) -> None:
    done = call(member, top, "strigger", "--set")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("strigger: error: ")


def test_a_job_is_submitted_and_recorded(slurm: Slurm, member: TestUser, running: object, top: Path, script: Path) -> None:
    done = call(member, top, "sbatch", script.name, cwd=script.parent)
    assert done.returncode == 0, done.stderr
    assert slurm.job(int(done.stdout))["UserId"] == f"{member.name}({member.uid})"
    assert (top / "ledger").read_text() == done.stdout


def test_a_stub_that_is_killed_at_any_moment_loses_no_job(slurm: Slurm, member: TestUser, running: object, top: Path, script: Path) -> None:
    """Whatever Slurm took is in the ledger, wherever the stub was."""
    name = f"q{time.monotonic_ns()}"
    script.write_text(f"#!/bin/sh\n#SBATCH --job-name={name} --hold\ntrue\n")
    for step in range(24):
        stub = users.start_as(member, [top / "bin" / "sbatch", script.name], cwd=script.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(step * 0.001)
        stub.kill()
        stub.communicate()
    time.sleep(1)
    taken = slurm.run(member, "squeue", "--me", "--noheader", "--format=%i", f"--name={name}").stdout.split()
    written = (top / "ledger").read_text().split() if (top / "ledger").exists() else []
    slurm.run(member, "scancel", f"--name={name}")
    assert sorted(written) == sorted(taken)
    assert taken


def test_twenty_at_once_are_all_submitted(slurm: Slurm, member: TestUser, running: object, top: Path, script: Path) -> None:
    stubs = [
        users.start_as(member, [top / "bin" / "sbatch", script.name], cwd=script.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(20)
    ]
    said = [stub.communicate(timeout=60)[0].strip() for stub in stubs]
    assert sorted(said) == sorted((top / "ledger").read_text().split())
    assert len(set(said)) == 20


def test_without_a_controller_slurms_own_words_come_through(copy: Path, own_slurm: Slurm, user: TestUser, top: Path) -> None:
    with chaperon(copy, own_slurm, user, top):
        own_slurm.stop_controller()
        direct = own_slurm.run(user, "squeue")
        through = call(user, top, "squeue")
        assert (through.returncode, through.stderr) == (direct.returncode, direct.stderr)
        assert "Unable to contact slurm controller" in through.stderr
        own_slurm.start_controller()
        assert call(user, top, "squeue").returncode == 0


def test_it_dies_with_its_guard_and_stubs_say_so(member: TestUser, running: tuple[subprocess.Popen[str], int], top: Path) -> None:
    guard, pid = running
    assert call(member, top, "sinfo").returncode == 0
    assert alive(pid)
    guard.send_signal(signal.SIGKILL)
    wait_for(lambda: not alive(pid), "end of the chaperon")
    assert "the chaperon of this session has ended" in call(member, top, "sinfo").stderr


def test_it_holds_nothing_of_who_started_it(running: tuple[subprocess.Popen[str], int]) -> None:
    _, pid = running
    wait_for(lambda: Path(f"/proc/{pid}/cwd").readlink() == Path("/"), "start of the chaperon")
    files = {int(path.name): str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
    assert [files[number] for number in range(3)] == ["/dev/null"] * 3
    assert users.stat_fields(pid)[3] == str(pid)  # a session of its own


@pytest.mark.parametrize("backend", ["bwrap", "landlock", "firejail"], indirect=True)
def test_it_is_reached_from_inside_every_jail(slurm: Slurm, jail: Jail, member: TestUser, running: object, top: Path, script: Path) -> None:
    real = jail.run("sh", "-c", "/usr/bin/squeue --me")
    assert real.code != 0  # Slurm itself is out of reach there
    asked = ("--noheader", "--format=%P %l")  # the rest changes with what runs
    inside = jail.run(top / "bin" / "sinfo", *asked)
    assert (inside.code, inside.out) == (0, slurm.run(member, "sinfo", *asked).stdout), inside.err
    submitted = jail.run(top / "bin" / "sbatch", script.name, cwd=script.parent)
    assert submitted.code == 0, submitted.err
    assert slurm.job(int(submitted.out))["UserId"] == f"{member.name}({member.uid})"
