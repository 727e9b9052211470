"""Being asked to stop (Ctrl-C, SIGTERM, SIGHUP) is noted, and heard between two steps: never in the middle of one."""

from __future__ import annotations

import contextlib
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_asked: list[int] = []


class Interrupted(Exception):
    """Somebody asked us to stop."""


def check() -> None:
    if _asked:
        raise Interrupted(f"stopped by {signal.Signals(_asked[0]).name}")


@contextlib.contextmanager
def noted() -> Iterator[None]:
    before = {number: signal.signal(number, _note) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _note(number: int, frame: FrameType | None) -> None:
    _asked.append(number)
