"""A listening socket becomes connections, as many as there are places: one loop in which nobody waits for anybody.

When every place is taken nobody new is accepted (they wait in the kernel), and who has been here longest without saying what it
wants loses its place.
"""

from __future__ import annotations

import resource
import time
from _socket import socket

from agent_sandbox.launcher.poller import READ
from agent_sandbox.launcher.proxy.admission import Admission
from agent_sandbox.launcher.proxy.client import Client
from agent_sandbox.launcher.proxy.entry import MALFORMED, Entry
from agent_sandbox.launcher.proxy.exchange import BUSY, CLOSING, HEARING, MOVING
from agent_sandbox.launcher.proxy.limits import Limits, fitted
from agent_sandbox.launcher.proxy.parts import gather

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_sandbox.launcher.proxy.credential import Credential
    from agent_sandbox.launcher.proxy.judge import Judge
    from agent_sandbox.launcher.proxy.parts import Upstream

TICK = 0.5
AT_ONCE = 64  # accepted in one turn
PATIENCE = {HEARING: 1, CLOSING: 1, BUSY: 4}
NONSENSE = 200  # malformed requests of one session that are noted: a jail must not fill the log with them


class Server:
    def __init__(
        self, listener: int, judge: Judge, note: Callable[[Entry], None], limits: Limits, *,
        upstream: Upstream | None = None, told: int = -1, page: Callable[[], str] | None = None,
        look_up: Callable[[str], tuple[str, ...]] | None = None, credentials: Sequence[Credential] = (), roots: str = "",
    ) -> None:  # fmt: skip
        """`told` says who may come, where others than the jail could reach the listener."""
        self._limits = fitted(limits, raise_descriptors())
        self._listener = socket(fileno=listener)
        self._listener.setblocking(False)
        self._note = note
        self._parts = gather(judge, self._limits, self._on_note, upstream, look_up, page, credentials, roots, self._listener.getsockname()[:2])
        self._admission = Admission(told, self._parts.poller, self._take) if told >= 0 else None
        self._clients: set[Client] = set()
        self._waiting: dict[str, dict[Client, None]] = {HEARING: {}, CLOSING: {}, BUSY: {}}  # who has no connection yet or any more, longest first
        self._nonsense = 0
        self._ticked = time.monotonic()
        self._accepting = self.stopping = False
        self._accept_when_possible()

    def run(self, wake: int | None = None) -> None:
        """Until `wake` has something to read."""
        if wake is not None:
            self._parts.poller.watch(wake, READ, self._on_wake)
        while not self.stopping:
            try:
                self.turn()
            except Exception as error:  # a bug of ours ends no other connection
                self._on_note(Entry(protocol="", host="", port=0, verdict=MALFORMED, why=f"internal: {type(error).__name__}: {error}"[:300]))
        self.close()

    def turn(self) -> None:
        self._parts.poller.turn(self._parts.timers.wait(TICK))
        self._parts.timers.run()
        now = time.monotonic()
        if now - self._ticked >= TICK:
            self._ticked = now
            self._tick(now)

    def close(self) -> None:
        if self._admission:  # first: who tells us must know before the port can be another's
            self._admission.close()
        self._parts.poller.drop(self._listener.fileno())
        self._listener.close()
        for client in list(self._clients):
            client.close(broken=True)
        self._parts.resolver.close()
        self._parts.pipes.close()
        self._parts.poller.close()

    def _on_wake(self, events: int) -> None:
        self.stopping = True

    # Who comes

    def _on_ready(self, events: int) -> None:
        for _ in range(AT_ONCE):
            if len(self._clients) >= self._limits.connections and not self._make_room(time.monotonic()):
                self._pause()
                return
            try:
                handle, peer = self._listener._accept()  # type: ignore[attr-defined]
            except BlockingIOError:
                return
            except ConnectionError:  # it was here and left
                continue
            except OSError:  # no descriptor or no memory left, until something is closed
                self._pause()
                return
            if self._admission:
                self._admission.ask(handle, peer)
            else:
                self._take(handle)

    def _take(self, handle: int) -> None:
        sock = socket(fileno=handle)
        sock.setblocking(False)
        client = Client(sock, self._parts, self._on_changed)
        self._clients.add(client)
        try:
            client.begin()
        except Exception as error:
            client.on_error(error)

    def _make_room(self, now: float) -> bool:
        """Who was given a moment and said nothing whole makes room; else who waits for somebody that does not answer; else who hardly moves."""
        for phase, patience in PATIENCE.items():
            oldest = next(iter(self._waiting[phase]), None)
            if oldest and now - oldest.since >= self._limits.grace_seconds * patience:
                oldest.close()
                return True
        return self._drop_slowest(now)

    def _drop_slowest(self, now: float) -> bool:
        """A byte now and then is progress, and would hold a place for ever: who has had time to show what it moves, and moved least."""
        known = [client for client in self._clients if client.phase == MOVING and now - client.since >= self._limits.pressed_seconds]
        slowest = min(known, key=lambda client: client.moved / (now - client.since), default=None)
        if slowest:
            slowest.close(broken=True)
        return slowest is not None

    def _pause(self) -> None:
        """Looked at again when a place is free, and in a moment, when somebody's grace is over."""
        if self._accepting:
            self._accepting = False
            self._parts.poller.drop(self._listener.fileno())
            self._parts.timers.after(self._limits.grace_seconds / 4, self._accept_when_possible)

    def _accept_when_possible(self) -> None:
        if not self._accepting and not self.stopping:
            self._accepting = True
            self._parts.poller.watch(self._listener.fileno(), READ, self._on_ready)

    # Who goes

    def _on_changed(self, client: Client) -> None:
        for waiting in self._waiting.values():
            waiting.pop(client, None)
        if client.closed:
            self._clients.discard(client)
        elif client.phase in self._waiting:
            self._waiting[client.phase][client] = None

    def _on_note(self, entry: Entry) -> None:
        if not entry.host:
            self._nonsense += 1
        if entry.host or self._nonsense <= NONSENSE:
            self._note(entry)

    def _tick(self, now: float) -> None:
        while hearing := self._waiting[HEARING]:
            oldest = next(iter(hearing))
            if now - oldest.since < self._limits.header_seconds:
                break
            oldest.close()
        self._parts.resolver.tick(now)
        if self._admission:
            self._admission.tick(now)
        pressed = len(self._clients) >= self._limits.connections
        for client in list(self._clients):
            try:
                client.look(now, pressed)
            except Exception as error:
                client.on_error(error)


def raise_descriptors() -> int:
    """As many as we may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass
    return soft if soft != resource.RLIM_INFINITY else 1 << 20
