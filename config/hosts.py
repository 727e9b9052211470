"""What a client asks for, or what an entry names: text → a name or an address, by one strict reading. Pure.

What is left open here is a way past every list: a resolver, a C library and a browser each read `0x7f.1`, `１２７.1` or
`allowed.org\\0.evil.org` in their own way. So there is one spelling for each host, and whatever is no such spelling is refused.
"""

from __future__ import annotations

import ipaddress

from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    IP = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST_NAME, LONGEST_LABEL, LAST_PORT = 253, 63, 65535
SIGNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")
DIGITS, HEX = frozenset("0123456789"), frozenset("0123456789abcdef")
MAPPED, TRANSLATED, NAT64, COMPATIBLE = (
    ipaddress.IPv6Network(text) for text in ("::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "::/96")
)
LOW = 0xFFFFFFFF
PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418}  # by which people name them


@record
class Name:
    """Lower-case ASCII without a dot at its end; names beyond ASCII in their `xn--` form."""

    text: str


@record
class Address:
    ip: IP

    @property
    def text(self) -> str:
        return str(self.ip)

    def forms(self) -> tuple[IP, ...]:
        """The address, and the IPv4 address that it leads to: what is said of either holds for it."""
        inner = _embedded(self.ip)
        return (self.ip, inner) if inner else (self.ip,)


Host = Name | Address


def parse_host(text: str) -> Host:
    """A ValueError says what is wrong; it never holds the text itself."""
    if not text or len(text) > LONGEST_NAME + 2:
        raise ValueError("a host has 1 to 253 characters")
    if not text.isascii():
        return _international(text)
    if ":" in text or "[" in text:
        return Address(ip=_address6(text))
    bare = text.lower().removesuffix(".")
    if not _is_numeric(bare.rpartition(".")[2]):
        return Name(text=_checked(bare))
    return Address(ip=_address4(text))


def parse_port(text: str) -> int:
    plain = text.isascii() and text.isdecimal() and len(text) <= 5 and not text.startswith("0")
    if not plain or int(text) > LAST_PORT:
        raise ValueError("a port is a number from 1 to 65535")
    return int(text)


def split_port(text: str) -> tuple[str, str]:
    """`host:port`, `[v6]:port`, a bare host or IPv6 address → the host, and the port or nothing."""
    if "://" in text:
        raise ValueError("a host is named, not a URL")
    if text.startswith("["):
        inner, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")) or rest == ":":
            raise ValueError("a [ without its ], or something other than :port behind it")
        return inner, rest[1:]
    host, colon, port = text.partition(":")
    if not colon or ":" in port:
        return text, ""
    if not port:
        raise ValueError("a : without a port behind it")
    return host, port


def parse_target(text: str) -> tuple[Host, int | None]:
    """`NAME[:PORT]`, as a CONNECT line or a person writes it."""
    host, port = split_port(text)
    if text.startswith("[") and ":" not in host:
        raise ValueError("only an IPv6 address stands in [ ]")
    return parse_host(host), parse_port(port) if port else None


def likely_target(text: str) -> str:
    """What somebody meant who wrote a URL, `user@host`, a path behind the host or a port by its name; nothing if that cannot be read."""
    scheme, _, bare = text.strip().rpartition("://")
    place = bare.partition("/")[0].rpartition("@")[2]
    host, colon, port = place.rpartition(":")
    meant = f"{host}:{PORTS[port.lower()]}" if colon and port.lower() in PORTS else place
    try:
        return "" if meant == text else target_spelling(*parse_target(meant), scheme)
    except ValueError:
        return ""


def target_spelling(host: Host, port: int | None, scheme: str = "") -> str:
    """The port is left out where it is the scheme's own."""
    if port is None or str(port) == str(PORTS.get(scheme.lower(), "")):
        return host.text
    return f"[{host.text}]:{port}" if ":" in host.text else f"{host.text}:{port}"


def map_address(ip: IP) -> IP:
    """An IPv4 address in IPv6 clothes is that IPv4 address, to the kernel too."""
    mapped = ip.ipv4_mapped if ip.version == 6 else None
    return mapped or ip


def _international(text: str) -> Name:
    try:
        import idna
    except ImportError:
        raise ValueError("a name beyond ASCII needs the idna library here: write its xn-- form") from None
    try:
        ascii_form = idna.encode(text, uts46=True, std3_rules=True).decode("ascii")
    except (UnicodeError, IndexError):
        raise ValueError("not a name that IDNA knows") from None
    host = parse_host(ascii_form)
    if isinstance(host, Address):
        raise ValueError("an address is written in ASCII digits")
    return host


def _checked(name: str) -> str:
    if len(name) > LONGEST_NAME:
        raise ValueError("a name has at most 253 characters")
    labels = name.split(".")
    for label in labels:
        check_label(label)
    if "_" in labels[-1]:
        raise ValueError("no _ in the last part of a name")
    return name


def check_label(label: str) -> None:
    if not label or len(label) > LONGEST_LABEL:
        raise ValueError("each part of a name has 1 to 63 characters")
    if not SIGNS.issuperset(label):
        raise ValueError("a name holds letters, digits, - and _ between its dots, and nothing else")
    if label.startswith("-") or label.endswith("-"):
        raise ValueError("no - at the start or end of a part of a name")


def _is_numeric(last: str) -> bool:
    """Programs take a name whose last part is a number for an IPv4 address, in one of its many spellings."""
    return bool(last) and (DIGITS.issuperset(last) or (last.startswith("0x") and HEX.issuperset(last[2:])))


def _address4(text: str) -> IP:
    try:
        return ipaddress.IPv4Address(text)
    except ValueError:
        raise ValueError("an IPv4 address is four decimal numbers without leading zeros, and no dot at its end") from None


def _address6(text: str) -> IP:
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if "%" in inner:
        raise ValueError("no zone (%) in an address")
    try:
        return map_address(ipaddress.IPv6Address(inner))
    except ValueError:
        raise ValueError("not an IPv6 address") from None


def _embedded(ip: IP) -> ipaddress.IPv4Address | None:
    """Of NAT64, of translators before it, of 6to4, and of the old IPv4-compatible form (`::` and `::1` lie there too, and lead nowhere)."""
    if isinstance(ip, ipaddress.IPv4Address):
        return None
    if ip in NAT64 or ip in MAPPED or ip in TRANSLATED or (ip in COMPATIBLE and int(ip) > 1):
        return ipaddress.IPv4Address(int(ip) & LOW)
    return ip.sixtofour
