"""Pipes that the kernel moves bytes through, lent while something is on its way: an idle connection holds none."""

from __future__ import annotations

import fcntl
import os

BIG, BIGS, SMALL = 512 << 10, 16, 128 << 10  # all of them are a quarter of what a user may have in pipes


class Pipes:
    def __init__(self, most: int) -> None:
        self._most, self._made = most, 0
        self._free: list[tuple[int, int]] = []

    def take(self) -> tuple[int, int] | None:
        """(out, into), empty; None = all are lent."""
        if self._free:
            return self._free.pop()
        if self._made >= self._most:
            return None
        try:
            pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        self._made += 1
        try:
            fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, BIG if self._made <= BIGS else SMALL)
        except OSError:  # the user's share of pipe memory is used up: the usual size does
            pass
        return pipe

    def give(self, pipe: tuple[int, int], *, empty: bool) -> None:
        """One that is not empty holds somebody's bytes: nobody else may get them."""
        if empty:
            self._free.append(pipe)
        else:
            self._made -= 1
            os.close(pipe[0])
            os.close(pipe[1])

    def close(self) -> None:
        while self._free:
            self.give(self._free.pop(), empty=False)
