"""A destination becomes a verdict: the shape of whoever decides. Pure.

The name is judged before anybody is asked what it means, and every address it turned out to mean is judged again.
"""

from __future__ import annotations

from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Judge(Protocol):
        def name(self, host: str, port: int) -> Verdict: ...

        def address(self, host: str, port: int, address: str) -> Verdict: ...


@record
class Verdict:
    allowed: bool
    rule: str
    origin: str = ""
    why: str = ""
