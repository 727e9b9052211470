"""One stub, from its first byte to our last: what it says becomes a Request, what we say goes out as fast as it listens.

A stub may be slow, dead, or out to harm: what it says is taken piece by piece and never waited for, and what it does not take
from us is held up to a bound that the server watches.
"""

from __future__ import annotations

import os
import time

from agent_sandbox.chaperon.wire import Incoming, WireError
from agent_sandbox.launcher.poller import ENDED, NOTHING, READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.gate import Line
    from agent_sandbox.chaperon.scheduler import Process
    from agent_sandbox.chaperon.wire import Request
    from agent_sandbox.launcher.poller import Poller

PIECE = 64 << 10
PIECES = 16  # at a time: the others have their turn as well


class Talk:
    """`gone` is called once, when the stub is not there any more; `drained` whenever it has taken everything."""

    def __init__(self, line: Line, poller: Poller, gone: Callable[[Talk], None], drained: Callable[[Talk], None]) -> None:
        self._hear, self._tell, self._poller = line.hear, line.tell, poller
        self._gone, self._drained = gone, drained
        self._incoming = Incoming()
        self._left = bytearray()
        self.request: Request | None = None  # whole; dropped when it has become a process
        self.process: Process | None = None
        self.name = ""
        self.words: tuple[str, ...] = ()
        self.receiving = True
        self.big = self.ended = self.closed = False
        self.started = self.progress = time.monotonic()

    @property
    def size(self) -> int:
        """Of the request, as it says itself; 0 = it has not said so yet."""
        return self._incoming.size

    @property
    def unsaid(self) -> int:
        return len(self._left)

    def hear(self) -> bool:
        """Take what there is. True = the request is whole."""
        for _ in range(PIECES):
            try:
                piece = os.read(self._hear, PIECE)
            except BlockingIOError:
                break
            if not piece:
                self._gone(self)
                return False
            self.progress = time.monotonic()
            if request := self._incoming.feed(piece):
                self.request, self._incoming = request, Incoming()
                self.name, self.words, self.receiving = request.command, request.words, False
                return True
            if self.size > PIECE and not self.big:  # whether so much is taken is not ours to say
                break
        if not self._incoming.begun:
            raise WireError("nothing was said before the announcement")
        return False

    def expect(self, call: Callable[[int], None]) -> None:
        self._poller.watch(self._hear, READ, call)

    def stop_hearing(self) -> None:
        """From now on only its end counts. What else it says stays where it is."""
        self._poller.watch(self._hear, NOTHING, self._on_end)

    def refuse(self) -> None:
        """The rest of what it says is not wanted."""
        self.receiving = False
        if not self.closed:
            self.stop_hearing()

    def leave(self) -> None:
        """Not even that, for a while."""
        self._poller.drop(self._hear)

    def say(self, data: bytes) -> None:
        """As much as it takes now; the rest when it listens again."""
        if self.closed or not data:
            return
        if not self._left:
            self.progress = time.monotonic()
        self._left += data
        self._flush()

    def _flush(self) -> None:
        while self._left and not self.closed:
            try:
                count = os.write(self._tell, memoryview(self._left)[:PIECE])
            except BlockingIOError:
                self._poller.watch(self._tell, WRITE, self._on_room)
                return
            except OSError:
                self._gone(self)
                return
            del self._left[:count]
            self.progress = time.monotonic()
        if not self.closed:
            self._poller.watch(self._tell, NOTHING, self._on_room)
            self._drained(self)

    def _on_end(self, events: int) -> None:
        if events & ENDED:
            self._gone(self)

    def _on_room(self, events: int) -> None:
        if events & ENDED:
            self._gone(self)
        else:
            self._flush()

    def close(self) -> None:
        """Nothing is left of the line; what runs for it may go on."""
        if self.closed:
            return
        self.closed, self.receiving = True, False
        self._left.clear()
        for handle in (self._hear, self._tell):
            self._poller.drop(handle)
            os.close(handle)
