"""Descriptors become calls: who watches one is called when there is something to do with it."""

from __future__ import annotations

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[int], None]  # with the events

READ, WRITE, ENDED = select.EPOLLIN, select.EPOLLOUT, select.EPOLLHUP | select.EPOLLERR
NOTHING = 0  # but the end, which the kernel always tells


class Poller:
    def __init__(self) -> None:
        self._poll = select.epoll()
        self._calls: dict[int, tuple[int, Call]] = {}
        self._fresh: set[int] = set()

    def watch(self, handle: int, events: int, call: Call) -> None:
        known = self._calls.get(handle)
        if known is None:
            self._poll.register(handle, events)
            self._fresh.add(handle)
        elif known[0] != events:
            self._poll.modify(handle, events)
        self._calls[handle] = (events, call)

    def drop(self, handle: int) -> None:
        """Before it is closed: the number may soon be another's."""
        if self._calls.pop(handle, None):
            self._poll.unregister(handle)

    def turn(self, seconds: float) -> None:
        """Wait, and call. A call may close what the next event is about, and open something under the same number: both are
        skipped. What is true of the new one is told the next time."""
        self._fresh.clear()
        for handle, events in self._poll.poll(seconds, 256):
            known = self._calls.get(handle)
            if known and handle not in self._fresh:
                known[1](events)

    def close(self) -> None:
        self._poll.close()
