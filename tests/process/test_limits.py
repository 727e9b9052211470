"""Each limit, measured inside; and the time limit, which ends everything."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.needs import need_root
from tests.process.shell import started, until
from tests.process.test_terminal import is_running

FORK = """
import os, sys, time
made = 0
try:
    for _ in range(60):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
except OSError:
    pass
print(made, flush=True)
os._exit(0)
"""


def limited(jail: Jail, limit: str, *command: str) -> tuple[int, str]:
    done = jail.run(*command, options=["--quiet", "--limit", limit])
    return done.code, done.out


@pytest.mark.parametrize(
    ("limit", "look", "expected"),
    [
        ("open_files=100", "ulimit -Hn; ulimit -Sn", "100\n100\n"),
        ("memory=500M", "ulimit -Hv; ulimit -Sv", "512000\n512000\n"),
        ("cpu_time=7", "ulimit -Ht; ulimit -St", "7\n7\n"),
        ("file_size=10M", "ulimit -Hf; ulimit -Sf", "10240\n10240\n"),
        ("core_size=0", "ulimit -Hc; ulimit -Sc", "0\n0\n"),
        ("processes=50", "ulimit -Hu; ulimit -Su", "50\n50\n"),
    ],
)
def test_the_kernel_holds_the_limit(jail: Jail, limit: str, look: str, expected: str) -> None:
    assert limited(jail, limit, "bash", "-c", look) == (0, expected)


def test_a_process_over_its_cpu_time_is_ended(jail: Jail) -> None:
    began = time.monotonic()
    code, _ = limited(jail, "cpu_time=1", "sh", "-c", "while :; do :; done")
    assert (code in (128 + signal.SIGXCPU, 128 + signal.SIGKILL), time.monotonic() - began < 15) == (True, True)


def test_a_file_over_its_size_is_cut(jail: Jail) -> None:
    code, _ = limited(jail, "file_size=100K", "sh", "-c", "head -c 1000000 /dev/zero >big")
    assert code != 0
    assert (jail.project / "big").stat().st_size == 100 * 1024


def test_more_memory_than_the_limit_is_refused(jail: Jail) -> None:
    use = ("/usr/bin/python3", "-c", "x = bytearray(300 << 20); print('had it')")
    assert jail.run(*use).out == "had it\n"
    code, out = limited(jail, "memory=200M", *use)
    assert (code, out) == (1, "")


def test_processes_are_counted_in_the_jail_alone(jail: Jail) -> None:
    """With many others of the same user around, and as many as the limit says inside."""
    need_root()
    others = [users.start_as(jail.user, ["/bin/sleep", "60"]) for _ in range(60)]
    try:
        code, out = limited(jail, "processes=30", "/usr/bin/python3", "-c", FORK)
    finally:
        for one in others:
            one.kill()
            one.wait()
    assert code == 0
    assert 20 <= int(out) < 30


@pytest.mark.parametrize("limit", ["open_files=1", "memory=1", "file_size=1", "processes=1", "cpu_time=1"])
def test_a_limit_too_small_for_anything_fails_in_words_or_works(jail: Jail, backend: str, limit: str) -> None:
    """Where our own process becomes the command, it is the command that the kernel ends, without a word."""
    done = jail.run("true", options=["--quiet", "--limit", limit], timeout=20)
    assert done.code != 1
    assert "Traceback" not in done.err
    ended_by_kernel = 128 + signal.SIGSEGV
    assert done.code == 0 or done.err or (backend != "bwrap" and (limit, done.code) == ("memory=1", ended_by_kernel))


def test_the_time_limit_ends_the_command_and_says_so(jail: Jail) -> None:
    began = time.monotonic()
    done = jail.run("sleep", "60", options=["--quiet", "--limit", "wall_time=1"])
    assert (done.code, done.err) == (124, "agent-sandbox: ended after 1 s (limits.wall_time)\n")
    assert time.monotonic() - began < 4


def test_a_command_within_its_time_keeps_its_code(jail: Jail) -> None:
    assert limited(jail, "wall_time=30", "sh", "-c", "exit 3") == (3, "")


def test_the_time_limit_ends_a_tree_that_refuses_to(jail: Jail) -> None:
    tree = """trap '' TERM HUP INT; (setsid sh -c "trap '' TERM; sleep 4323" &); setsid sleep 4324 & sleep 4325"""
    began = time.monotonic()
    done = jail.run("sh", "-c", tree, options=["--quiet", "--limit", "wall_time=1"])
    assert (done.code, 5 < time.monotonic() - began < 15) == (124, True)
    assert not [n for n in (4323, 4324, 4325) if is_running(f"sleep {n}")]


def test_the_command_is_asked_first(jail: Jail) -> None:
    script = 'trap "echo tidy; exit 0" TERM; sleep 60 & wait'
    done = jail.run("bash", "-c", script, options=["--quiet", "--limit", "wall_time=1"])
    assert (done.code, done.out) == (124, "tidy\n")


def test_stopping_the_launcher_does_not_stop_the_clock(jail: Jail) -> None:
    """The jail shares the launcher's process group: what stops that must not stop the guard, while others inside go on."""
    script = "setsid sh -c 'while :; do date +%s%N >beat; sleep 0.05; done' & echo running; sleep 60"
    with started(jail, "bash", "-c", script, options=["--limit", "wall_time=2"]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        assert until((jail.project / "beat").exists)
        os.killpg(process.pid, signal.SIGSTOP)
        assert until(lambda: users.state(process.pid) == "T")
        beat = (jail.project / "beat").read_text()
        assert until(lambda: (jail.project / "beat").read_text() != beat)  # the other one went on
        assert process.wait(20) == 124
