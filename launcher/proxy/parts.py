"""What every connection of one proxy shares."""

from __future__ import annotations

import time

from agent_sandbox.config.record import record
from agent_sandbox.launcher.poller import Poller
from agent_sandbox.launcher.proxy.budget import Budget
from agent_sandbox.launcher.proxy.pipes import Pipes
from agent_sandbox.launcher.proxy.resolver import Resolver
from agent_sandbox.launcher.proxy.timers import Timers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_sandbox.launcher.proxy.credential import Credential
    from agent_sandbox.launcher.proxy.entry import Entry
    from agent_sandbox.launcher.proxy.judge import Judge
    from agent_sandbox.launcher.proxy.limits import Limits


@record
class Upstream:
    """Another proxy that is the only way out. `direct` names what it is not asked for; `names` = there is no resolver here, so it gets
    names, and only rules about names hold."""

    host: str
    port: int
    direct: Callable[[str, str], bool]  # host, address
    names: bool = False
    judged: bool = False  # it is no admin's choice, and has to be allowed itself


@record
class Parts:
    poller: Poller
    timers: Timers
    resolver: Resolver
    pipes: Pipes
    budget: Budget
    limits: Limits
    judge: Judge
    note: Callable[[Entry], None]
    upstream: Upstream | None
    page: Callable[[], str] | None = None  # the latest entries, for the jail to read
    credentials: Mapping[str, Credential]  # by the first step of a local path
    own: tuple[str, int]  # where the jail finds us
    roots: str  # whom to believe that a host is the credential's; "" = those whom the system does


def gather(
    judge: Judge, limits: Limits, note: Callable[[Entry], None], upstream: Upstream | None, look_up: Callable[[str], tuple[str, ...]] | None = None,
    page: Callable[[], str] | None = None, credentials: Sequence[Credential] = (), roots: str = "",
    own: tuple[str, int] = ("", 0),
) -> Parts:  # fmt: skip
    poller = Poller()
    return Parts(
        poller=poller, timers=Timers(), resolver=Resolver(poller, limits, look_up) if look_up else Resolver(poller, limits),
        pipes=Pipes(limits.pipes), budget=Budget(limits.total_bytes, limits.rate, time.monotonic()), limits=limits, judge=judge, note=note,
        upstream=upstream, page=page, credentials={one.name: one for one in credentials}, roots=roots, own=own,
    )  # fmt: skip
