"""One address becomes a connection to it, straight or through another proxy."""

from __future__ import annotations

import errno
import os
from _socket import AF_INET, AF_INET6, SO_ERROR, SO_KEEPALIVE, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_STREAM, SOL_SOCKET, socket

from agent_sandbox.launcher.proxy.side import Side
from agent_sandbox.launcher.proxy.target import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.poller import Poller

LONGEST_ANSWER = 16 << 10


class Attempt:
    """`ask` is said to who answers, if it is a proxy. `done` gets the connection or the reason, once."""

    def __init__(self, address: str, port: int, ask: bytes, poller: Poller, done: Callable[[Attempt, Side | None, str], None]) -> None:
        self._address, self._port, self._ask, self._poller, self._done = address, port, ask, poller, done
        self._sock: socket
        self._side: Side | None = None
        self.waited = False  # it did not fail at once

    def start(self) -> None:
        family = AF_INET6 if ":" in self._address else AF_INET
        try:
            sock = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
            sock.setsockopt(SOL_SOCKET, SO_KEEPALIVE, 1)
            code = sock.connect_ex((self._address, self._port))
        except OSError as error:
            self._done(self, None, error.strerror or str(error))
            return
        if code not in (0, errno.EINPROGRESS):
            sock.close()
            self._done(self, None, os.strerror(code))
            return
        self._sock, self.waited = sock, True
        self._side = Side(sock, self._poller, lambda error: self._fail(str(error)))
        self._side.on_write(self._on_connected)

    def _on_connected(self) -> None:
        assert self._side
        if code := self._sock.getsockopt(SOL_SOCKET, SO_ERROR):
            self._fail(os.strerror(code))
            return
        self._side.on_write(None)
        if not self._ask:
            self._succeed()
            return
        os.write(self._side.fd, self._ask)  # a fresh connection takes that much
        self._side.on_read(self._on_answer)

    def _on_answer(self) -> None:
        assert self._side
        try:
            more = self._side.read_early(LONGEST_ANSWER)
        except BlockingIOError:
            return
        except OSError as error:
            self._fail(error.strerror or str(error))
            return
        end = self._side.early.find(b"\r\n\r\n")
        if end < 0 and more and len(self._side.early) < LONGEST_ANSWER:
            return
        status = bytes(self._side.early[:end]).split(b"\r\n")[0] if end >= 0 else b""
        if not status.startswith((b"HTTP/1.1 2", b"HTTP/1.0 2")):
            self._fail(f"the upstream proxy answered: {_shown(status)}")
            return
        del self._side.early[: end + 4]  # what comes after it is the destination's
        self._side.on_read(None)
        self._succeed()

    def _succeed(self) -> None:
        side, self._side = self._side, None
        self._done(self, side, "")

    def _fail(self, why: str) -> None:
        if self._side:
            self.stop()
            self._done(self, None, why)

    def stop(self) -> None:
        if self._side:
            self._side.close()
            self._side = None


def _shown(status: bytes) -> str:
    text = status[:80].decode("ascii", "replace")
    return "".join(char if char.isprintable() else "?" for char in text) or "nothing"


def asking(host: str, port: int) -> bytes:
    """What a proxy is asked for; the caller has checked both."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if not where.isascii() or not where.isprintable() or " " in where:
        raise Malformed("the destination is malformed")
    return f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode()
