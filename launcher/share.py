"""A session's share of the room that the audit log has: what a jail can have written must not wash out what others wrote. Pure; the time is told."""

from __future__ import annotations

from agent_sandbox.launcher.jsonline import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.audit import Log
    from agent_sandbox.launcher.jsonline import Plain

PART, DAY = 32, 86400  # of the room, as much in a day
FRAME = 160  # bytes of a line beside what is told here: time, session, hash


class Bucket:
    """So much at once, and so much a second."""

    def __init__(self, most: float, rate: float, now: float) -> None:
        self._most, self._rate = most, rate
        self._left, self._since = most, now

    def take(self, count: float, now: float) -> bool:
        self._left = min(self._most, self._left + (now - self._since) * self._rate)
        self._since = now
        if self._left < count:
            return False
        self._left -= count
        return True


class Share:
    def __init__(self, log: Log, now: float) -> None:
        most = (log.max_size or 0) / PART
        self._room = Bucket(most, most / DAY, now) if most else None

    def take(self, facts: dict[str, Plain], now: float) -> bool:
        """Is there room for this line?"""
        return self._room is None or self._room.take(len(dumps(facts)) + FRAME, now)
