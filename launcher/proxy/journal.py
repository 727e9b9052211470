"""Entries become lines of the audit log, off the loop, and a page of the latest ones for the jail.

A lock on the log may be another's for a moment: a thread waits for it, and no connection does. A jail that makes connections as fast
or as long as it can must not wash older lines out of the log: beyond a rate, and beyond a share of the log's room in a day, they are
counted, and the count is a line.
"""

from __future__ import annotations

import _thread
import time
from collections import deque

from agent_sandbox.launcher.audit import Audit
from agent_sandbox.launcher.jsonline import dumps
from agent_sandbox.launcher.share import Bucket, Share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.proxy.entry import Entry

AT_ONCE, A_SECOND = 2000, 20  # lines that are written whole
KEPT = 500  # on the page
STACK = 256 << 10
PATIENCE = 2.0  # seconds for the last lines


class Journal:
    def __init__(self, audit: Audit, session: str) -> None:
        self._audit, self._session = audit, session
        self._lines: deque[dict[str, object]] = deque()
        self._page: deque[dict[str, object]] = deque(maxlen=KEPT)
        self._free = Bucket(AT_ONCE, A_SECOND, time.monotonic())
        self._share = Share(audit.log, time.monotonic())
        self._left_out = 0
        self._lock = _thread.allocate_lock()  # held by who writes
        self._busy = False

    def note(self, entry: Entry) -> None:
        facts = {name: value for name, value in vars(entry).items() if value != "" or name in ("host", "verdict")}
        self._page.append({"time": time.strftime("%H:%M:%S"), **facts})
        if self._may_write(facts, time.monotonic()):
            self._queue(facts)
        else:
            self._left_out += 1

    def _may_write(self, facts: dict[str, object], now: float) -> bool:
        """The second is asked only where the first gives: what is not written costs no room."""
        return self._free.take(1, now) and self._share.take(facts, now)  # type: ignore[arg-type]

    def _queue(self, facts: dict[str, object]) -> None:
        if self._left_out:
            self._lines.append({"verdict": "left out", "connections": self._left_out})
            self._left_out = 0
        self._lines.append(facts)
        if not self._busy:
            self._busy = True
            before = _thread.stack_size(STACK)
            try:
                _thread.start_new_thread(self._write, ())
            except RuntimeError:  # the user has no thread left: here, then
                self._write()
            finally:
                _thread.stack_size(before)

    def _write(self) -> None:
        with self._lock:
            while True:
                while self._lines:
                    self._audit.write("network", {"session": self._session, **self._lines.popleft()})  # type: ignore[dict-item]
                self._busy = False
                if not self._lines:
                    return

    def page(self) -> str:
        return "".join(dumps(facts) + "\n" for facts in list(self._page))  # type: ignore[arg-type]

    def close(self) -> None:
        """Until the last line is written, or takes too long."""
        if self._left_out:
            self._lines.append({"verdict": "left out", "connections": self._left_out})
        if self._lock.acquire(timeout=PATIENCE):
            self._lock.release()
            self._write()
