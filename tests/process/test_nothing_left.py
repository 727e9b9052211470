"""After a launch, however it ended, nothing is there that was not there before: but for audit lines."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.jail import Jail
from tests.process.shell import alive, generations, send, started, until

SOAK = os.environ.get("SANDBOX_SOAK") == "1"
AT_ONCE, IN_A_ROW, KILLS = (50, 200, 400) if SOAK else (20, 30, 40)
TREE = "(setsid sh -c 'sleep 4330; sleep 4330' &); sleep 4331 & echo running; wait"


def left(jail: Jail) -> list[str]:
    """What a launch of this user could have left: runtime directories, state, processes, mounts."""
    uid, name = jail.user.uid, jail.user.name
    runtime = [Path(f"/tmp/agent-sandbox-{uid}"), Path(f"/run/user/{uid}/agent-sandbox")]
    state = jail.user.home / ".local" / "state" / "agent-sandbox"
    found = [str(path) for base in runtime if base.exists() for path in (base, *base.rglob("*"))]
    kept = {state / "tried" / os.uname().nodename / name for name in ("bwrap", "firejail")}  # which backends ran here
    found += [str(path) for path in state.rglob("*") if path.is_file() and path.parent.name != "audit" and path not in kept]
    found += [f"{pid} {line}" for pid, line in alive(uid) if is_jail(line)]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    return found


def is_jail(line: str) -> bool:
    return any(word in line for word in ("bin/agent-sandbox", "bwrap", "sleep 4330", "sleep 4331"))


def temporary(uid: int) -> set[str]:
    return {entry.path for entry in os.scandir("/tmp") if entry.stat(follow_symlinks=False).st_uid == uid}


@contextlib.contextmanager
def running(jail: Jail) -> Iterator[subprocess.Popen[str]]:
    with started(jail, "sh", "-c", TREE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        yield process


def only_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.fixture(autouse=True)
def clean(jail: Jail) -> None:
    """A user's number is used again, and an earlier run may have been killed: a launch sweeps what that left."""
    assert jail.run("true").code == 0
    assert until(lambda: not left(jail)), left(jail)


@pytest.mark.soak
def test_launches_at_once_all_succeed_and_leave_nothing(jail: Jail) -> None:
    before = temporary(jail.user.uid)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda number: jail.run("sh", "-c", f"echo {number}; exit {number}", timeout=120), range(AT_ONCE)))
    assert [(one.code, one.out, one.err) for one in done] == [(number, f"{number}\n", "") for number in range(AT_ONCE)]
    assert left(jail) == []
    assert temporary(jail.user.uid) == before


@pytest.mark.soak
def test_launches_in_a_row_all_succeed_and_leave_nothing(jail: Jail) -> None:
    before = temporary(jail.user.uid)
    assert [jail.run("true").code for _ in range(IN_A_ROW)] == [0] * IN_A_ROW
    assert left(jail) == []
    assert temporary(jail.user.uid) == before


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_launcher_that_is_ended_at_any_moment_leaves_nothing(jail: Jail, number: signal.Signals) -> None:
    before = temporary(jail.user.uid)
    moments = random.Random(7)
    for _ in range(KILLS):
        with started(jail, "sh", "-c", TREE) as process:
            time.sleep(moments.uniform(0, 0.08))
            process.send_signal(number)
            assert process.wait(15) in (-number, 128 + number)
    assert until(lambda: not left(jail)), left(jail)
    assert temporary(jail.user.uid) == before


@pytest.mark.soak
def test_a_launcher_killed_at_the_end_of_its_command_leaves_nothing(jail: Jail) -> None:
    moments = random.Random(8)
    for _ in range(KILLS // 2):
        with started(jail, "true") as process:
            time.sleep(moments.uniform(0.02, 0.06))
            process.kill()
    assert until(lambda: not left(jail)), left(jail)


def test_kill_9_of_the_launcher_ends_a_tree_with_detached_children(jail: Jail) -> None:
    with running(jail) as process:
        assert "sleep 4330" in " ".join(line for _, line in alive(jail.user.uid))
        process.kill()
        assert process.wait(10) == -signal.SIGKILL
        assert until(lambda: not left(jail), 5), left(jail)


def test_kill_9_of_the_whole_group_leaves_nothing(jail: Jail) -> None:
    with running(jail) as process:
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
        assert until(lambda: not left(jail), 5), left(jail)


def test_a_command_that_kills_its_whole_group_leaves_nothing(jail: Jail) -> None:
    with started(jail, "sh", "-c", "(setsid sleep 4330 &); sleep 0.1; kill -KILL 0") as process:
        assert process.wait(10) in (137, -signal.SIGKILL)  # the group is the launcher's too, unless the kernel can scope signals
        assert until(lambda: not left(jail), 5), left(jail)


def test_kill_9_of_the_guard_ends_the_jail_and_is_reported(jail: Jail) -> None:
    with running(jail) as process:
        send(only_child(process.pid), signal.SIGKILL)
        assert process.wait(10) == 125
        assert process.stderr is not None
        assert process.stderr.read().startswith("agent-sandbox: the guard was killed, and the jail ended with it\n")
        assert until(lambda: not left(jail), 5), left(jail)


@pytest.mark.soak
def test_kill_9_of_the_guard_at_any_moment_leaves_nothing(jail: Jail) -> None:
    """From its own first moment, and from the first of the process that becomes the jail."""
    moments = random.Random(9)
    for turn in range(KILLS):
        with started(jail, "sh", "-c", TREE) as process:
            assert until(lambda process=process, turn=turn: generations(process.pid) > turn % 2, pause=0)
            guard = only_child(process.pid)
            time.sleep(moments.uniform(0, 0.012))
            send(guard, signal.SIGKILL)
            assert process.wait(10) == 125
    assert until(lambda: not left(jail)), left(jail)


@pytest.mark.parametrize("depth", [2, 3], ids=["the monitor", "the first process inside"])
def test_kill_9_of_bwrap_ends_the_jail(jail: Jail, depth: int) -> None:
    with running(jail) as process:
        target = process.pid
        for _ in range(depth):
            target = only_child(target)
        send(target, signal.SIGKILL)
        assert process.wait(10) == 137
        assert until(lambda: not left(jail), 5), left(jail)


def test_the_next_launch_removes_what_a_launcher_and_guard_killed_together_left(jail: Jail) -> None:
    with running(jail) as process:
        guard = only_child(process.pid)
        send(guard, signal.SIGSTOP)  # so that it cannot act on the launcher's death
        process.kill()
        send(guard, signal.SIGKILL)
        process.wait(10)
        assert until(lambda: not [one for one in alive(jail.user.uid) if is_jail(one[1])], 5)
        assert left(jail)
    assert jail.run("true").code == 0
    assert left(jail) == []


def test_a_sweep_leaves_a_running_session_alone(jail: Jail) -> None:
    with running(jail) as process:
        before = [path for path in left(jail) if path.startswith("/")]
        assert jail.run("true").code == 0
        assert [path for path in left(jail) if path.startswith("/")] == before != []
        process.terminate()
        assert process.wait(10) == 143
    assert left(jail) == []


@pytest.mark.parametrize("limit", ["ulimit -n 64", "ulimit -n 20000", "umask 077", "umask 0", "ulimit -v 4000000"])
def test_it_works_under_the_limits_that_sites_set(jail: Jail, limit: str) -> None:
    done = jail.outside("bash", "-c", f"{limit}; exec '{jail.program}' --quiet -- echo ran")
    assert (done.code, done.out, done.err) == (0, "ran\n", "")
    assert left(jail) == []


@pytest.mark.parametrize("number", range(1, 7))
def test_too_few_processes_are_named_and_nothing_hangs(jail: Jail, number: int) -> None:
    """Of the user's own limit, whatever else of theirs runs."""
    running = len(alive(jail.user.uid))
    script = f"ulimit -u {running + number}; exec '{jail.program}' --quiet -- echo ran"
    done = users.run_as(jail.user, ["/bin/bash", "-c", script], cwd=jail.project, timeout=20)
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (0, "ran\n") or (done.returncode != 0 and done.stderr)
    assert until(lambda: not left(jail)), left(jail)
