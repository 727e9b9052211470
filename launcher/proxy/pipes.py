"""Pipes that the kernel moves bytes through, lent while something is on its way: an idle connection holds none.

What a pipe holds is what one call moves, and a call costs nearly the same for little and for much: a few are as big as they may be, and
those are lent first. All of them together take a third of what a user may have in pipes, and nearly nothing when little moves.
"""

from __future__ import annotations

import fcntl
import os

BIG, BIGS, SMALL = 1 << 20, 16, 128 << 10
KEPT = 4  # of each size, for whoever is next

Pipe = tuple[int, int]  # out, into


class Pipes:
    def __init__(self, most: int) -> None:
        self._most = most
        self._big: set[Pipe] = set()
        self._small: set[Pipe] = set()
        self._free_big: list[Pipe] = []
        self._free_small: list[Pipe] = []

    def take(self) -> Pipe | None:
        """An empty one; None = all are lent."""
        if self._free_big:
            return self._free_big.pop()
        if len(self._big) < BIGS:
            return self._make(BIG, self._big)
        if self._free_small:
            return self._free_small.pop()
        return self._make(SMALL, self._small)

    def _make(self, size: int, known: set[Pipe]) -> Pipe | None:
        if len(self._big) + len(self._small) >= self._most:
            return None
        try:
            pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        known.add(pipe)
        try:
            fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, size)
        except OSError:  # the user's share of pipe memory is used up: the usual size does
            pass
        return pipe

    def give(self, pipe: Pipe, *, empty: bool) -> None:
        """One that is not empty holds somebody's bytes: nobody else may get them."""
        free = self._free_big if pipe in self._big else self._free_small
        if empty and len(free) < KEPT:
            free.append(pipe)
        else:
            self._big.discard(pipe)
            self._small.discard(pipe)
            os.close(pipe[0])
            os.close(pipe[1])

    def close(self) -> None:
        for free in (self._free_big, self._free_small):
            while free:
                self.give(free.pop(), empty=False)
