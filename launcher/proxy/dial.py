"""Addresses become the connection that is there first: the next is tried when one fails, and beside it when it is slow."""

from __future__ import annotations

from agent_sandbox.config.record import record
from agent_sandbox.launcher.proxy.attempt import Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.proxy.parts import Parts
    from agent_sandbox.launcher.proxy.side import Side
    from agent_sandbox.launcher.proxy.timers import Timer


@record
class Way:
    """Where to connect, what to ask for there if it is a proxy, and the destination's address that this reaches."""

    address: str
    port: int
    ask: bytes
    reaches: str


class Dial:
    def __init__(self, ways: list[Way], parts: Parts, done: Callable[[Side | None, str, str], None]) -> None:
        """`done` gets the connection and the address it reaches, or the reasons, once."""
        self._ways, self._parts, self._done = interleaved(ways), parts, done
        self._running: dict[Attempt, Way] = {}
        self._problems: list[str] = []
        self._timer: Timer | None = None
        self.over = False

    def start(self) -> None:
        """A loop, and no recursion: every address may fail at once."""
        while not self.over and self._ways:
            way = self._ways.pop(0)
            attempt = Attempt(way.address, way.port, way.ask, self._parts.poller, self._on_done)
            self._running[attempt] = way
            attempt.start()
            if attempt in self._running:
                break
        if not self.over and not self._running:
            self._finish(None, "", "; ".join(dict.fromkeys(self._problems)) or "there is no address")
        elif not self.over and self._ways:
            self._timer = self._parts.timers.after(self._parts.limits.stagger_seconds, self.start)

    def _on_done(self, attempt: Attempt, side: Side | None, problem: str) -> None:
        way = self._running.pop(attempt)
        if side:
            self._finish(side, way.reaches, "")
            return
        self._problems.append(f"{way.reaches}: {problem}")
        if attempt.waited:  # the one that fails inside `start` is followed there
            self._hush()
            self.start()

    def _finish(self, side: Side | None, address: str, problem: str) -> None:
        self.stop()
        self._done(side, address, problem)

    def _hush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def stop(self) -> None:
        self.over = True
        self._hush()
        for attempt in self._running:
            attempt.stop()
        self._running.clear()


def interleaved(ways: list[Way]) -> list[Way]:
    """The families in turn, beginning with that of the first, each in the order the resolver gave."""
    sixes, fours = ([way for way in ways if (":" in way.reaches) is six] for six in (True, False))
    first, second = (sixes, fours) if ways and ":" in ways[0].reaches else (fours, sixes)
    mixed = [way for pair in zip(first, second, strict=False) for way in pair]
    shorter = min(len(first), len(second))
    return mixed + first[shorter:] + second[shorter:]
