"""The attempts, where they are made from, and the two tables that come of them: directly, and through the proxy.

A test that fails prints both as this machine gives them, in the form of expected.txt.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.machines.copies import PYTHON
from tests.machines.internet.machine import Internet
from tests.machines.internet.places import (
    ABSTRACT,
    AZURE,
    DNS,
    HOST,
    HOST6,
    HOST_6TO4,
    HOST_NAT64,
    HOST_TEREDO,
    HOST_TRANSLATED,
    HTTP,
    HTTP_ELSEWHERE,
    HTTPS,
    LINK_LOCAL6,
    LOOPBACK_NAT64,
    METADATA,
    METADATA6,
    METADATA_NAT64,
    NAME_SERVER,
    NAME_SERVER6,
    PRIVATE,
    PRIVATE6,
    PUBLIC_DNS,
    SMTP,
    SMTPS,
    SUBMISSION,
    UDP_ECHO,
    WEB,
    WEB6,
)  # fmt: skip
from tests.machines.jail import Jail
from tests.network import probe

MODES, BACKENDS = ("isolated", "proxied", "open"), ("bwrap", "firejail", "landlock")
PROTOCOLS = ("connect", "plain", "socks")
MARKER = "marker.example.org"  # which the other jail's project blocks, and ours does not
USUAL_PORT = 3128

DIRECT: dict[str, tuple[str | int, ...]] = {
    "loopback of the host": ("tcp", "127.0.0.1", HTTP_ELSEWHERE),
    "loopback of the host, IPv6": ("tcp", "::1", HTTP_ELSEWHERE),
    "loopback of the host, MPTCP": ("tcp", "127.0.0.1", HTTP_ELSEWHERE, probe.MPTCP),
    "loopback of the host, fast open": ("fast", "127.0.0.1", HTTP_ELSEWHERE),
    "loopback of the host, UDP": ("udp", "127.0.0.1", UDP_ECHO),
    "loopback of the host, UDP, IPv6": ("udp", "::1", UDP_ECHO),
    "the host's own address": ("tcp", HOST, HTTP_ELSEWHERE),
    "the host's own address, IPv6": ("tcp", HOST6, HTTP_ELSEWHERE),
    "mail on the host's loopback": ("tcp", "127.0.0.1", SMTP),
    "metadata": ("tcp", METADATA, HTTP),
    "metadata, IPv6": ("tcp", METADATA6, HTTP),
    **{f"private {address}": ("tcp", address, HTTP) for address in (*PRIVATE, PRIVATE6)},
    "link-local, IPv6": ("tcp", f"{LINK_LOCAL6}%2", HTTP),
    "private, UDP": ("udp", PRIVATE[0], UDP_ECHO),
    "web": ("tcp", WEB, HTTP),
    "web, by name": ("named", "www.example.org", HTTP),
    "web, IPv6": ("tcp", WEB6, HTTP),
    "web, at our proxy's port": ("at_the_proxys_port", WEB, USUAL_PORT),
    "web, at our proxy's port, IPv6": ("at_the_proxys_port", WEB6, USUAL_PORT),
    "web, TLS": ("tls", WEB, HTTPS),
    "web, MPTCP": ("tcp", WEB, HTTP, probe.MPTCP),
    "web, fast open": ("fast", WEB, HTTP),
    "UDP": ("udp", WEB, UDP_ECHO),
    "UDP, without connecting": ("udp", WEB, UDP_ECHO, "unconnected"),
    "UDP, IPv6": ("udp", WEB6, UDP_ECHO),
    "SSH": ("tcp", WEB, 22),
    "telnet": ("tcp", WEB, 23),
    "Slurm": ("tcp", WEB, 6817),
    "SMTP": ("tcp", WEB, SMTP),
    "SMTP, IPv6": ("tcp", WEB6, SMTP),
    "mail submission": ("tcp", WEB, SUBMISSION),
    "mail over TLS": ("tls", WEB, SMTPS),
    "mail at 2525": ("tcp", WEB, 2525),
    "a name looked up": ("looks_up", "www.example.org"),
    "DNS, UDP": ("udp", NAME_SERVER, DNS, "question"),
    "DNS, UDP, IPv6": ("udp", NAME_SERVER6, DNS, "question"),
    "DNS, TCP": ("asks_by_tcp", NAME_SERVER, DNS),
    "DNS over TLS": ("tcp", PUBLIC_DNS, 853),
    "DNS over HTTPS": ("tls", PUBLIC_DNS, HTTPS),
    "ping": ("pings", WEB, "dgram"),
    "ping, IPv6": ("pings", WEB6, "dgram"),
    "ICMP, raw": ("pings", WEB, "raw"),
    "ICMP, raw, IPv6": ("pings", WEB6, "raw"),
    "raw IP": ("opens", 2, 3, 255),
    "raw packets": ("opens", probe.PACKET, 3, 0),
    "unix socket in the file system": ("connects", "{socket}"),
    "abstract unix socket": ("connects", f"@{ABSTRACT}"),
    "abstract unix socket, packets": ("sends", f"@{ABSTRACT}-packets"),
    "another jail's proxy (bwrap)": ("whose_proxy", USUAL_PORT, MARKER),
    "another jail's proxy (landlock)": ("whose_proxy", "{port}", MARKER),
}  # fmt: skip
NO_CONTROL = ("another jail's proxy (bwrap)", "another jail's proxy (landlock)")  # refused outside too: the control is in that jail

THROUGH: dict[str, tuple[str, int | str]] = {
    "web": ("www.example.org", HTTP),
    "web, by address": (WEB, HTTP),
    "web, only IPv6": ("six.example.net", HTTP),
    "web, IPv6 address": (WEB6, HTTP),
    "web, one good and one bad address": ("mixed.example.net", HTTP),
    "SSH": ("www.example.org", 22),
    "loopback": ("127.0.0.1", HTTP_ELSEWHERE),
    "loopback, elsewhere in it": ("127.7.7.7", HTTP_ELSEWHERE),
    "loopback, localhost": ("localhost", HTTP_ELSEWHERE),
    "loopback, IPv6": ("::1", HTTP_ELSEWHERE),
    "loopback, IPv4 in IPv6": ("::ffff:127.0.0.1", HTTP_ELSEWHERE),
    "loopback, a name of it": ("loopback.example.net", HTTP_ELSEWHERE),
    "loopback, a name of it in IPv6": ("mapped.example.net", HTTP_ELSEWHERE),
    "loopback, unspecified": ("0.0.0.0", HTTP_ELSEWHERE),
    "loopback, as a number": ("2130706433", HTTP_ELSEWHERE),
    "loopback, hexadecimal": ("0x7f.1", HTTP_ELSEWHERE),
    "the host's own address": (HOST, HTTP_ELSEWHERE),
    "the host's own address, IPv6": (HOST6, HTTP_ELSEWHERE),
    "the host's own address by name": ("own.example.net", HTTP_ELSEWHERE),
    "the host's own address, NAT64": (HOST_NAT64, HTTP_ELSEWHERE),
    "the host's own address, 6to4": (HOST_6TO4, HTTP_ELSEWHERE),
    "the host's own address, translated": (HOST_TRANSLATED, HTTP_ELSEWHERE),
    "the host's own address, Teredo": (HOST_TEREDO, HTTP_ELSEWHERE),
    "loopback, NAT64": (LOOPBACK_NAT64, HTTP_ELSEWHERE),
    "another jail's proxy (bwrap)": ("127.0.0.1", USUAL_PORT),
    "another jail's proxy (landlock)": ("127.0.0.1", "{port}"),
    "metadata": (METADATA, HTTP),
    "metadata by name": ("metadata.example.net", HTTP),
    "metadata, IPv6": (METADATA6, HTTP),
    "metadata, NAT64": (METADATA_NAT64, HTTP),
    "metadata, Azure": (AZURE, HTTP),
    **{f"private {address}": (address, HTTP) for address in (*PRIVATE, PRIVATE6)},
    "link-local, IPv6": (f"{LINK_LOCAL6}%2", HTTP),
    "private by name": ("inside.example.net", HTTP),
    "private by name, IPv6": ("inside6.example.net", HTTP),
    "SMTP": ("mail.example.org", SMTP),
    "SMTP by address": (WEB, SMTP),
    "SMTP, IPv6": (WEB6, SMTP),
    "SMTP on the host": ("127.0.0.1", SMTP),
    "mail submission": ("mail.example.org", SUBMISSION),
    "mail over TLS": ("mail.example.org", SMTPS),
    "mail at 2525": ("mail.example.org", 2525),
    "telnet": ("www.example.org", 23),
    "Slurm": ("www.example.org", 6817),
    "DNS, TCP": (NAME_SERVER, DNS),
    "DNS over TLS": ("www.example.org", 853),
    "DNS over HTTPS, by name": ("dns.google", HTTPS),
    "DNS over HTTPS, another": ("cloudflare-dns.com", HTTPS),
    "DNS over HTTPS, by address": (PUBLIC_DNS, HTTPS),
    "a paste": ("pastebin.com", HTTP),
    "a webhook": ("hooks.slack.com", HTTP),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tables:
    direct: dict[str, list[str]]  # of each attempt: outside, then each mode and backend
    through: dict[str, list[str]]  # of each target: outside without a proxy, then each protocol and backend
    without_proxy: set[str]  # all that the same attempts came to where there is none


def look(net: Internet, jail: Jail, other: Jail) -> Tables:
    """`other`: another project of the same user's, in which another jail runs meanwhile."""
    with neighbour(net, other, "bwrap"), neighbour(net, other, "landlock") as port:
        direct = [tuple(str(word).format(socket=net.socket, port=port) for word in act) for act in DIRECT.values()]
        targets = [(host, str(number).format(port=port)) for host, number in THROUGH.values()]
        through = [(protocol, *target) for target in targets for protocol in PROTOCOLS]
        outside = read(net.outside(jail, *words([*direct, *(("named", *one) for one in targets)]), powers="net_raw").out)
        with ThreadPoolExecutor(2) as pool:
            places = [(mode, backend) for mode in MODES for backend in BACKENDS]
            inside = dict(zip(places, pool.map(lambda place: _inside(net, jail, *place, [*direct, *through]), places), strict=True))
    size = len(direct)
    proxied = [inside["proxied", backend][size:] for backend in BACKENDS]
    return Tables(
        direct={says: [outside[at], *(inside[place][at] for place in places)] for at, says in enumerate(DIRECT)},
        through={
            says: [outside[size + at], *(one[len(PROTOCOLS) * at + number] for number in range(len(PROTOCOLS)) for one in proxied)]
            for at, says in enumerate(THROUGH)
        },
        without_proxy={one for (mode, _), found in inside.items() if mode != "proxied" for one in found[size:]},
    )  # fmt: skip


def words(acts: list[tuple[str, ...]]) -> list[str]:
    return [PYTHON, "-I", "-c", Path(probe.__file__).read_text(), json.dumps(acts)]


def read(text: str) -> list[str]:
    found: list[str] = json.loads(text)
    return found


def _inside(net: Internet, jail: Jail, mode: str, backend: str, acts: list[tuple[str, ...]]) -> list[str]:
    done = net.inside(jail, *words(acts), options=("--quiet", "--backend", backend, "--network", mode))
    assert done.code == 0 and done.out.startswith("["), (mode, backend, done)
    return read(done.out)


@contextlib.contextmanager
def neighbour(net: Internet, jail: Jail, backend: str) -> Iterator[str]:
    """A jail that goes on, whose proxy was seen to serve it; its port."""
    ask = words([("connect", MARKER, "443"), ("connect", "www.example.org", "80")])
    script = '"$@" && echo "$http_proxy" && exec cat'
    with net.start(jail, "sh", "-c", script, "sh", *ask, options=("--quiet", "--backend", backend, "--network", "proxied")) as process:
        assert process.stdout and process.stdin and process.stderr
        try:
            served = process.stdout.readline()
            assert served and read(served) == [f"403 network.block {MARKER}", "200"], (served, process.stderr.read())
            yield process.stdout.readline().strip().rpartition(":")[2]
        finally:
            process.stdin.close()
            process.wait(30)


def as_text(tables: Tables) -> str:
    """One line for each attempt. Where every backend gives the same, it stands once."""
    direct = [("directly", "outside", *MODES), *((says, row[0], *grouped(row[1:])) for says, row in tables.direct.items())]
    through = [("through the proxy", "outside", *PROTOCOLS), *((says, row[0], *grouped(row[1:])) for says, row in tables.through.items())]
    return f"{aligned(direct)}\n{aligned(through)}"


def grouped(cells: list[str]) -> list[str]:
    """Three backends at a time, in their order."""
    threes = [cells[at : at + len(BACKENDS)] for at in range(0, len(cells), len(BACKENDS))]
    return [three[0] if len(set(three)) == 1 else " / ".join(three) for three in threes]


def aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)
