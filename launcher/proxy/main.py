"""The proxy's process: orders in, connections served until the session ends. Forked by the guard when somebody inside first connects.

Outside the jail, as the user. Descriptors, environment, working directory and standard files are ours; the listener came out of the jail,
and where others than the jail could reach it, `told` says who is from there.
"""

from __future__ import annotations

import fcntl
import os
import signal

from agent_sandbox.config.record import replace
from agent_sandbox.launcher import syscalls
from agent_sandbox.launcher.audit import Audit
from agent_sandbox.launcher.proxy.decide import Decider
from agent_sandbox.launcher.proxy.journal import Journal
from agent_sandbox.launcher.proxy.limits import Limits
from agent_sandbox.launcher.proxy.orders import unpack
from agent_sandbox.launcher.proxy.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from agent_sandbox.launcher.network.policy import Rules
    from agent_sandbox.launcher.proxy.credential import Credential
    from agent_sandbox.launcher.proxy.orders import Orders
    from agent_sandbox.launcher.proxy.parts import Upstream

FAILED = 125
FIRST = 3  # the first number after the standard files
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD)


def run(packed: bytes, listener: int, guard: int, told: int = -1) -> NoReturn:
    code = FAILED
    orders = unpack(packed)
    try:
        code = _run(orders, listener, guard, told)
    except BaseException as error:
        Audit(orders.log).write("error", {"session": orders.session, "what": f"the proxy ended: {type(error).__name__}: {error}"[:500]})
    finally:
        os._exit(code)


def _run(orders: Orders, listener: int, guard: int, told: int) -> int:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)  # no process of the same user looks into our memory, and no core file holds it
    os.setsid()
    listener, told = be_alone(listener, told)
    wake = listen_to_signals()
    os.environ.clear()
    os.chdir("/")
    if os.getppid() == guard:
        serve(orders, listener, told, wake)
    return 0


def serve(orders: Orders, listener: int, told: int, wake: int) -> None:
    rules = rules_of(orders)
    judge, journal = Decider(rules), Journal(Audit(orders.log), orders.session)
    try:
        server = Server(
            listener, judge, journal.note, limits_of(orders), upstream=upstream_of(orders), told=told, page=journal.page,
            credentials=credentials_of(orders), roots=orders.roots,
        )  # fmt: skip
        server.run(wake)
    finally:
        journal.close()


def be_alone(listener: int, told: int) -> tuple[int, int]:
    """Close everything but these two; the standard files lead nowhere."""
    null = os.open("/dev/null", os.O_RDWR)
    for number in range(FIRST):
        os.dup2(null, number)
    high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, FIRST + 2) if one >= 0 else -1 for one in (listener, told)]
    placed = [os.dup2(one, FIRST + at, inheritable=False) if one >= 0 else -1 for at, one in enumerate(high)]
    syscalls.close_from(max(placed) + 1)
    return placed[0], placed[1]


def listen_to_signals() -> int:
    """A pipe that can be read once SIGTERM has come. Others are not for us."""
    wake, ring = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return wake


def rules_of(orders: Orders) -> Rules:
    from agent_sandbox.launcher.network.rules import make_rules

    return make_rules(orders.said, orders.default, orders.default_origin, presets=orders.presets)


def limits_of(orders: Orders) -> Limits:
    """None is no limit, and 0 the strictest: then one at a time is heard, for our own pages, and nothing may move."""
    closed = 0 in (orders.connections, orders.rate)
    limits = Limits(total_bytes=0 if closed else orders.total_bytes, rate=orders.rate or None)
    if orders.connections is None:
        return limits
    return replace(limits, connections=max(1, min(limits.connections, orders.connections)))


def credentials_of(orders: Orders) -> list[Credential]:
    if not orders.credentials:
        return []
    from agent_sandbox.launcher.proxy.credential import credential_of

    return [credential_of(one) for one in orders.credentials]


def upstream_of(orders: Orders) -> Upstream | None:
    if not orders.upstream:
        return None
    from agent_sandbox.launcher.proxy.upstream import has_resolver, make_upstream

    return make_upstream(orders.upstream, orders.direct, resolves=has_resolver(), judged=orders.judges_upstream)
