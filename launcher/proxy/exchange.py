"""Plain requests of one client become requests to where they name, and the answers go back; the connection there is kept for the next.

Both heads are written anew from what was understood: what goes on is what was judged.
"""

from __future__ import annotations

import time

from agent_sandbox.launcher.proxy import words
from agent_sandbox.launcher.proxy.chunks import Chunks
from agent_sandbox.launcher.proxy.head import parse_response
from agent_sandbox.launcher.proxy.pump import DONE, SINK_LOST, Pump
from agent_sandbox.launcher.proxy.rewrite import interim_head, request_head, response_head
from agent_sandbox.launcher.proxy.route import Failed, Reached, Refused, Route
from agent_sandbox.launcher.proxy.side import PIECE
from agent_sandbox.launcher.proxy.target import Malformed
from agent_sandbox.launcher.proxy.trace import Trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from agent_sandbox.launcher.proxy.head import Request, Response
    from agent_sandbox.launcher.proxy.parts import Parts
    from agent_sandbox.launcher.proxy.side import Side
    from agent_sandbox.launcher.proxy.target import Target

    class Owner(Protocol):
        def hear(self) -> None:
            """The answer is out and the client may ask more."""

        def say_last(self, said: bytes) -> None:
            """This answer is ours; then the end."""

        def close_broken(self) -> None:
            """The end at once."""

        def enter(self, phase: str) -> None: ...


HEARING, BUSY, MOVING, CLOSING = "hearing", "busy", "moving", "closing"  # phases of a client
REPEATABLE = frozenset((b"GET", b"HEAD", b"OPTIONS"))
HEADS = 16  # of one answer: the interim ones and the last
BODILESS = frozenset((204, 304))


class Exchange:
    def __init__(self, near: Side, parts: Parts, owner: Owner) -> None:
        self._near, self._parts, self._owner = near, parts, owner
        self._far: Side | None = None
        self._trace: Trace | None = None
        self._route: Route | None = None
        self._there: Target | None = None  # where `far` leads
        self._out: Pump | None = None
        self._back: Pump | None = None
        self._used = self._begun = False  # `far` carried an answer already; the client got a part of this one
        self._progress = time.monotonic()

    def begin(self, request: Request, target: Target, path: bytes) -> None:
        self._request, self._target, self._path = request, target, path
        self._begun, self._heads, self._sent_all = False, 0, False
        self._progress = time.monotonic()
        if self._far and self._there == target and not self._parts.budget.spent:
            self._go()
        else:
            self._dial()

    def _dial(self) -> None:
        self._leave()
        self._owner.enter(BUSY)
        self._trace = self._new_trace()
        self._route = Route(self._target, self._parts, self._on_route)
        self._route.start()

    def _new_trace(self) -> Trace:
        return Trace("http", self._target, self._parts.note)

    def _on_route(self, result: Reached | Refused | Failed) -> None:
        assert self._trace
        self._trace.tell(result)
        if isinstance(result, Reached):
            self._arrive(result.side)
        elif isinstance(result, Refused):
            self._owner.say_last(words.refusal(self._target, result.verdict))
        else:
            self._owner.say_last(words.trouble(504 if result.late else 502, result.why))

    # There

    def _arrive(self, side: Side) -> None:
        self._far, self._there, self._used = side, self._target, False
        self._far.owned_by(lambda error: self._owner.close_broken())
        self._go()

    def _go(self) -> None:
        self._owner.enter(MOVING)
        self._send()

    def _request_head(self) -> bytes:
        return request_head(self._request, self._target, self._path)

    def _send(self) -> None:
        assert self._far
        request = self._request
        chunks = Chunks() if request.chunked else None
        head = self._request_head()
        self._count(sent=len(head))
        self._out = Pump(
            self._near, self._far, self._parts, self._on_sent, first=head, length=None if chunks else request.length, chunks=chunks,
        )  # fmt: skip
        self._far.on_read(self._on_answer)
        self._out.run()

    def _on_sent(self, pump: Pump, outcome: str) -> None:
        """Who does not want the rest may still say why: its answer is awaited."""
        if self._trace:
            self._trace.sent += pump.moved
        self._sent_all = outcome == DONE
        if outcome not in (DONE, SINK_LOST):
            self._owner.close_broken()

    # And back

    def _on_answer(self) -> None:
        assert self._far
        try:
            more = self._far.read_early(min(PIECE, self._parts.limits.header_bytes + 1))
        except BlockingIOError:
            return
        except OSError:
            more = False
        self._progress = time.monotonic()
        if more:
            self._read_answer()
        else:
            self._on_silence()

    def _on_silence(self) -> None:
        """It ended without an answer. A kept connection may have been closed before it saw the request: that is asked again, once."""
        request = self._request
        if self._used and not self._begun and not self._far_spoke() and request.method in REPEATABLE and not (request.length or request.chunked):
            self._dial()
        else:
            self._fail("ended the connection without an answer")

    def _far_spoke(self) -> bool:
        return bool(self._far and self._far.early)

    def _read_answer(self) -> None:
        assert self._far
        early, most = self._far.early, self._parts.limits.header_bytes
        end = early.find(b"\r\n\r\n", 0, most)
        if end < 0:
            if len(early) >= most:
                self._fail("sent a head that is too long")
            return
        try:
            response = self._taken(parse_response(bytes(early[:end]), self._parts.limits.fields))
        except Malformed as problem:
            self._fail(f"sent an answer that was not understood: {problem}")
            return
        del early[: end + 4]
        self._pass_on(response)

    def _taken(self, response: Response) -> Response:
        """What of it goes on."""
        return response

    def _pass_on(self, response: Response) -> None:
        assert self._far
        self._far.on_read(None)
        self._heads += 1
        if response.status == 101 or self._heads > HEADS:  # nobody asked for another protocol
            self._fail("changed the protocol, or never came to its answer")
        elif response.status < 200:
            said = interim_head(self._request.minor, response)
            self._back = Pump(self._far, self._near, self._parts, self._on_interim, first=said, length=0)
            self._back.run()
        else:
            self._pass_body(response)

    def _on_interim(self, pump: Pump, outcome: str) -> None:
        assert self._far
        if outcome != DONE:
            self._owner.close_broken()
            return
        self._far.on_read(self._on_answer)
        if self._far.early:
            self._read_answer()

    def _pass_body(self, response: Response) -> None:
        assert self._far
        bodiless = self._request.method == b"HEAD" or response.status in BODILESS
        chunked = response.chunked and not bodiless
        until_end = not bodiless and not chunked and response.length is None
        bare = chunked and self._request.minor == 0
        self._keep_far = response.lasting and not until_end
        self._keep_near = self._request.lasting and self._sent_all and not until_end and not bare  # the rest of a body is no next request
        self._begun = True
        head = response_head(response, keep=self._keep_near, bare=bare)
        self._count(received=len(head))
        length, chunks = (0, None) if bodiless else self._body(response, chunked=chunked, bare=bare)
        self._back = Pump(self._far, self._near, self._parts, self._on_passed, first=head, length=length, chunks=chunks)
        self._back.run()

    def _body(self, response: Response, *, chunked: bool, bare: bool) -> tuple[int | None, Chunks | None]:
        """Its length, if that is known, and who frames it anew."""
        return None if chunked else response.length, Chunks(bare=bare) if chunked else None

    def _on_passed(self, pump: Pump, outcome: str) -> None:
        if self._trace:
            self._trace.received += pump.moved
        if outcome != DONE:
            self._owner.close_broken()
        elif not self._keep_near:
            self._owner.say_last(b"")
        else:
            self._rest()

    def _rest(self) -> None:
        """Until the next request: what the other end says unasked, its end above all, means that it is of no more use."""
        self._used = True
        if not self._keep_far or not self._far or self._far.early:
            self._leave()
        else:
            self._far.on_read(self._leave)
        self._owner.hear()

    @property
    def moved(self) -> int:
        """By the request that is being answered."""
        return sum(pump.moved for pump in (self._out, self._back) if pump)

    # How it ends

    def _fail(self, what: str) -> None:
        if self._begun:
            self._owner.close_broken()
        else:
            self._owner.say_last(words.trouble(502, f"{self._target.text} {what}"))

    def _leave(self) -> None:
        for pump in (self._out, self._back):
            if pump:
                pump.stop()
        if self._far:
            self._far.close()
            self._far = None
        if self._trace:
            self._trace.close()
            self._trace = None

    def close(self) -> None:
        if self._route:
            self._route.stop()
        self._count_unfinished()
        self._leave()

    def _count(self, *, sent: int = 0, received: int = 0) -> None:
        """Heads carry something, too."""
        self._parts.budget.take(sent + received)
        if self._trace:
            self._trace.sent += sent
            self._trace.received += received

    def _count_unfinished(self) -> None:
        if self._trace and self._out and not self._out.over:
            self._trace.sent += self._out.moved
        if self._trace and self._back and not self._back.over:
            self._trace.received += self._back.moved

    def look(self, now: float, idle: float) -> None:
        limits = self._parts.limits
        if self._route and not self._route.over:
            if now - self._progress > limits.dial_seconds + limits.resolve_seconds:
                self._route.give_up()
        elif now - max([self._progress, *(pump.progress for pump in (self._out, self._back) if pump)]) > idle:
            self._fail("said nothing for too long")
