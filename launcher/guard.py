"""The guard: a child of the launcher that starts the jail, keeps its time, and ends all of it when the launcher dies.

It is a subreaper, so whatever the jail's processes leave behind becomes its child; its parent-death signal is set while the
launcher lives, in the process that must receive it. It leaves the caller's session: processes of the jail share the
launcher's process group, so one of them could stop or kill everything that is in it – and must not find the guard there.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher import processes, stage, syscalls
from agent_sandbox.launcher.audit import Audit
from agent_sandbox.launcher.doors import Doors
from agent_sandbox.launcher.handover import SIZE
from agent_sandbox.launcher.orders import unpack
from agent_sandbox.launcher.probe import find_program
from agent_sandbox.launcher.processes import end_children
from agent_sandbox.launcher.room import make_room
from agent_sandbox.launcher.say import say
from agent_sandbox.launcher.session import close_session, make_session
from agent_sandbox.launcher.status import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.orders import Orders
    from agent_sandbox.launcher.plan import Plan
    from agent_sandbox.launcher.policy import Helper

FAILED = 125
GRACE = 5.0  # seconds between asking the command to end and ending it


def run_guard(hear: int, status: int, launcher: int) -> int:
    """Wait to be told, start the backend, wait for it, and say how it ended. The launcher has blocked every signal for us."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    tell(status, landlock=syscalls.landlock_abi(), notify=int(syscalls.can_notify()))
    _load_ahead()
    told = _hear(hear)
    if os.getppid() != launcher or not told:
        return FAILED
    orders = unpack(told)
    try:
        return _guard_jail(orders, status, launcher, hear)
    except (OSError, UserError) as error:
        tell(status, stage_error=str(error) if isinstance(error, UserError) else f"the jail cannot be started: {error.strerror}")
        return FAILED
    finally:
        end_children()
        close_session(orders.session)
        if os.getppid() != launcher:
            _log_the_end(orders)


def _load_ahead() -> None:
    """What a Landlock jail needs, while the launcher is busy, where there will probably be one."""
    if "landlock" in sys.argv or not find_program("bwrap"):
        from agent_sandbox.launcher import confine
        from agent_sandbox.launcher.supervisor import supervisor

        del confine, supervisor


def _hear(pipe: int) -> bytes:
    """The orders, whole; of a launcher that died while it spoke nothing is believed."""
    size = int.from_bytes(_exactly(pipe, SIZE))
    told = _exactly(pipe, size)
    return told if len(told) == size else b""


def _exactly(pipe: int, size: int) -> bytes:
    pieces = []
    while size and (piece := os.read(pipe, min(size, 1 << 20))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _log_the_end(orders: Orders) -> None:
    Audit(orders.log).write("end", {"session": orders.session.id, "code": None, "why": "the launcher was killed"})


def _guard_jail(orders: Orders, status: int, launcher: int, hear: int) -> int:
    guard = os.getpid()
    make_session(orders.session)
    if orders.plan.room:
        make_room(orders.plan.room)
    doors = Doors(orders.plan.helpers, lambda line: _warn(line, orders))
    jail = os.fork()
    if jail == 0:
        doors.forget()
        _become_backend(orders.plan, status, guard, hear, doors.hatch)
    os.close(hear)
    doors.begin()
    os.setsid()
    try:
        code = _wait(jail, launcher, status, orders, doors)
    finally:
        doors.close()
    processes.kill(launcher, signal.SIGCONT)  # it may have stopped together with the command
    return code


def _become_backend(plan: Plan, status: int, guard: int, hear: int, hatch: int) -> None:
    """Never returns. The launcher lets go by closing its end of `hear`.

    The environment is ours: what the caller has set must not reach a process outside the jail.
    """
    try:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(FAILED)
        _starter(plan.backend)(plan, status, {"PATH": "/usr/bin:/bin"}, lambda: os.read(hear, 1), hatch)
    except stage.StageError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{plan.program}: {error.strerror}"
    except BaseException as error:  # a process of ours must never go on as something else
        problem = f"unexpected: {error!r}"
    tell(status, stage_error=problem)
    os._exit(FAILED)


def _starter(backend: str) -> Callable[[Plan, int, dict[str, str], Callable[[], object], int], None]:
    """What turns this process into the backend; imported by the guard's child alone."""
    if backend == "landlock":
        from agent_sandbox.launcher.confine import become

        return become
    if backend == "firejail":
        from agent_sandbox.launcher import firejail

        return firejail.become
    return stage.become


def _wait(jail: int, launcher: int, status: int, orders: Orders, doors: Doors) -> int:
    """Until the jail ends by itself, its time is over, or the launcher is gone."""
    plan = orders.plan
    seconds = plan.stage.limits.wall_time
    deadline = None if seconds is None else time.monotonic() + seconds
    asked = False
    while os.getppid() == launcher:
        code = processes.reap(jail, lambda pid, ended: _mourn(doors.dead(pid), ended, orders))
        if code is not None:
            return code
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not doors.wait(left) and deadline is not None and time.monotonic() >= deadline:
            if asked:
                break
            asked, deadline = True, time.monotonic() + GRACE
            tell(status, timed_out=str(seconds))
            _ask_to_end(jail, plan.backend)
    return FAILED


def _mourn(helper: Helper | None, ended: int, orders: Orders) -> None:
    """Said at once: what the person sees next may be the consequence."""
    if helper and helper.death:
        _warn(f"{helper.death} ({f'signal {-ended}' if ended < 0 else f'exit code {ended}'})", orders)


def _warn(line: str, orders: Orders) -> None:
    say(line, "warning")
    Audit(orders.log).write("error", {"session": orders.session.id, "what": line})


# How many generations the command comes after the process that we started: below Landlock it is its child, in firejail there
# are a first process of firejail's and our own stage between the two.
GENERATIONS = {"landlock": 1, "bwrap": 2, "firejail": 3}


def _ask_to_end(jail: int, backend: str) -> None:
    command = processes.oldest_descendant(jail, GENERATIONS[backend])
    if command:
        processes.kill(command, signal.SIGTERM)
        processes.kill(command, signal.SIGCONT)
