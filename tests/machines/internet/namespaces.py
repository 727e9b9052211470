"""Namespaces, each held by a process that ends when its input does: nothing is left of a run that was killed."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machines.internet.places import ADDRESSES, FREE_PORTS, HOST, HOST6, LINK_LOCAL6, ROUTER, ROUTER6

HOLD = 'mount --bind "$1" /etc/resolv.conf && ip link set lo up && echo ready && exec cat'
CABLE = "eth0"


@dataclass(frozen=True, slots=True)
class Namespace:
    """A network, and a view of the files in which another name server is asked."""

    pid: int

    def argv(self, words: Sequence[str | Path], cwd: str | Path = "/") -> list[str]:
        places = (f"--net=/proc/{self.pid}/ns/net", f"--mount=/proc/{self.pid}/ns/mnt", f"--wdns={cwd}")
        return ["/usr/bin/nsenter", *places, "--", *map(str, words)]

    def run(self, *words: str) -> None:
        done = subprocess.run(self.argv(words), capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, (words, done.stderr)


@contextlib.contextmanager
def held(resolv_conf: Path) -> Iterator[Namespace]:
    words = ["/usr/bin/unshare", "--net", "--mount", "--propagation", "private", "/bin/sh", "-c", HOLD, "sh", str(resolv_conf)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdin and process.stdout.readline() == "ready\n"
        try:
            yield Namespace(process.pid)
        finally:
            process.stdin.close()
            process.wait(30)


def connect(host: Namespace, internet: Namespace) -> None:
    """A cable between the two, and every address of the internet at its other end."""
    host.run("ip", "link", "add", CABLE, "type", "veth", "peer", "name", CABLE, "netns", str(internet.pid))
    here = [*_addresses(CABLE, (f"{HOST}/24", f"{HOST6}/64")), f"link set {CABLE} up"]
    there = [*_addresses(CABLE, (f"{ROUTER}/24", f"{ROUTER6}/64", f"{LINK_LOCAL6}/64")), f"link set {CABLE} up", *_addresses("lo", ADDRESSES)]
    for namespace, lines in ((internet, there), (host, [*here, f"route add default via {ROUTER}", f"-6 route add default via {ROUTER6}"])):
        namespace.run("sh", "-ec", "\n".join(f"ip {line}" for line in lines))
    settings = {"ping_group_range": "0 2147483647", "ip_local_port_range": " ".join(map(str, FREE_PORTS))}  # everybody may ping
    host.run("sh", "-ec", "\n".join(f"echo {value} > /proc/sys/net/ipv4/{name}" for name, value in settings.items()))
    internet.run("sh", "-ec", f"echo {FREE_PORTS[1] + 1} 60999 > /proc/sys/net/ipv4/ip_local_port_range")  # a server of its own has the others


def _addresses(device: str, addresses: Sequence[str]) -> list[str]:
    """nodad: an address is there at once."""
    return [f"{'-6 ' if ':' in one else ''}addr add {one} dev {device}{' nodad' if ':' in one else ''}" for one in addresses]
