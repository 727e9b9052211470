"""The policy as the proxy asks it: names and addresses as text → verdicts, each decided once.

Which addresses are the machine's own is asked of the kernel for every new one: it lets nobody bind to an address of another machine.
"""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, SOCK_CLOEXEC, SOCK_DGRAM, socket
from errno import EADDRNOTAVAIL

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.network.floor import Part
from agent_sandbox.launcher.network.hosts import Address, parse_host
from agent_sandbox.launcher.network.policy import judge_address, judge_name
from agent_sandbox.launcher.proxy.judge import Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.network.policy import Rules
    from agent_sandbox.launcher.network.policy import Verdict as Decided

OWN = "own"
LOOPBACK = ("::1", "::", "0.0.0.0")  # the last two lead there
MOST = 2048  # verdicts that are remembered


class Decider:
    """A `Judge`."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._known: dict[tuple[str, int, str], Verdict] = {}

    def name(self, host: str, port: int) -> Verdict:
        return self._known.get((host, port, "")) or self._decide(host, port, "")

    def address(self, host: str, port: int, address: str) -> Verdict:
        """An address may become one of ours while we run: those are looked at every time."""
        if own := own_among(address):
            return _told(self._judge_own(host, port, address, own))
        return self._known.get((host, port, address)) or self._decide(host, port, address)

    def _decide(self, host: str, port: int, address: str) -> Verdict:
        verdict = _told(self._judge(self._rules, host, port, address))
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[host, port, address] = verdict
        return verdict

    def _judge(self, rules: Rules, host: str, port: int, address: str) -> Decided:
        asked = parse_host(host)
        if not address:
            return judge_name(rules, asked, port)
        found = parse_host(address)
        assert isinstance(found, Address)
        return judge_address(rules, asked, port, found)

    def _judge_own(self, host: str, port: int, address: str, own: tuple[str, ...]) -> Decided:
        from agent_sandbox.config.destinations import parse_destination

        parts = tuple([part for part in self._rules.floor.addresses if part.name != OWN])
        part = Part(name=OWN, entries=tuple([parse_destination(one) for one in own]))
        return self._judge(replace(self._rules, floor=replace(self._rules.floor, addresses=(*parts, part))), host, port, address)


def _told(verdict: Decided) -> Verdict:
    return Verdict(allowed=verdict.allowed, rule=verdict.rule, origin=verdict.origin, why=verdict.why)


def own_among(address: str) -> tuple[str, ...]:
    """Of the address and what it stands for: a gateway would bring what is sent to an IPv6 form of ours back to us."""
    found = parse_host(address) if ":" in address else None
    texts = [str(ip) for ip in found.forms()] if isinstance(found, Address) else [address]
    return tuple([text for text in texts if is_own(text)])


def is_own(address: str) -> bool:
    """Beyond loopback, which is a part of the floor by itself. Only a plain no counts as one: where the kernel cannot tell, as when no port is
    left there, it may be."""
    if address.startswith("127.") or address in LOOPBACK:
        return False
    family = AF_INET6 if ":" in address else AF_INET
    asker = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)
    try:
        asker.bind((address, 0))
    except OSError as error:
        return error.errno != EADDRNOTAVAIL
    finally:
        asker.close()
    return True
