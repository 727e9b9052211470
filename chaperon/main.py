"""The chaperon's process: orders in, a loop until the session ends. Forked by the guard, outside the jail, as the user.

Nothing of the caller's reaches what runs here: descriptors, environment, working directory and standard files are ours. It is
started when the first stub of a session announces itself.
"""

from __future__ import annotations

import os
import signal

from agent_sandbox.chaperon.answers import answer
from agent_sandbox.chaperon.gate import Gate
from agent_sandbox.chaperon.limits import Limits
from agent_sandbox.chaperon.orders import unpack
from agent_sandbox.chaperon.projects import project_id
from agent_sandbox.chaperon.scheduler import Scheduler
from agent_sandbox.chaperon.serve import Server
from agent_sandbox.config.record import replace
from agent_sandbox.launcher import syscalls
from agent_sandbox.launcher.audit import Audit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from agent_sandbox.chaperon.command import Handler
    from agent_sandbox.chaperon.orders import Orders

FAILED = 125
ASK = 3  # the first number after the standard files
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)


def run(packed: bytes, ask: int, guard: int) -> NoReturn:
    """In a child of the guard's, which made `ask` before the jail started, and closes its own copy after the fork."""
    code = FAILED
    try:
        orders = unpack(packed)
        orders = replace(orders, project_id=orders.project_id or project_id(orders.state, orders.project))
        code = _run(orders, ask, guard)
    except Exception as error:  # stubs will say that we are gone, and the log why
        Audit(orders.log).write("error", {"session": orders.session, "what": f"the chaperon ended: {type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(code)


def _run(orders: Orders, ask: int, guard: int) -> int:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    os.setsid()  # away from the jail's process group and from the terminal
    ask = be_alone(ask)
    wake = listen_to_signals()
    _clean()
    if os.getppid() == guard:
        serve(orders, Gate(orders.fifos, ask), wake)
    return 0


def serve(orders: Orders, gate: Gate, wake: int, handler: Handler = answer, limits: Limits | None = None) -> None:
    Server(orders, gate, Scheduler(orders), Audit(orders.log), handler, limits or Limits()).run(wake)
    gate.close()


def be_alone(ask: int) -> int:
    """Close everything but `ask`, which gets a number of its own; the standard files lead nowhere."""
    null = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    if ask != ASK:
        os.dup2(ask, ASK)
    os.set_inheritable(ASK, False)
    syscalls.close_from(ASK + 1)
    return ASK


def _clean() -> None:
    os.environ.clear()
    os.chdir("/")
    os.umask(0o077)


def listen_to_signals() -> int:
    """A pipe from which the numbers of signals can be read: SIGCHLD, SIGTERM. Others are not for us."""
    wake, ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return wake
