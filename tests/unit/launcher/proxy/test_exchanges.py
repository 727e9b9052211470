"""Plain requests to servers that do not do what is usual."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.launcher.proxy.world import Proxy, listening, read_all, read_head, running, web

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with running(tmp_path, names={"site.test": ["127.0.0.1"]}) as one:
        yield one


def asking(port: int, method: str = "GET", version: str = "1.1", more: str = "") -> bytes:
    return f"{method} http://site.test:{port}/9 HTTP/{version}\r\nHost: site.test:{port}\r\n{more}\r\n".encode()


def read_answer(sock: socket.socket) -> bytes:
    return read_head(sock) + b"".join(sock.recv(1) for _ in range(5))


@pytest.mark.parametrize(("method", "asked", "last"), [("GET", 3, b"HTTP/1.1 200"), ("DELETE", 2, b"HTTP/1.1 502")])
def test_a_kept_connection_that_was_ended_is_replaced_only_if_asking_twice_does_no_harm(proxy: Proxy, method: str, asked: int, last: bytes) -> None:
    """The server takes the second request and ends without a word: nobody knows whether it did something."""
    heads: list[bytes] = []

    def once(sock: socket.socket) -> None:
        heads.append(read_head(sock))
        sock.sendall(HELLO)
        heads.append(read_head(sock))

    with listening(once) as port, proxy.connect() as sock:
        sock.sendall(asking(port, method))
        assert read_answer(sock).startswith(b"HTTP/1.1 200")
        sock.sendall(asking(port, method))
        assert read_head(sock)[:12] == last
        assert len(heads) == asked


def test_a_server_that_ends_a_kept_connection_in_between_is_asked_anew(proxy: Proxy) -> None:
    ended = threading.Semaphore(0)

    def once(sock: socket.socket) -> None:
        read_head(sock)
        sock.sendall(HELLO)
        sock.close()
        ended.release()

    with listening(once) as port, proxy.connect() as sock:
        for _ in range(3):
            sock.sendall(asking(port, "POST", more="Content-Length: 0\r\n"))
            assert read_answer(sock).endswith(b"hello")
            assert ended.acquire(timeout=10)
            proxy.entries(1)
        assert len(proxy.entries(3)) == 3


def test_an_answer_before_the_whole_body_reaches_the_client(proxy: Proxy) -> None:
    def refuse(sock: socket.socket) -> None:
        read_head(sock)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!")

    with listening(refuse) as port:
        for _ in range(30):  # the answer and the end of the way for the body come at almost the same time
            got = proxy.say(asking(port, "POST", more="Content-Length: 30000000\r\n") + bytes(3_000_000))
            assert got == b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!"  # the rest of the body is no request


def test_an_old_client_gets_no_chunks_and_no_interim_answer(proxy: Proxy) -> None:
    def modern(sock: socket.socket) -> None:
        read_head(sock)
        sock.sendall(b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        sock.recv(1)

    with listening(modern) as port:
        assert proxy.say(asking(port, version="1.0")) == b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcde"


def test_an_answer_that_is_cut_off_is_not_taken_for_whole(proxy: Proxy) -> None:
    for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc"):

        def cut(sock: socket.socket, answer: bytes = answer) -> None:
            read_head(sock)
            sock.sendall(answer)

        with listening(cut) as port, proxy.connect() as sock:
            sock.sendall(asking(port))
            with pytest.raises(ConnectionResetError):
                read_all(sock)


def test_requests_that_are_sent_ahead_are_answered_in_their_order(proxy: Proxy) -> None:
    with web() as site, proxy.connect() as sock:
        ahead = b"".join(asking(site.port).replace(b"/9 ", b"/%d " % count) for count in range(1, 30))
        sock.sendall(ahead + asking(site.port, more="Connection: close\r\n"))
        bodies = [part.partition(b"\r\n\r\n")[2] for part in read_all(sock).split(b"HTTP/1.1 200 OK")[1:]]
        assert bodies == [b"x" * count for count in range(1, 30)] + [b"x" * 9]
        assert site.handler.connections == 1
