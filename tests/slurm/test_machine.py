"""The cluster of the tests itself: it runs jobs as users, counts them, and ends with who asked for it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.slurm.cluster import Slurm, directory
from tests.machines.slurm.keeper import is_running, wait_for
from tests.machines.users import TestUser

ROOT = Path(__file__).parents[2]
CLIENT = """
import sys
from tests.machines.slurm.cluster import cluster
with cluster(sys.argv[1]) as running:
    print(running.keeper, flush=True)
    sys.stdin.readline()
"""


def test_a_job_runs_as_its_user_and_is_accounted_for(slurm: Slurm, member: TestUser) -> None:
    job = slurm.submit(member, "--account=physics", "--qos=high", "--partition=short", "--wrap=id -un; exit 3")
    shown = slurm.wait(job)
    assert (shown["JobState"], shown["ExitCode"], shown["Partition"], shown["QOS"]) == ("FAILED", "3:0", "short", "high")
    assert Path(shown["StdOut"]).read_text() == f"{member.name}\n"
    assert slurm.records(job, "JobID", "User", "Account", "State")[0] == [str(job), member.name, "physics", "FAILED"]


def test_a_job_can_be_cancelled(slurm: Slurm, member: TestUser) -> None:
    job = slurm.submit(member, "--wrap=sleep 600")
    wait_for(lambda: slurm.job(job)["JobState"] == "RUNNING", "start of the job")
    assert slurm.run(member, "scancel", str(job)).returncode == 0
    assert slurm.wait(job)["JobState"] == "CANCELLED"


def test_a_step_runs_and_its_output_comes_back(slurm: Slurm, member: TestUser) -> None:
    done = slurm.run(member, "srun", "--ntasks=3", "sh", "-c", "cat; id -un", input="in\n")
    assert sorted(done.stdout.split()) == sorted(["in", member.name] * 3), done.stderr


def test_a_user_without_an_association_cannot_submit(slurm: Slurm) -> None:
    with users.account() as stranger:
        done = slurm.run(stranger, "sbatch", "--wrap=true")
        assert done.returncode == 1
        assert "Invalid account" in done.stderr
        slurm.allow(stranger)
        assert slurm.run(stranger, "sbatch", "--wrap=true").returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--account=none"], "Invalid account"), (["--qos=none"], "Invalid qos"), (["--partition=short", "--time=61"], "time limit")],
)
def test_limits_are_enforced(slurm: Slurm, member: TestUser, words: list[str], said: str) -> None:
    done = slurm.run(member, "sbatch", *words, "--wrap=true")
    assert done.returncode == 1
    assert said in done.stderr


def test_the_default_places_are_the_clusters_only_in_its_own_mount_namespace(slurm: Slurm, member: TestUser) -> None:
    argv = slurm.at_default_places(member, member.home, ("sh", "-c", "pwd; id -un; cat /etc/slurm/slurm.conf; munge -n | unmunge >&2"))
    done = users.run_as(users.current_user(), argv)
    assert done.stdout == f"{member.home}\n{member.name}\n{(slurm.places.etc / 'slurm.conf').read_text()}"
    assert "Success" in done.stderr
    assert not Path("/etc/slurm/slurm.conf").exists() or Path("/etc/slurm/slurm.conf").read_text() not in done.stdout


def test_without_a_controller_nothing_is_submitted_and_with_it_again_it_is(own_slurm: Slurm, user: TestUser) -> None:
    own_slurm.allow(user)
    own_slurm.stop_controller()
    assert own_slurm.state() == ""
    refused = own_slurm.run(user, "sbatch", "--wrap=true")
    assert (refused.returncode, "Unable to contact slurm controller" in refused.stderr) == (1, True)
    own_slurm.start_controller()
    assert own_slurm.wait(own_slurm.submit(user, "--wrap=true"))["JobState"] == "COMPLETED"


@contextlib.contextmanager
def client(name: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another test process that wants the cluster `name`, and the pid of the keeper that it got."""
    argv = [sys.executable, "-c", CLIENT, name]
    with subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, int(process.stdout.readline())
        finally:
            process.kill()


def daemons(keeper: int) -> list[str]:
    """The identities of the keeper and of what it started."""
    return [users.identity(pid) for pid in users.processes() if pid == keeper or users.stat_fields(pid)[1] == str(keeper)]


def running(identities: list[str]) -> list[str]:
    return [one for one in identities if is_running(one)]


def test_processes_share_a_cluster_and_it_outlives_all_but_the_last_even_killed(slurm: Slurm) -> None:
    name = f"crash{os.getpid()}"
    with client(name) as (first, keeper), client(name) as (second, same):
        assert (same, len(daemons(keeper))) == (keeper, 6)
        started = daemons(keeper)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        with client(name) as (_, still):
            assert still == keeper
        os.kill(second.pid, signal.SIGKILL)
        wait_for(lambda: not running(started), "end of the cluster")
    assert not directory(name).exists()


def test_a_killed_keeper_takes_its_daemons_along_and_the_next_client_gets_a_new_one(slurm: Slurm) -> None:
    name = f"keeper{os.getpid()}"
    with client(name) as (_, keeper):
        started = daemons(keeper)
        assert len(running(started)) == 6
        os.kill(keeper, signal.SIGKILL)
        wait_for(lambda: not running(started), "end of the daemons")
        with client(name) as (_, another):
            assert another != keeper
    wait_for(lambda: not directory(name).exists(), "end of the cluster")
