"""The floor: addresses and ports that no list opens → which part of it closes a destination. Pure.

Its addresses and its ports are two floors. What opens one leaves the other closed: an exception for a host must not lift
the rule about a port, nor an exception for a port the rule about an address. An entry with both opens both, there.
"""

from __future__ import annotations

from agent_sandbox.config.destinations import Destination, matches_host, matches_port, parse_destination
from agent_sandbox.config.hosts import Name
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_sandbox.config.hosts import IP, Host


@record
class Part:
    name: str
    entries: tuple[Destination, ...]


@record
class Floor:
    addresses: tuple[Part, ...]
    ports: tuple[Part, ...]
    open_parts: frozenset[str] = frozenset()
    opened: tuple[Destination, ...] = ()


def make_floor(addresses: Mapping[str, Iterable[str]], ports: Mapping[str, Iterable[str]], opened: Iterable[str]) -> Floor:
    """The name of each part → what is in it; `opened` as an admin wrote it: parts' names, and destinations."""
    parts = {*addresses, *ports}
    words = tuple(opened)
    return Floor(
        addresses=_parts(addresses), ports=_parts(ports), open_parts=frozenset(words) & parts,
        opened=tuple([parse_destination(word) for word in words if word not in parts]),
    )  # fmt: skip


def closing_port(floor: Floor, host: Host, port: int, forms: tuple[IP, ...]) -> str:
    """The part that closes the port, or nothing. While the address is not known, an opening for a network may yet fit."""
    for part in floor.ports:
        if part.name in floor.open_parts or not any(matches_port(entry, port) for entry in part.entries):
            continue
        if not any(_opens_port(entry, host, port, forms) for entry in floor.opened):
            return part.name
    return ""


def closing_address(floor: Floor, host: Host, port: int, forms: tuple[IP, ...]) -> str:
    for part in floor.addresses:
        if part.name in floor.open_parts or not any(ip in entry.network for entry in part.entries if entry.network for ip in forms):
            continue
        if not any(_opens_address(entry, host, port, forms) for entry in floor.opened):
            return part.name
    return ""


def _parts(said: Mapping[str, Iterable[str]]) -> tuple[Part, ...]:
    return tuple([Part(name=name, entries=tuple([parse_destination(text) for text in texts])) for name, texts in said.items()])


def _opens_port(entry: Destination, host: Host, port: int, forms: tuple[IP, ...]) -> bool:
    if not entry.names_port or not matches_port(entry, port):
        return False
    is_unknown = isinstance(host, Name) and not forms and entry.network is not None
    return is_unknown or matches_host(entry, host, forms)


def _opens_address(entry: Destination, host: Host, port: int, forms: tuple[IP, ...]) -> bool:
    return entry.names_host and matches_port(entry, port) and matches_host(entry, host, forms)
