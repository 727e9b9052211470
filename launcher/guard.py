"""The guard: a child of the launcher that ends the whole jail when the launcher dies, and leaves nothing behind.

It is a subreaper, so whatever the jail's processes leave behind becomes its child; and its parent-death signal is set while the
launcher lives, in the process that must receive it.
"""

from __future__ import annotations

import os
import signal

from agent_sandbox.launcher import stage, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.plan import Plan

FAILED = 125


def run_guard(plan: Plan, status: int, launcher: int, clean_up: Callable[[], None]) -> int:
    """Start the backend, wait for it, and say how it ended. The launcher has blocked every signal for us."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != launcher:
        return FAILED
    jail = os.fork()
    if jail == 0:
        _become_backend(plan, status)
    os.close(status)
    code = _wait(jail, launcher)
    end_children()
    if os.getppid() != launcher:
        clean_up()
    return code


def _become_backend(plan: Plan, status: int) -> None:
    """Never returns. The environment is ours: what the caller has set must not reach a process outside the jail."""
    try:
        stage.become(plan, status, {"PATH": "/usr/bin:/bin"})
    except stage.StageError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{plan.program}: {error.strerror}"
    except BaseException as error:  # a process of ours must never go on as something else
        problem = f"unexpected: {error!r}"
    os.write(status, b'{ "stage-error": ' + _quoted(problem) + b" }\n")
    os._exit(FAILED)


def _quoted(text: str) -> bytes:
    import json

    return json.dumps(text).encode()


def _wait(jail: int, launcher: int) -> int:
    """Until the jail ends by itself, or the launcher is gone."""
    while True:
        signal.sigwait({signal.SIGCHLD, signal.SIGTERM})
        code = _reap(jail)
        if code is not None:
            return code
        if os.getppid() != launcher:
            return FAILED


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
        for pid in children(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children(pid: int) -> list[int]:
    """The direct children of a process, oldest first."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
