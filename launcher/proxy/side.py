"""One socket: who waits to read from it, who waits to write to it, and what was read of it too early."""

from __future__ import annotations

import os
from _socket import IPPROTO_TCP, SHUT_WR, SO_LINGER, SOL_SOCKET, TCP_CONGESTION, TCP_NODELAY

from agent_sandbox.launcher.poller import ENDED, NOTHING, READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable

    from agent_sandbox.launcher.poller import Poller

    Wait = Callable[[], None]

RESET = b"\1\0\0\0\0\0\0\0"  # struct linger: no lingering, the other end is told that something broke
PIECE = 64 << 10


class Side:
    def __init__(self, sock: socket, poller: Poller, failed: Callable[[Exception], None]) -> None:
        self._sock, self._poller, self._failed = sock, poller, failed
        self.fd = sock.fileno()
        self.plain = True  # the kernel can move what is said here by itself
        self.early = bytearray()
        self._reader: Wait | None = None
        self._writer: Wait | None = None
        self._lost: Wait | None = None
        self._told: int | None = None  # what the poller watches for
        self.closed = False
        try:
            sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
        except OSError:  # reset already: the next read says so
            pass

    def on_read(self, call: Wait | None) -> None:
        if call != self._reader:
            self._reader = call
            self._settle()

    def on_write(self, call: Wait | None) -> None:
        if call != self._writer:
            self._writer = call
            self._settle()

    def stays_here(self) -> None:
        """It leads to another process of this machine: no network is there to be spared by sending more slowly than one could."""
        try:
            self._sock.setsockopt(IPPROTO_TCP, TCP_CONGESTION, b"reno")
        except OSError:
            pass

    def on_lost(self, call: Wait | None) -> None:
        """Called when the connection breaks while nobody reads or writes."""
        self._lost = call
        self._settle()

    def owned_by(self, failed: Callable[[Exception], None]) -> None:
        """Whom to tell of an error of ours: it stays with one connection."""
        self._failed = failed

    def _wanted(self) -> int:
        return (READ if self._reader else 0) | (WRITE if self._writer else 0)

    def _settle(self) -> None:
        """That nobody reads any more is told to the kernel when it has something to read: most often somebody reads again before that."""
        if self.closed:
            return
        wanted = self._wanted()
        if self._told is None or wanted & ~self._told or self._told & ~wanted & WRITE:
            self._tell(wanted)

    def _tell(self, wanted: int) -> None:
        """With nobody who waits it is not watched at all: an end that nobody takes would wake us for ever."""
        if wanted or self._lost:
            self._told = wanted
            self._poller.watch(self.fd, wanted or NOTHING, self._on_event)
        elif self._told is not None:
            self._told = None
            self._poller.drop(self.fd)

    def _on_event(self, events: int) -> None:
        reader, writer = self._reader, self._writer
        try:
            if events & (READ | ENDED) and reader:
                reader()
                if events == READ:  # as nearly always
                    return
            if events & (WRITE | ENDED) and self._writer and not self.closed:
                self._writer()
            if not (reader or writer or self.closed):
                self._on_unwanted(events)
            elif events & READ and not reader and not self.closed:
                self._tell(self._wanted())
        except Exception as error:
            self._failed(error)

    def _on_unwanted(self, events: int) -> None:
        if events & ENDED and self._lost:
            self._lost()
        else:
            self._tell(self._wanted())

    def read_early(self, most: int = PIECE) -> bool:
        """Take what there is; False = it ended. BlockingIOError = nothing is there yet."""
        piece = self.read(most)
        self.early += piece
        return bool(piece)

    def read(self, most: int = PIECE) -> bytes:
        return os.read(self.fd, most)

    def write(self, text: bytes) -> int:
        return os.write(self.fd, text)

    @property
    def ready(self) -> bool:
        """There is something to read that the kernel does not know of."""
        return bool(self.early)

    def give_away(self) -> tuple[socket, bytes]:
        """The socket, and what was read of it too early: nothing of them is ours any more."""
        self.closed = True
        self._reader = self._writer = self._lost = None
        self._poller.drop(self.fd)
        return self._sock, bytes(self.early)

    def shut(self) -> None:
        """Nothing more is written."""
        try:
            self._sock.shutdown(SHUT_WR)
        except OSError:  # the other end is gone
            pass

    def close(self, *, broken: bool = False) -> None:
        if self.closed:
            return
        self.closed = True
        self._reader = self._writer = self._lost = None
        self._poller.drop(self.fd)
        if broken:
            try:
                self._sock.setsockopt(SOL_SOCKET, SO_LINGER, RESET)
            except OSError:
                pass
        self._sock.close()
