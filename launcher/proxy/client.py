"""One connection from the jail, from its first byte to its end: the first byte says which of two protocols it speaks.

    hear → (greet) → route → tunnel          CONNECT and SOCKS
    hear → exchange → hear …                 plain requests and those to a local base URL, the connection kept
"""

from __future__ import annotations

import os
import time

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.proxy import socks, words
from agent_sandbox.launcher.proxy.entry import MALFORMED, Entry
from agent_sandbox.launcher.proxy.exchange import BUSY, CLOSING, HEARING, MOVING, Exchange
from agent_sandbox.launcher.proxy.head import parse_request
from agent_sandbox.launcher.proxy.local import PAGE, asked_of
from agent_sandbox.launcher.proxy.pump import Pump
from agent_sandbox.launcher.proxy.route import Failed, Reached, Refused, Route
from agent_sandbox.launcher.proxy.side import PIECE, Side
from agent_sandbox.launcher.proxy.target import Malformed
from agent_sandbox.launcher.proxy.trace import Trace
from agent_sandbox.launcher.proxy.tunnel import Tunnel
from agent_sandbox.launcher.proxy.wanted import connect_target, plain_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable

    from agent_sandbox.launcher.proxy.head import Request
    from agent_sandbox.launcher.proxy.local import Asked
    from agent_sandbox.launcher.proxy.parts import Parts
    from agent_sandbox.launcher.proxy.target import Target


class Client:
    """`changed` is called whenever it begins or stops to wait for a head, and at its end."""

    def __init__(self, sock: socket, parts: Parts, changed: Callable[[Client], None]) -> None:
        self._parts, self._changed = parts, changed
        self._near = Side(sock, parts.poller, self.on_error)
        self._near.stays_here()
        self._far: Side | None = None
        self._route: Route | None = None
        self._tunnel: Tunnel | None = None
        self._trace: Trace | None = None
        self._exchange: Exchange | None = None
        self._greeted = self._socks = self._arrived = False
        self.phase, self.since = HEARING, time.monotonic()

    @property
    def closed(self) -> bool:
        return self._near.closed

    @property
    def moved(self) -> int:
        """Bytes, both ways, by what it does now."""
        busy = self._tunnel or self._exchange
        return busy.moved if busy else 0

    # What it wants

    def begin(self) -> None:
        """The first bytes have often come with the connection."""
        self.hear()
        self._on_head()

    def hear(self) -> None:
        """The next request; some of it may be here already."""
        self.enter(HEARING)
        self._near.on_read(self._on_head)
        self._near.on_lost(None)
        if self._near.early:
            self._understand()

    def _on_head(self) -> None:
        try:
            more = self._near.read_early(min(PIECE, self._parts.limits.header_bytes + 1))
        except BlockingIOError:
            return
        except OSError:
            more = False
        if more:
            self._understand()
        else:
            self.close()

    def _understand(self) -> None:
        try:
            if self._socks or self._near.early[0] == socks.VERSION:
                self._hear_socks()
            else:
                self._hear_http()
        except socks.Unsupported as problem:
            self._reject(str(problem), socks.reply(problem.code))
        except Malformed as problem:
            said = socks.reply(socks.TROUBLE) if self._socks else words.trouble(400, f"this request was not understood: {problem}")
            self._reject(str(problem), said)

    def _hear_socks(self) -> None:
        self._socks = True
        early = self._near.early
        if not self._greeted and (greeting := socks.parse_greeting(early)):
            size, fits = greeting
            del early[:size]
            if not fits:
                self._reject("authentication is not spoken here", socks.NO_METHOD)
                return
            self._greeted = True
            self._say(socks.WELCOME)
        if self._greeted and (asked := socks.parse_asked(early)):
            del early[: asked.size]
            self._connect("socks5", asked.target)

    def _say(self, few: bytes) -> None:
        """Bytes that always fit. If it is gone, the next read says so."""
        try:
            os.write(self._near.fd, few)
        except OSError:
            pass

    def _hear_http(self) -> None:
        early, most = self._near.early, self._parts.limits.header_bytes
        end = early.find(b"\r\n\r\n", 0, most)
        if end < 0 and len(early) >= most:
            self._reject("the head is too long", words.trouble(431, "the head of this request is too long"))
        elif end >= 0:
            request = parse_request(bytes(early[:end]), self._parts.limits.fields)
            del early[: end + 4]
            if request.method == b"CONNECT":
                self._tunnel_to(connect_target(request))
            else:
                self._relay(request)

    # What it gets

    def _tunnel_to(self, target: Target) -> None:
        """Some clients know no exception and go to a local base URL through the proxy, too: they are there already."""
        if not self._is_own(target):
            self._connect("connect", target)
            return
        if self._arrived:
            raise Malformed("this is the proxy already")
        self._arrived = True
        self._drop_exchange()
        self._say(words.ESTABLISHED)
        self.hear()

    def _is_own(self, target: Target) -> bool:
        return bool(self._parts.credentials) and (target.host, target.port) == self._parts.own

    def _connect(self, protocol: str, target: Target) -> None:
        self._drop_exchange()
        self.enter(BUSY)
        self._near.on_lost(self.close)
        self._near.on_read(None)
        self._trace = Trace(protocol, target, self._parts.note)
        self._target = target
        self._route = Route(target, self._parts, self._on_route)
        self._route.start()

    def _on_route(self, result: Reached | Refused | Failed) -> None:
        assert self._trace
        self._trace.tell(result)
        if isinstance(result, Reached):
            self.enter(MOVING)
            self._near.on_lost(None)
            self._far = result.side
            self._far.owned_by(self.on_error)
            hello = socks.reply(socks.DONE) if self._socks else words.ESTABLISHED
            self._tunnel = Tunnel(self._near, self._far, self._parts, hello, self.close_broken)
            self._tunnel.start()
        elif self._socks:
            self.say_last(socks.reply(socks.REFUSED if isinstance(result, Refused) else socks.UNREACHABLE))
        else:
            self.say_last(told(self._target, result))

    def _relay(self, request: Request) -> None:
        if request.target == PAGE and self._parts.page and request.method == b"GET":
            self.say_last(words.page(self._parts.page()))
        elif request.target.startswith(b"/"):
            self._inject(asked_of(request, self._parts.credentials), request)
        else:
            target, path = plain_target(request)
            if self._is_own(target):
                self._inject(asked_of(replace(request, target=path), self._parts.credentials), request)
            else:
                self._exchange_of(Exchange).begin(request, target, path)

    def _inject(self, asked: Asked, request: Request) -> None:
        from agent_sandbox.launcher.proxy.injected import Injected

        exchange = self._exchange_of(Injected)
        assert isinstance(exchange, Injected)
        exchange.begin_with(request, asked.credential, asked.path)

    def _exchange_of(self, kind: type[Exchange]) -> Exchange:
        """The one that is there, if it is of this kind: nothing passes from a connection of one kind to one of the other."""
        self._near.on_lost(self.close_broken)
        self._near.on_read(None)
        if type(self._exchange) is not kind:
            self._drop_exchange()
            self._exchange = kind(self._near, self._parts, self)
        assert self._exchange
        return self._exchange

    # How it ends

    def _reject(self, problem: str, said: bytes) -> None:
        self._drop_exchange()
        self._parts.note(Entry(protocol="socks5" if self._socks else "http", host="", port=0, verdict=MALFORMED, why=problem))
        self.say_last(said)

    def say_last(self, said: bytes) -> None:
        """Then nothing more; what it still sends is thrown away for a moment, since an end with unread bytes would destroy the answer."""
        self._drop_exchange()
        self.enter(CLOSING)
        self._near.on_read(None)
        self._near.on_lost(None)
        self._near.early.clear()
        Pump(self._near, self._near, self._parts, lambda pump, outcome: self._linger(), first=said, length=0).run()

    def _linger(self) -> None:
        self._near.shut()
        self._near.on_read(self._discard)
        self._discard()

    def _discard(self) -> None:
        try:
            for _ in range(8):
                if not os.read(self._near.fd, PIECE):
                    self.close()
                    return
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def enter(self, phase: str) -> None:
        self.phase, self.since = phase, time.monotonic()
        self._changed(self)

    def on_error(self, error: Exception) -> None:
        """An error of ours ends this connection and no other."""
        self._parts.note(Entry(protocol="", host="", port=0, verdict=MALFORMED, why=f"internal: {type(error).__name__}: {error}"[:300]))
        self.close_broken()

    def close_broken(self, broken: bool = True) -> None:
        self.close(broken=broken)

    def close(self, *, broken: bool = False) -> None:
        if self._near.closed:
            return
        if self._route:
            self._route.stop()
        if self._tunnel:
            self._tunnel.stop()
        self._drop_exchange()
        self._near.close(broken=broken)
        if self._far:
            self._far.close(broken=broken)
        self._close_trace()
        self._changed(self)

    def _close_trace(self) -> None:
        if self._trace:
            if self._tunnel:
                self._trace.sent, self._trace.received = self._tunnel.out.moved, self._tunnel.back.moved
            self._trace.close()

    def _drop_exchange(self) -> None:
        if self._exchange:
            exchange, self._exchange = self._exchange, None
            exchange.close()

    # Time

    def look(self, now: float, pressed: bool) -> None:
        limits, passed = self._parts.limits, now - self.since
        idle = limits.pressed_seconds if pressed else limits.idle_seconds
        if self.phase == CLOSING and passed > limits.linger_seconds:
            self.close()
        elif self.phase == BUSY and self._route and not self._route.over and passed > limits.dial_seconds + limits.resolve_seconds:
            self._route.give_up()
        elif self._tunnel and now - self._tunnel.progress > idle:
            self.close_broken()
        elif self._exchange and self.phase in (BUSY, MOVING):
            self._exchange.look(now, idle)


def told(target: Target, result: Refused | Failed) -> bytes:
    if isinstance(result, Refused):
        return words.refusal(target, result.verdict)
    return words.trouble(504 if result.late else 502, result.why)
