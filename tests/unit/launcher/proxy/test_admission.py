"""Who is told of is served, however many others come; and who has stopped serving is told of nobody."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from agent_sandbox.launcher.proxy.admission import PATIENCE, WAITING, message_of
from agent_sandbox.launcher.proxy.judge import Verdict
from agent_sandbox.launcher.proxy.limits import Limits
from agent_sandbox.launcher.proxy.server import Server
from agent_sandbox.launcher.proxy.side import RESET

PAGE = b"GET /agent-sandbox/log HTTP/1.1\r\nHost: x\r\n\r\n"


class Refusing:
    def name(self, host: str, port: int) -> Verdict:
        return Verdict(allowed=False, rule="none")

    def address(self, host: str, port: int, address: str) -> Verdict:
        return self.name(host, port)


@dataclass
class Served:
    port: int
    told: int

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def tell(self, client: socket.socket) -> None:
        host, port = client.getsockname()
        os.write(self.told, message_of(bytes(10) + b"\xff\xff" + socket.inet_aton(host), port))


@contextmanager
def serving() -> Iterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port = listener.getsockname()[1]
    heard, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    wake, ring = os.pipe()
    server = Server(listener.detach(), Refusing(), lambda entry: None, Limits(), told=heard, page=lambda: "the page")
    thread = threading.Thread(target=server.run, args=(wake,))
    thread.start()
    try:
        yield Served(port, told)
    finally:
        os.write(ring, b"x")
        thread.join(10)
        for handle in (told, wake, ring):
            os.close(handle)


def test_many_who_are_not_told_of_do_not_keep_out_the_one_who_is() -> None:
    with serving() as served, ExitStack() as stack:
        others = [stack.enter_context(served.connect()) for _ in range(WAITING + 50)]
        began = time.monotonic()
        ours = stack.enter_context(served.connect())
        ours.sendall(PAGE)
        time.sleep(0.2)  # it has been accepted, and nobody has told of it yet
        served.tell(ours)
        assert ours.recv(4096).startswith(b"HTTP/1.1 200") and time.monotonic() - began < PATIENCE
        assert [other.recv(10) for other in others] == [b""] * len(others)


def test_one_who_comes_again_and_again_from_one_port_takes_no_more_than_a_place() -> None:
    """Each time it resets the connection, so that the port is free at once."""
    with serving() as served:
        before = len(os.listdir("/proc/self/fd"))
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            source = held.getsockname()
        for _ in range(100):
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                other.bind(source)
                other.connect(("127.0.0.1", served.port))
        time.sleep(0.1)
        assert len(os.listdir("/proc/self/fd")) <= before + 2
        with served.connect() as ours:  # control: it goes on
            served.tell(ours)
            ours.sendall(PAGE)
            assert ours.recv(4096).startswith(b"HTTP/1.1 200")


def test_who_has_stopped_listening_is_told_of_nobody() -> None:
    """The port may be another program's by then."""
    with serving() as served, served.connect() as ours:
        served.tell(ours)
        ours.sendall(PAGE)
        assert ours.recv(4096).startswith(b"HTTP/1.1 200")
        told = os.dup(served.told)
    try:
        os.write(told, bytes(18))
        raise AssertionError("somebody hears")
    except BrokenPipeError:
        pass
    finally:
        os.close(told)
