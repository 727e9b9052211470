"""`network.upstream_proxy` and `network.no_proxy` become the way out that the proxy takes.

Where this machine can look up no name, the other proxy gets names, and only rules about names hold: the addresses are its own affair.
"""

from __future__ import annotations

from agent_sandbox.config.destinations import matches_host, parse_destination
from agent_sandbox.launcher.network.hosts import Address, parse_host, parse_target
from agent_sandbox.launcher.policy import Gap, Property
from agent_sandbox.launcher.proxy.parts import Upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.config.destinations import Destination

RESOLV_CONF = "/etc/resolv.conf"


def make_upstream(said: str, direct: Sequence[str], *, resolves: bool, judged: bool) -> Upstream:
    """`said` and `direct` were read when the settings were loaded."""
    host, port = parse_target(said)
    entries = tuple([parse_destination(text) for text in direct])
    return Upstream(
        host=host.text, port=port or 0, direct=lambda name, address: is_direct(entries, name, address), names=not resolves, judged=judged,
    )  # fmt: skip


def is_direct(entries: Sequence[Destination], name: str, address: str) -> bool:
    host = parse_host(name)
    found = parse_host(address) if address else host
    forms = found.forms() if isinstance(found, Address) else ()
    return any(matches_host(entry, host, forms) for entry in entries)


def gaps() -> tuple[Gap, ...]:
    """What a session is told at its start."""
    if has_resolver():
        return ()
    reason = "no name can be looked up here: the site's proxy gets names, and where they lead to is checked by nobody of ours"
    return (Gap(property=Property.NETWORK, reason=reason, fix=f"a nameserver in {RESOLV_CONF}", weak=True),)


def has_resolver() -> bool:
    """Does this machine know anybody to ask for names beyond its own files?"""
    try:
        with open(RESOLV_CONF, encoding="utf-8", errors="replace") as file:
            return any(line.split()[:1] == ["nameserver"] for line in file)
    except OSError:
        return False
