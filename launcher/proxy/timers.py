"""Moments become calls."""

from __future__ import annotations

import time
from heapq import heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None

    def __lt__(self, other: Timer) -> bool:
        return self.when < other.when


class Timers:
    def __init__(self) -> None:
        self._heap: list[Timer] = []

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(time.monotonic() + seconds, call)
        heappush(self._heap, timer)
        return timer

    def wait(self, most: float) -> float:
        """Seconds until the next call is due."""
        while self._heap and self._heap[0].call is None:
            heappop(self._heap)
        return max(0.0, min(most, self._heap[0].when - time.monotonic())) if self._heap else most

    def run(self) -> None:
        now = time.monotonic()
        while self._heap and self._heap[0].when <= now:
            timer = heappop(self._heap)
            if timer.call:
                timer.call()
