"""What happens to one destination becomes its line in the log, once."""

from __future__ import annotations

import time

from agent_sandbox.launcher.proxy.entry import ALLOWED, FAILED, REFUSED, Entry
from agent_sandbox.launcher.proxy.route import Failed, Reached, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.proxy.target import Target


class Trace:
    def __init__(self, protocol: str, target: Target, note: Callable[[Entry], None], inject: str = "") -> None:
        self._protocol, self._target, self._note, self._inject = protocol, target, note, inject
        self._began = time.monotonic()
        self._result: Reached | Refused | Failed = Failed(why="the client went away")
        self.sent = self.received = 0
        self._noted = False

    def tell(self, result: Reached | Refused | Failed) -> None:
        self._result = result

    def close(self) -> None:
        if self._noted:
            return
        self._noted = True
        result, verdict = self._result, None if isinstance(self._result, Failed) else self._result.verdict
        kind = ALLOWED if isinstance(result, Reached) else REFUSED if isinstance(result, Refused) else FAILED
        self._note(Entry(
            protocol=self._protocol, host=self._target.host, port=self._target.port, verdict=kind,
            address="" if isinstance(result, Failed) else result.address, rule=verdict.rule if verdict else "",
            origin=verdict.origin if verdict else "", why=verdict.why if verdict else getattr(result, "why", ""),
            sent=self.sent, received=self.received, seconds=round(time.monotonic() - self._began, 4), inject=self._inject,
        ))  # fmt: skip
