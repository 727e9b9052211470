"""The text of a destination becomes a host in one spelling and a port, or is refused: what two readers could read differently does not pass."""

from __future__ import annotations

from _socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from functools import lru_cache

from agent_sandbox.config.hosts import Address, parse_host
from agent_sandbox.config.record import record

DIGITS = frozenset("0123456789")
MAPPED = bytes(10) + b"\xff\xff"


class Malformed(ValueError):
    """Text that is no request, in words for who sent it."""


@record
class Target:
    host: str  # a name in lower case without its last dot, or an address as the kernel writes it
    port: int
    numeric: bool

    @property
    def text(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def field(self) -> str:
        """As the `Host` of a plain request says it."""
        return self.text.removesuffix(":80")


def parse_authority(text: str, *, default_port: int | None = None) -> Target:
    """`host`, `host:port`, `[v6]`, `[v6]:port`; without a default the port must be there."""
    if text.startswith("["):
        inside, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")) or ":" not in inside:
            raise Malformed("the address in brackets is malformed")
        host, port = inside, rest[1:] if rest else None
    else:
        host, colon, after = text.partition(":")
        port = after if colon else None
    if port is None and default_port is not None:
        return target_of(host, default_port)
    return target_of(host, parse_port(port or ""))


def parse_port(text: str) -> int:
    if not text or len(text) > 5 or not DIGITS.issuperset(text) or not 0 < int(text) < 65536:
        raise Malformed("the port is missing or malformed")
    return int(text)


def target_of(host: str, port: int) -> Target:
    checked, numeric = check_host(host)
    return Target(host=checked, port=port, numeric=numeric)


@lru_cache(maxsize=512)
def check_host(text: str) -> tuple[str, bool]:
    """The one spelling, and whether it is an address: read as the entries of the lists are, or the two could mean different hosts."""
    try:
        host = parse_host(text) if text.isascii() else None
    except ValueError as problem:
        raise Malformed(str(problem)) from None
    if host is None:
        raise Malformed("a host's name beyond ASCII is asked for in its xn-- form")
    return host.text, isinstance(host, Address)


def as_address(text: str) -> str:
    """An IPv6 address that means an IPv4 one becomes that; "" = no address."""
    family = AF_INET6 if ":" in text else AF_INET
    try:
        raw = inet_pton(family, text)
    except (OSError, ValueError):
        return ""
    if raw[:12] == MAPPED:
        return inet_ntop(AF_INET, raw[12:])
    return inet_ntop(family, raw)
