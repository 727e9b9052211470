"""An entry of network.block, network.allow or network.floor_open → the hosts and ports that it stands for. Pure.

    host  host:port  *.suffix  a.*.suffix  address  CIDR  CIDR:port  [v6]:port  [v6/len]:port  port  first-last  *

`*` as the first part of a name stands for one or more parts, elsewhere for exactly one. One entry is more specific than
another if all that it stands for is among what the other stands for. What is not understood is an error: an entry that
silently matches nothing would be a hole or a lie.
"""

from __future__ import annotations

import ipaddress

from agent_sandbox.config.hosts import DIGITS, LAST_PORT, MAPPED, Address, Host, Name, likely_target, parse_host, parse_port, split_port
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.hosts import IP

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network

ANY = "*"
RANGE = DIGITS | {"-"}


@record
class Destination:
    """A name pattern, or a network, or neither (any host); and the first and last port."""

    labels: tuple[str, ...] = ()
    network: Network | None = None
    first: int = 1
    last: int = LAST_PORT

    @property
    def names_host(self) -> bool:
        return bool(self.labels) or self.network is not None

    @property
    def names_port(self) -> bool:
        return (self.first, self.last) != (1, LAST_PORT)

    def text(self) -> str:
        """The one spelling of this destination."""
        host, port = self._host_text(), _port_text(self.first, self.last) if self.names_port else ""
        if not host:
            return port or ANY
        return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}") if port else host

    def _host_text(self) -> str:
        if self.network is None:
            return ".".join(self.labels)
        return str(self.network.network_address) if self.network.prefixlen == self.network.max_prefixlen else str(self.network)


def parse_destination(text: str) -> Destination:
    """A ValueError says what is wrong and, where that can be guessed, what was meant."""
    try:
        return _parse(text)
    except ValueError as error:
        raise ValueError(f"{error}{_guess(text)}") from None


def matches_port(entry: Destination, port: int) -> bool:
    return entry.first <= port <= entry.last


def matches_host(entry: Destination, host: Host, forms: tuple[IP, ...]) -> bool:
    """`forms`: the address to be dialled, and what it stands for; empty while it is not known."""
    if entry.labels:
        return isinstance(host, Name) and _matches_name(entry.labels, host.text.split("."))
    return entry.network is None or any(ip in entry.network for ip in forms)


def is_within(inner: Destination, outer: Destination) -> bool:
    """Is all that `inner` stands for among what `outer` stands for?"""
    return outer.first <= inner.first and inner.last <= outer.last and _host_within(inner, outer)


def _host_within(inner: Destination, outer: Destination) -> bool:
    if not outer.names_host:
        return True
    if inner.labels and outer.labels:
        return _labels_within(inner.labels, outer.labels)
    return _network_within(inner.network, outer.network)


def _network_within(inner: Network | None, outer: Network | None) -> bool:
    if inner is None or outer is None or inner.version != outer.version:
        return False
    return inner.prefixlen >= outer.prefixlen and inner.network_address in outer


def _matches_name(labels: tuple[str, ...], name: list[str]) -> bool:
    if labels[0] == ANY:
        tail = labels[1:]
        return len(name) > len(tail) and _each_matches(tail, name[len(name) - len(tail) :])
    return len(name) == len(labels) and _each_matches(labels, name)


def _labels_within(inner: tuple[str, ...], outer: tuple[str, ...]) -> bool:
    if outer[0] == ANY:
        count = len(outer) - 1
        return len(inner) > count and _each_matches(outer[1:], list(inner[len(inner) - count :]))
    return inner[0] != ANY and len(inner) == len(outer) and _each_matches(outer, list(inner))


def _each_matches(pattern: tuple[str, ...], labels: list[str]) -> bool:
    return all(wanted in (ANY, label) for wanted, label in zip(pattern, labels, strict=True))


def _parse(text: str) -> Destination:
    if text == ANY:
        return Destination()
    if text and RANGE.issuperset(text):
        first, last = _ports(text)
        return Destination(first=first, last=last)
    host, port = split_port(text)
    if text.startswith("[") and ":" not in host:
        raise ValueError("only an IPv6 address stands in [ ]")
    first, last = _ports(port) if port else (1, LAST_PORT)
    if host == ANY:
        return Destination(first=first, last=last)
    labels, network = ((), _network(host)) if "/" in host else _host(host)
    return Destination(labels=labels, network=network, first=first, last=last)


def _host(text: str) -> tuple[tuple[str, ...], Network | None]:
    if ANY in text:
        return _pattern(text), None
    host = parse_host(text)
    if isinstance(host, Address):
        return (), ipaddress.ip_network(host.ip)
    return tuple(host.text.split(".")), None


def _pattern(text: str) -> tuple[str, ...]:
    """Read as a name with a letter for each `*`, so that what is a name is said in one place."""
    parts = text.removesuffix(".").split(".")
    if any(ANY in part and part != ANY for part in parts):
        raise ValueError("* stands for whole parts of a name, between dots")
    if all(part == ANY for part in parts):
        raise ValueError("every host is written as *")
    if all(part == ANY or part.isdecimal() for part in parts):
        raise ValueError("* stands in names; a network is written as CIDR, such as 10.0.0.0/8")
    labels = parse_host(".".join(["x" if part == ANY else part for part in parts])).text.split(".")
    if len(labels) != len(parts):  # a dot beyond ASCII: which part the * stands for would be a guess
        raise ValueError("a name is written with plain dots")
    return tuple([ANY if part == ANY else label for part, label in zip(parts, labels, strict=True)])


def _network(text: str) -> Network:
    address, _, length = text.partition("/")
    if not (length.isascii() and length.isdecimal() and len(length) <= 3) or length != str(int(length)) or "[" in address:
        raise ValueError("a network is an address, / and the number of its leading bits")
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        if "host bits" in str(error):
            raise ValueError("the address has bits beyond the length of the network") from None
        raise ValueError("not a network") from None
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= MAPPED.prefixlen and network.network_address in MAPPED:
        inner = network.network_address.ipv4_mapped
        return ipaddress.IPv4Network(f"{inner}/{network.prefixlen - MAPPED.prefixlen}")
    return network


def _ports(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    low = parse_port(first)
    high = parse_port(last) if dash else low
    if low > high:
        raise ValueError("a range of ports runs upwards")
    return low, high


def _port_text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _guess(text: str) -> str:
    """What was probably meant, if that can be read."""
    for meant in _likely(text):
        try:
            found = _parse(meant).text()
        except ValueError:
            continue
        return f"; did you mean {found!r}?"
    return ""


def _likely(text: str) -> list[str]:
    bare = text.strip().partition("://")[2] or text.strip()
    bare = bare.rpartition("@")[2]
    host = bare.partition("/")[0]
    starred = host.replace("*", "*.", 1) if "*." not in host else host
    guesses = [likely_target(text), f"*{host}" if host.startswith(".") else host, host.rstrip("."), starred, host.partition(":")[0]]
    if "/" in bare and "://" not in text:
        try:
            guesses.insert(0, str(ipaddress.ip_network(bare, strict=False)))
        except ValueError:
            pass
    return [guess for guess in guesses if guess and guess != text]
