"""Bytes that moved become what may still move: the session's total and its rate. Pure; the time is told."""

from __future__ import annotations

PLENTY = 1 << 30


class Budget:
    def __init__(self, total: int | None, rate: int | None, now: float) -> None:
        self._total, self._rate = total, rate
        self._stored, self._filled = float(rate or 0), now  # one second's worth at once, at most
        self.moved = 0
        self.limited = total is not None or rate is not None

    @property
    def spent(self) -> bool:
        return self._total is not None and self.moved >= self._total

    def room(self, now: float) -> int:
        """Bytes that may move now; 0 = later."""
        if self._rate is None:
            return PLENTY if self._total is None else max(0, self._total - self.moved)
        self._stored = min(float(self._rate), self._stored + (now - self._filled) * self._rate)
        self._filled = now
        left = PLENTY if self._total is None else max(0, self._total - self.moved)
        return max(0, min(int(self._stored), left))

    def take(self, count: int) -> None:
        self.moved += count
        self._stored -= count
