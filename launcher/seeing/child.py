"""Something that may fail, or end the process that does it, is done in a child: how it ended, and what it said."""

from __future__ import annotations

import os
import signal
import sys
import time

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher import processes, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FAILED = 125
ENDING = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})  # a key pressed meanwhile reaches the whole group
PAUSE = 0.001  # seconds between two looks at a child that has its time


@record
class Ended:
    code: int
    out: str
    err: str


def in_child(act: Callable[[], int], seconds: float | None = None) -> Ended:
    """With a time limit it is killed after that, and whatever it started must end with it."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # closed when we were started
            stream.flush()
    out, err = os.memfd_create("out"), os.memfd_create("err")
    try:
        pid = os.fork()
    except OSError as error:
        raise UserError(f"no process can be started: {error.strerror}", hint="`ulimit -u` may be too low")
    if pid == 0:
        _act_and_exit(act, out, err)
    if seconds is not None and not _ends_within(pid, seconds):
        os.kill(pid, 9)
        os.write(err, f"\nit did not end within {seconds} s".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Ended(code=code if code >= 0 else 128 - code, out=_read(out), err=_read(err))


def watched(act: Callable[[], int], seconds: float) -> int:
    """In a child: do it in another one, and end that and all it started when its time is over, or when whoever wants it is gone.

    What a jail is made of does not always end with its parent; so this process is a guard of its own.
    """
    parent = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING | {signal.SIGCHLD})
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os._exit(_done(act))
    code, deadline = None, time.monotonic() + seconds
    while code is None and os.getppid() == parent and time.monotonic() < deadline:
        caught = signal.sigtimedwait(ENDING | {signal.SIGCHLD}, max(0.0, deadline - time.monotonic()))
        code = processes.reap(pid)
        if caught and caught.si_signo in ENDING:
            break
    if code is None and time.monotonic() >= deadline:
        os.write(2, f"\nit did not end within {seconds} s".encode())
    processes.end_children()
    return FAILED if code is None else code


def _done(act: Callable[[], int]) -> int:
    try:
        return act()
    except BaseException as error:
        os.write(2, repr(error).encode("utf-8", "backslashreplace"))
        return FAILED


def _ends_within(pid: int, seconds: float) -> bool:
    """Looked at without collecting it: its number stays its own."""
    deadline = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE)
    return True


def _act_and_exit(act: Callable[[], int], out: int, err: int) -> None:
    """Never returns: the caller's own work must not be done twice."""
    code = FAILED
    try:
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        code = act()
        if sys.stdout is not None:
            sys.stdout.flush()
    except UserError as error:
        os.write(2, str(error).encode("utf-8", "backslashreplace"))
        code = error.code
    except BaseException as error:
        os.write(2, repr(error).encode("utf-8", "backslashreplace"))
    finally:
        os._exit(code)


def _read(handle: int) -> str:
    with os.fdopen(handle, "rb") as file:
        file.seek(0)
        return file.read(1 << 20).decode("utf-8", "replace")
