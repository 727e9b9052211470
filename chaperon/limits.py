"""How much of everything the chaperon takes on, and how long it waits. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import record


@record
class Limits:
    talks: int = 256  # with the two next ones: fewer descriptors than the usual 1,024
    running: int = 64
    lasting: int = 64
    big: int = 8  # requests of more than one piece in memory
    waiting: int = 32 << 20  # bytes of answers that were not taken, all together: above it nothing new is started
    ahead: int = 256 << 10  # bytes of live output that one stub has not taken
    idle: float = 10.0  # seconds without progress of a request
    whole: float = 30.0  # seconds for all of it
    stall: float = 60.0  # seconds without progress of an answer
    pressed: float = 3.0  # instead of both, when all places are taken
    tick: float = 1.0
    sweep: float = 30.0
    drain: float = 5.0  # seconds for what is being submitted when the session ends
