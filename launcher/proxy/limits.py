"""What the proxy gives at most, and for how long. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import record, replace

SPARE = 96  # descriptors that are no connection's: the listener, the poller, what is being dialled in vain


@record
class Limits:
    connections: int = 2048
    header_bytes: int = 32 << 10
    fields: int = 200  # lines of one header
    header_seconds: float = 20.0  # from its beginning to its end, also for the next request of a kept connection
    grace_seconds: float = 0.5  # when every place is taken: who has got nowhere for that long loses its place
    resolve_seconds: float = 10.0
    dial_seconds: float = 20.0
    stagger_seconds: float = 0.25  # until the next address is tried beside the one before
    idle_seconds: float = 3600.0  # nothing moved in either direction
    pressed_seconds: float = 60.0  # the same, when every place is taken
    linger_seconds: float = 2.0  # for a client to take an answer that came before it had said everything
    resolvers: int = 16
    questions: int = 512  # that wait for a resolver
    pipes: int = 64  # transfers at a time that the kernel moves alone; the others are copied
    total_bytes: int | None = None  # of the session, both directions
    rate: int | None = None  # bytes a second of the session, both directions


def fitted(limits: Limits, descriptors: int) -> Limits:
    """A connection holds two descriptors, a pipe two more: no more of them than the process may have. What was asked for is never exceeded."""
    pipes = max(1, min(limits.pipes, descriptors // 16))
    return replace(limits, pipes=pipes, connections=min(limits.connections, max(4, (descriptors - SPARE - 2 * pipes) // 2)))
