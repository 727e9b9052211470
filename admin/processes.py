"""All processes of a user, and their end.

They are killed by a child of ours that has become that user, with one `kill(-1)`: the kernel reaches them all at once, so one that
forks while we look does not get away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from agent_sandbox.launcher.processes import state

PATIENCE = 2.0  # seconds between asking and killing
LONGEST = 15.0
NOBODY = 65534


def processes_of(uid: int) -> list[int]:
    """Those that are not just waiting to be collected."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return [pid for pid in numbers if uid in _users(pid) and state(pid) not in ("Z", "X", "")]


def _users(pid: int) -> set[int]:
    """Real, effective, saved and file system user."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"Uid:"):
                return {int(word) for word in line.split()[1:]}
    return set()


def end_processes(uid: int) -> bool:
    """Ask, then kill, until none is left; False if some do not end."""
    if uid < 1:
        raise ValueError("root's processes are not ended")
    deadline, number = time.monotonic() + LONGEST, signal.SIGTERM
    last_word = time.monotonic() + PATIENCE
    while processes_of(uid):
        if time.monotonic() > deadline:
            return False
        if time.monotonic() > last_word:
            number = signal.SIGKILL
        _signal_all(uid, number)
        time.sleep(0.05)
        if number == signal.SIGKILL:
            _kill_each(uid)
    return True


def _kill_each(uid: int) -> None:
    """The second way, as root: they could have killed our child, which was one of theirs."""
    for pid in processes_of(uid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _signal_all(uid: int, number: int) -> None:
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(uid, uid, 0)  # real and effective are the user's, or we would reach root's too; the saved one keeps them from tracing us
            os.kill(-1, number)
        except OSError:  # nobody is left
            pass
        finally:
            os._exit(0)
    os.waitpid(child, 0)
