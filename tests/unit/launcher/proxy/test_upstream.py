"""Where another proxy is the only way out: it is asked for checked addresses, and only what it need not be asked for goes straight."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.unit.launcher.proxy.test_tunnels import tunnel
from tests.unit.launcher.proxy.world import Proxy, echo, listening, read_head, running, web

NAMES = {"site.test": ["127.0.0.9", "127.0.0.1"], "near.test": ["127.0.0.1"], "evil.test": ["127.0.0.7"], "outer.test": ["127.0.0.1"]}


class Outer:
    """A proxy that notes what it is asked for, and sends its answer and the first bytes in one piece."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\nX: 1\r\n\r\n") -> None:
        self.asked: list[str] = []
        self._answer = answer

    def __call__(self, sock: socket.socket) -> None:
        where = read_head(sock).split()[1].decode()
        self.asked.append(where)
        host, _, port = where.rpartition(":")
        try:
            far = socket.create_connection((NAMES.get(host, [host])[-1], int(port)), timeout=20)
        except OSError:
            sock.sendall(b"HTTP/1.1 503 No\r\n\r\n")
            return
        sock.sendall(self._answer)
        with far:
            ends = {sock: far, far: sock}
            while ends:
                for one in select.select(list(ends), [], [], 20)[0]:
                    if part := one.recv(1 << 16):
                        ends.get(one, far).sendall(part)
                    else:
                        return


@contextlib.contextmanager
def behind(outer: Outer, tmp: Path, *, by_name: bool = False) -> Iterator[Proxy]:
    with (
        listening(outer) as port,
        running(tmp, names=NAMES, blocked=("127.0.0.7",), upstream=("outer.test", port), direct=("near.test",), by_name=by_name) as proxy,
    ):
        yield proxy


def test_checked_addresses_are_asked_for_one_after_the_other(tmp_path: Path) -> None:
    outer = Outer()
    with behind(outer, tmp_path) as proxy, listening(echo) as port, web() as site:
        with tunnel(proxy, f"site.test:{port}") as sock:
            sock.sendall(b"hi")
            assert sock.recv(10) == b"hi"
        assert outer.asked == [f"127.0.0.9:{port}", f"127.0.0.1:{port}"]
        plain = proxy.say(f"GET http://site.test:{site.port}/3 HTTP/1.1\r\nHost: site.test:{site.port}\r\nConnection: close\r\n\r\n".encode())
        assert plain.endswith(b"\r\n\r\nxxx")
        assert outer.asked[2:] == [f"127.0.0.9:{site.port}", f"127.0.0.1:{site.port}"]
        with tunnel(proxy, f"near.test:{port}") as sock:
            sock.sendall(b"straight")
            assert sock.recv(10) == b"straight"
        assert proxy.say(f"CONNECT evil.test:{port} HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")
        assert len(outer.asked) == 4


def test_without_a_resolver_names_are_asked_for(tmp_path: Path) -> None:
    outer = Outer()
    with behind(outer, tmp_path, by_name=True) as proxy, listening(echo) as port, tunnel(proxy, f"site.test:{port}") as sock:
        sock.sendall(b"hi")
        assert sock.recv(10) == b"hi"
    assert outer.asked == [f"site.test:{port}"]


def test_what_comes_with_the_answer_is_the_destination_s(tmp_path: Path) -> None:
    with behind(Outer(b"HTTP/1.0 200 OK\r\n\r\nhello"), tmp_path) as proxy, listening(echo) as port, tunnel(proxy, f"site.test:{port}") as sock:
        assert sock.recv(5) == b"hello"


def test_an_upstream_that_refuses_is_named(tmp_path: Path) -> None:
    with behind(Outer(b"HTTP/1.1 407 Who are you\r\n\r\n"), tmp_path) as proxy, listening(echo) as port:
        got = proxy.say(f"CONNECT site.test:{port} HTTP/1.1\r\n\r\n".encode())
        assert got.startswith(b"HTTP/1.1 502 ")
        assert b"407 Who are you" in got
