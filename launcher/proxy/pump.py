"""One direction: what one side says is moved to the other, by the kernel where it can be, as fast as the slower of them is.

What a sink does not take stays with its source: nothing is read while something is held.
"""

from __future__ import annotations

import os
import time

from agent_sandbox.launcher.proxy.side import PIECE
from agent_sandbox.launcher.proxy.target import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.proxy.chunks import Chunks
    from agent_sandbox.launcher.proxy.parts import Parts
    from agent_sandbox.launcher.proxy.side import Side

DONE, CUT, SOURCE_LOST, SINK_LOST, SPENT = "done", "cut", "source lost", "sink lost", "spent"
FLAGS = os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE
MOST = 1 << 20
MUCH = 32 << 10  # at a time: it flows


class Pump:
    """`first` goes out before anything else and costs nothing; then `length` bytes, or all there are; `chunks` says itself where it ends.
    `ended` is called once."""

    def __init__(
        self, source: Side, sink: Side, parts: Parts, ended: Callable[[Pump, str], None], *,
        first: bytes = b"", length: int | None = None, chunks: Chunks | None = None,
    ) -> None:  # fmt: skip
        self.source, self.sink, self._parts, self._ended = source, sink, parts, ended
        self._text, self._left, self._chunks = first, length, chunks
        self._pipe: tuple[int, int] | None = None
        self._piped = self._last = 0
        self._source_ended = self.over = False
        self._free = length is None and chunks is None and source.plain and sink.plain and not parts.budget.limited
        self._light = False  # a few bytes now and then: holds nothing, and waits for its source alone
        self.moved = 0
        self.progress = time.monotonic()
        if first and source.early and not chunks:
            self._join()

    def _join(self) -> None:
        """What has come already goes out with the first bytes."""
        room = self._parts.budget.room(self.progress)
        piece = bytes(self.source.early[: room if self._left is None else min(room, self._left)])
        del self.source.early[: len(piece)]
        self._text += piece
        self._count(len(piece))

    def run(self) -> None:
        """One piece, and the others have their turn: what comes meanwhile makes the next one bigger, which costs less than many small ones."""
        if self._light:
            self._pass_few()
        elif not self.over and self._flush() and not self._ends() and self._fill():
            self._finish_turn()

    def _finish_turn(self) -> None:
        if self._flush() and not self._ends():
            self._wait_for_source()

    def _pass_few(self) -> None:
        """The same by the shortest way: requests and answers of a kept connection come by the thousand."""
        try:
            piece = os.read(self.source.fd, PIECE)
        except BlockingIOError:
            return
        except OSError:
            self._end(SOURCE_LOST)
            return
        self.progress = time.monotonic()
        self._count(size := len(piece))
        try:
            sent = os.write(self.sink.fd, piece)
        except OSError:
            sent = 0  # if it is not for a moment, the next try says so
        if sent < size or not size or size >= MUCH:
            self._light, self._text, self._source_ended = False, piece[sent:], not size
            self._finish_turn()

    def _ends(self) -> bool:
        """All has been moved, or no more comes."""
        if self._source_ended:
            self._end(CUT if self._left or self._chunks else DONE)
        elif self._left == 0:
            self._end(DONE)
        return self.over

    def _flush(self) -> bool:
        """True = nothing is held."""
        try:
            while self._text:
                self._text = self._text[self.sink.write(self._text) :]
            while self._piped and self._pipe:
                self._piped -= os.splice(self._pipe[0], self.sink.fd, self._piped, flags=FLAGS)
        except BlockingIOError:
            self.source.on_read(None)
            self.sink.on_write(self.run)
            return False
        except OSError:
            self._end(SINK_LOST)
            return False
        return True

    def _fill(self) -> bool:
        """False = there is nothing to move now."""
        self.progress = time.monotonic()
        room = self._parts.budget.room(self.progress)
        if not room:
            self._pause()
            return False
        if self._left is not None:
            room = min(room, self._left)
        try:
            self._take(room)
        except BlockingIOError:
            self._wait_for_source()
            return False
        except OSError:
            self._end(SOURCE_LOST)
            return False
        except Malformed:
            self._end(CUT)
            return False
        return True

    def _take(self, room: int) -> None:
        if self.source.early:
            piece = bytes(self.source.early[:room])
            del self.source.early[: len(piece)]
            self._hold(piece)
        elif self._chunks or self._last < MUCH or not self._has_pipe():  # for a few bytes a copy is cheaper
            piece = self.source.read(min(room, PIECE))
            self._source_ended = not piece
            self._hold(piece)
        else:
            assert self._pipe
            count = os.splice(self.source.fd, self._pipe[1], min(room, MOST), flags=FLAGS)
            self._source_ended = not count
            self._piped += count
            self._count(count)

    def _hold(self, piece: bytes) -> None:
        self._count(len(piece))
        if self._chunks:
            self._text = self._chunks.feed(piece)
            if self._chunks.done:
                self.source.early[:0] = self._chunks.rest
                self._chunks, self._left = None, 0
        else:
            self._text = piece

    def _count(self, count: int) -> None:
        self.moved += count
        self._last = count
        self._parts.budget.take(count)
        if self._left is not None:
            self._left -= count

    def _has_pipe(self) -> bool:
        if self._pipe is None and self.source.plain and self.sink.plain:
            self._pipe = self._parts.pipes.take()
        return self._pipe is not None

    def _wait_for_source(self) -> None:
        self._give_pipe()
        self.sink.on_write(None)
        self.source.on_read(self.run)
        self._light = self._free and self._last < MUCH and not self.source.ready
        if self.source.ready:  # nothing will tell that it is there
            self._parts.timers.after(0, self.run)

    def _pause(self) -> None:
        """The session's rate is used up for now, or its bytes for ever."""
        if self._parts.budget.spent:
            self._end(SPENT)
            return
        self._give_pipe()
        self.sink.on_write(None)
        self.source.on_read(None)
        self._parts.timers.after(0.02, self.run)

    def _give_pipe(self) -> None:
        if self._pipe:
            self._parts.pipes.give(self._pipe, empty=not self._piped)
            self._pipe, self._piped = None, 0

    def _end(self, outcome: str) -> None:
        if not self.over:
            self.stop()
            self._ended(self, outcome)

    def stop(self) -> None:
        """Nothing more is moved, and nobody is told."""
        if self.over:
            return
        self.over, self._light = True, False
        self._give_pipe()
        self.source.on_read(None)
        self.sink.on_write(None)
