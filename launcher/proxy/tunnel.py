"""Two sides become one connection: both directions, each with its own end."""

from __future__ import annotations

from agent_sandbox.launcher.proxy.pump import DONE, Pump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.proxy.parts import Parts
    from agent_sandbox.launcher.proxy.side import Side


class Tunnel:
    def __init__(self, near: Side, far: Side, parts: Parts, hello: bytes, ended: Callable[[bool], None]) -> None:
        """`hello` is said to the near side first; `ended` is told whether something broke."""
        self._ended = ended
        self._open = 2
        self.out = Pump(near, far, parts, self._on_end)
        self.back = Pump(far, near, parts, self._on_end, first=hello)

    def start(self) -> None:
        self.back.run()
        if not self.out.over:
            self.out.run()

    @property
    def progress(self) -> float:
        return max(self.out.progress, self.back.progress)

    @property
    def moved(self) -> int:
        return self.out.moved + self.back.moved

    def _on_end(self, pump: Pump, outcome: str) -> None:
        """The end of one direction is told to its sink, which may go on talking."""
        self._open -= 1
        if outcome != DONE:
            self.stop()
            self._ended(True)
        elif self._open:
            pump.sink.shut()
        else:
            self._ended(False)

    def stop(self) -> None:
        self.out.stop()
        self.back.stop()
