"""Who may come in, where others than the jail can reach the listener: only connections that the jail's supervisor made, and told of.

It tells when a connection stands, which may be after it was accepted here: such a one waits a moment. Who is never told of gets no answer.
"""

from __future__ import annotations

import os
import time
from _socket import AF_INET6, inet_ntop

from agent_sandbox.launcher.poller import READ
from agent_sandbox.launcher.proxy.target import as_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.poller import Poller

    Peer = tuple[str, int]

SIZE = 18  # an IPv6 address, or an IPv4 one in that form, and a port
PIECE = SIZE * 200
PATIENCE = 1.0  # seconds that an unknown one waits
LASTING = 10.0  # seconds that one who was told of may take to come
WAITING = 256  # at one time; for the next one the first is turned away: of ours it is told in much less time than so many take to come


class Admission:
    def __init__(self, told: int, poller: Poller, take: Callable[[int], None]) -> None:
        self._told, self._poller, self._take = told, poller, take
        self._expected: dict[Peer, float] = {}  # oldest first
        self._unknown: dict[Peer, tuple[int, float]] = {}  # oldest first
        os.set_blocking(told, False)
        poller.watch(told, READ, self._on_told)

    def ask(self, handle: int, peer: Peer) -> None:
        self._hear()
        if self._expected.pop(peer, None) is not None:
            self._take(handle)
        else:
            if peer in self._unknown:  # who was there before has gone, or the port would not be another's
                self._turn_away(peer)
            elif len(self._unknown) >= WAITING:
                self._turn_away(next(iter(self._unknown)))
            self._unknown[peer] = (handle, time.monotonic())

    def _turn_away(self, peer: Peer) -> None:
        os.close(self._unknown.pop(peer)[0])

    def _on_told(self, events: int) -> None:
        self._hear()

    def _hear(self) -> None:
        """The writer sends whole messages, and the kernel keeps them whole."""
        while self._told >= 0:
            try:
                piece = os.read(self._told, PIECE)
            except BlockingIOError:
                return
            if not piece:  # the supervisor has ended, and the jail with it
                self._stop_hearing()
            for at in range(0, len(piece), SIZE):
                self._expect(peer_of(piece[at : at + SIZE]))

    def _expect(self, peer: Peer) -> None:
        waiting = self._unknown.pop(peer, None)
        if waiting:
            self._take(waiting[0])
        else:
            self._expected[peer] = time.monotonic()

    def tick(self, now: float) -> None:
        for peer in [peer for peer, (_, since) in self._unknown.items() if now - since > PATIENCE]:
            self._turn_away(peer)
        for peer in [peer for peer, since in self._expected.items() if now - since > LASTING]:
            del self._expected[peer]

    def _stop_hearing(self) -> None:
        if self._told >= 0:
            self._poller.drop(self._told)
            os.close(self._told)
            self._told = -1

    def close(self) -> None:
        self._stop_hearing()
        for handle, _ in self._unknown.values():
            os.close(handle)
        self._unknown.clear()


def peer_of(message: bytes) -> Peer:
    return as_address(inet_ntop(AF_INET6, message[:16])), int.from_bytes(message[16:18], "big")


def message_of(address: bytes, port: int) -> bytes:
    """`address` in 16 bytes."""
    return address + port.to_bytes(2, "big")
