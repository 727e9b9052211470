"""The guard: a child of the launcher that starts the jail, keeps its time, and ends all of it when the launcher dies.

It is a subreaper, so whatever the jail's processes leave behind becomes its child; its parent-death signal is set while the
launcher lives, in the process that must receive it. It leaves the caller's session: processes of the jail share the
launcher's process group, so one of them could stop or kill everything that is in it – and must not find the guard there.
"""

from __future__ import annotations

import os
import signal
import time

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher import processes, stage, syscalls
from agent_sandbox.launcher.processes import children
from agent_sandbox.launcher.session import close_session, make_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.plan import Plan
    from agent_sandbox.launcher.session import Session

FAILED = 125
GRACE = 5.0  # seconds between asking the command to end and ending it
AGAIN = 0.05  # seconds until those that still live are killed once more


def run_guard(plan: Plan, status: int, launcher: int, session: Session | None, orphaned: Callable[[], None]) -> int:
    """Start the backend, wait for it, and say how it ended. The launcher has blocked every signal for us."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != launcher:
        return FAILED
    try:
        return _guard_jail(plan, status, launcher, session)
    except (OSError, UserError) as error:
        _tell(status, "stage-error", str(error) if isinstance(error, UserError) else f"the jail cannot be started: {error.strerror}")
        return FAILED
    finally:
        end_children()
        if session is not None:
            close_session(session)
        if os.getppid() != launcher:
            orphaned()


def _guard_jail(plan: Plan, status: int, launcher: int, session: Session | None) -> int:
    guard = os.getpid()
    if session is not None:
        make_session(session)
    jail = os.fork()
    if jail == 0:
        _become_backend(plan, status, guard)
    os.setsid()
    code = _wait(jail, launcher, status, plan.stage.limits.wall_time)
    processes.kill(launcher, signal.SIGCONT)  # it may have stopped together with the command
    return code


def _become_backend(plan: Plan, status: int, guard: int) -> None:
    """Never returns. The environment is ours: what the caller has set must not reach a process outside the jail."""
    try:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(FAILED)
        stage.become(plan, status, {"PATH": "/usr/bin:/bin"})
    except stage.StageError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{plan.program}: {error.strerror}"
    except BaseException as error:  # a process of ours must never go on as something else
        problem = f"unexpected: {error!r}"
    _tell(status, "stage-error", problem)
    os._exit(FAILED)


def _tell(status: int, name: str, value: str) -> None:
    from agent_sandbox.launcher.jsonline import dumps

    try:
        os.write(status, dumps({name: value}).encode() + b"\n")
    except OSError:  # the launcher is gone
        pass


def _wait(jail: int, launcher: int, status: int, seconds: int | None) -> int:
    """Until the jail ends by itself, its time is over, or the launcher is gone."""
    deadline = None if seconds is None else time.monotonic() + seconds
    asked = False
    while os.getppid() == launcher:
        code = _reap(jail)
        if code is not None:
            return code
        if deadline is None:
            signal.sigwait({signal.SIGCHLD, signal.SIGTERM})
        elif not signal.sigtimedwait({signal.SIGCHLD, signal.SIGTERM}, max(0.0, deadline - time.monotonic())):
            if asked:
                break
            asked, deadline = True, time.monotonic() + GRACE
            _tell(status, "timed-out", str(seconds))
            _ask_to_end(jail)
    return FAILED


def _ask_to_end(jail: int) -> None:
    """The command is the first child of the jail's first process, which is the backend's child."""
    for first in children(jail):
        for command in children(first)[:1]:
            processes.kill(command, signal.SIGTERM)
            processes.kill(command, signal.SIGCONT)


def _reap(jail: int) -> int | None:
    """Collect whoever ended; the jail's own exit code, once it is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == jail:
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else 128 - ended


def end_children() -> None:
    """Kill and collect until no child is left: killing a jail's first process ends all the others."""
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in children(os.getpid()):
            processes.kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, AGAIN)
