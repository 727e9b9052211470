"""One connection becomes one line of the log. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import record

ALLOWED, REFUSED, FAILED, MALFORMED = "allow", "refuse", "fail", "malformed"


@record
class Entry:
    """`FAILED` was allowed and could not be reached; `MALFORMED` is no request at all."""

    protocol: str  # connect, http, socks5, inject
    host: str
    port: int
    verdict: str
    address: str = ""  # the one that was dialled, or the one that was refused
    rule: str = ""
    origin: str = ""
    why: str = ""
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    inject: str = ""  # the entry of network.inject whose credential went along
