"""Services of outside that a jail must not reach: each greets whoever comes."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

GREETING = b"hello"


@contextlib.contextmanager
def listener(family: int, address: object, kind: int = socket.SOCK_STREAM) -> Iterator[socket.socket]:
    """Greets whoever connects, or sends."""
    with socket.socket(family, kind) as server:
        server.bind(address)
        if isinstance(address, str) and address.startswith("/"):
            os.chmod(address, 0o777)
        if kind == socket.SOCK_DGRAM:
            serve = _answer
        else:
            server.listen()
            serve = _greet
        threading.Thread(target=_until_closed, args=(serve, server), daemon=True).start()
        yield server
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
    if isinstance(address, str) and address.startswith("/"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(address)


def _until_closed(serve: Callable[[socket.socket], None], server: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            serve(server)


def _greet(server: socket.socket) -> None:
    with server.accept()[0] as connection:
        connection.sendall(GREETING)


def _answer(server: socket.socket) -> None:
    _, sender = server.recvfrom(100)
    if sender:
        server.sendto(GREETING, sender)
