"""Connects that would block become ones that wait here, while others are answered.

Nothing here blocks: an internet socket says by itself when its connection stands, a unix socket whose listener is full is tried
again when the timer rings. The timer also finds callers that have died, whose time is over, or for whom a signal has come.
"""

from __future__ import annotations

import errno
import os
import select
import time
from fcntl import F_GETFL, F_SETFL, fcntl

from agent_sandbox.config.record import record
from agent_sandbox.launcher.supervisor import kernel
from agent_sandbox.launcher.supervisor.call import is_waiting, send

MOST = 128  # that wait at once; one more is told to try again
SOON, LATER = 5, 50  # milliseconds between two looks: where a unix socket waits, and where none does
NOTICE = 0.05  # seconds between two looks at a caller's signals
ERESTARTSYS = 512  # to a caller that a signal waits for: EINTR, or the same call once more, as the signal's handler wants it
IN_PROGRESS = (errno.EINPROGRESS, errno.EALREADY)


@record
class Wait:
    id: int
    tid: int
    socket: int
    address: bytes
    full: bool  # a unix socket, whose listener has no room
    target: int  # holds the address's file open; -1: there is none
    until: float | None


def dial(socket: int, address: bytes) -> int:
    """Connect without blocking: 0 or an error.

    The flag is the caller's as well, for the moment that it takes: only its own thread, which waits for us, uses the socket.
    """
    flags = fcntl(socket, F_GETFL)
    if flags & os.O_NONBLOCK:
        return kernel.connect(socket, address)
    fcntl(socket, F_SETFL, flags | os.O_NONBLOCK)
    try:
        result = kernel.connect(socket, address)
        if result == errno.EINPROGRESS:  # on this machine it stands by now
            result = kernel.connect(socket, address)
    finally:
        fcntl(socket, F_SETFL, flags)
    return result


def blocks(socket: int) -> bool:
    return not fcntl(socket, F_GETFL) & os.O_NONBLOCK


class Waiting:
    def __init__(self, listener: int, poll: select.epoll) -> None:
        self._listener, self._poll = listener, poll
        self._waits: dict[int, Wait] = {}
        self._pace = 0
        self._noticed = 0.0
        self.timer = kernel.make_timer()
        poll.register(self.timer, select.EPOLLIN)

    def has_room(self) -> bool:
        return len(self._waits) < MOST

    def add(self, wait: Wait) -> None:
        if not wait.full:
            self._poll.register(wait.socket, select.EPOLLOUT)
        self._waits[wait.socket] = wait
        self._set_pace()

    def ready(self, socket: int) -> None:
        """An internet connection stands or has failed."""
        if socket in self._waits:
            self._try(self._waits[socket])

    def ring(self) -> None:
        os.read(self.timer, 8)
        now = time.monotonic()
        notice = now - self._noticed >= NOTICE
        if notice:
            self._noticed = now
        for wait in list(self._waits.values()):
            self._look(wait, now, notice=notice)

    def _look(self, wait: Wait, now: float, *, notice: bool) -> None:
        if not is_waiting(self._listener, wait.id):
            self._end(wait)
        elif notice and has_signal(wait.tid):
            self._answer(wait, ERESTARTSYS)
        elif wait.until is not None and now >= wait.until:
            self._answer(wait, errno.EAGAIN if wait.full else errno.EINPROGRESS)
        elif wait.full:
            self._try(wait)

    def _try(self, wait: Wait) -> None:
        result = dial(wait.socket, wait.address)
        if result not in IN_PROGRESS and not (wait.full and result == errno.EAGAIN):
            self._answer(wait, result)

    def _answer(self, wait: Wait, error: int) -> None:
        send(self._listener, wait.id, 0, error)
        self._end(wait)

    def _end(self, wait: Wait) -> None:
        del self._waits[wait.socket]
        if not wait.full:
            self._poll.unregister(wait.socket)  # closing ours would not: the caller has the socket still
        for descriptor in (wait.socket, wait.target):
            if descriptor >= 0:
                os.close(descriptor)
        self._set_pace()

    def _set_pace(self) -> None:
        pace = 0 if not self._waits else SOON if any(wait.full for wait in self._waits.values()) else LATER
        if pace != self._pace:
            self._pace = pace
            kernel.set_timer(self.timer, pace)


def has_signal(tid: int) -> bool:
    """One that is not blocked. While its call is with us a caller hears only of what kills it."""
    try:
        with open(b"/proc/%d/status" % tid, "rb") as file:
            masks = {line[:6]: int(line[7:], 16) for line in file if line.startswith((b"SigPnd", b"ShdPnd", b"SigBlk"))}
    except OSError:
        return False
    return bool((masks[b"SigPnd"] | masks[b"ShdPnd"]) & ~masks[b"SigBlk"])
