"""Announcements become talks, requests become steps, steps become programs and answers: one loop in which nobody waits for anybody.

    admit → hear → (queue) → answer → run → finish → say

Everything is bounded: talks, programs, long requests in memory, output that nobody takes. What exceeds a bound is not read: it waits
in the kernel's pipes, at the expense of who sends it. A stub that stands still loses its place, sooner when others want it.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque

from agent_sandbox.chaperon import tidy
from agent_sandbox.chaperon.talk import PIECE, Talk
from agent_sandbox.chaperon.telling import told
from agent_sandbox.chaperon.wire import Reply, Want, WireError, encode_reply, encode_want, refused
from agent_sandbox.chaperon.words import ALLOW
from agent_sandbox.chaperon.work import Work
from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.poller import READ, Poller
from agent_sandbox.launcher.share import Share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.command import Handler
    from agent_sandbox.chaperon.gate import Gate
    from agent_sandbox.chaperon.limits import Limits
    from agent_sandbox.chaperon.orders import Orders
    from agent_sandbox.chaperon.scheduler import Scheduler
    from agent_sandbox.launcher.audit import Audit
    from agent_sandbox.launcher.jsonline import Plain

NAME = "chaperon"
ABOUT_JOBS = frozenset(("job", "jobs"))  # of a request that changed something: such a line is written in any case
OVER = b"the session ended before there was an answer"
NONSENSE = 100  # things that are no request, of one session, that are noted


class Server:
    def __init__(self, orders: Orders, gate: Gate, scheduler: Scheduler, audit: Audit, answer: Handler, limits: Limits) -> None:
        self._orders, self._gate, self._scheduler, self._audit, self._answer, self._limits = orders, gate, scheduler, audit, answer, limits
        self._poller = Poller()
        self._work = Work(self._poller, scheduler, limits, self._guarded, self._forget_request, self._done)
        self._names: deque[str] = deque()  # announced, and not admitted yet
        self._talks: set[Talk] = set()
        self._ready: deque[Talk] = deque()  # whole requests
        self._held: deque[Talk] = deque()  # long requests that wait to be read
        self._big = self._nonsense = self._left_out = 0
        self._share = Share(audit.log, time.monotonic())
        self._swept = self._looked = time.monotonic()
        self._stopping = False
        self._poller.watch(gate.ask, READ, self._on_ask)

    def run(self, wake: int) -> None:
        """Until `wake`, which brings the numbers of signals, brings SIGTERM: the session is over."""
        self._poller.watch(wake, READ, lambda _: self._on_wake(wake))
        while not self._stopping:
            self._turn()
        self._drain()
        self._note_left_out()
        self._poller.close()

    def _turn(self) -> None:
        self._poller.turn(self._limits.tick if self._talks or self._names else self._limits.sweep)
        now = time.monotonic()
        if now - self._looked >= self._limits.tick:
            self._looked = now
            self._tick(now)
        self._advance()

    def _advance(self) -> None:
        """Give free places to those who wait: here alone, and never while a stub is being served, however many there are."""
        while not self._stopping:
            self._resume_held()
            self._admit_all()
            if not self._start_ready():
                break

    def _drain(self) -> None:
        """Nobody new; what changes something gets the time to end and to be recorded."""
        self._poller.drop(self._gate.ask)
        self._scheduler.close()
        until = time.monotonic() + self._limits.drain
        while time.monotonic() < until and self._work.changes_something():
            self._poller.turn(0.05)
        for talk in list(self._talks):
            if talk.name and not talk.ended:
                self._note(talk, Reply(code=1, err=OVER))
            talk.close()

    def _on_wake(self, wake: int) -> None:
        """A child ended, or we are to end."""
        if signal.SIGTERM in os.read(wake, 4096):
            self._stopping = True
        self._work.reap()

    # Who comes

    def _on_ask(self, events: int) -> None:
        self._names.extend(self._gate.announced())

    def _admit_all(self) -> None:
        """As many as there are places. The others stay where they are."""
        while self._names and len(self._talks) < self._limits.talks:
            try:
                line = self._gate.admit(self._names[0])
            except OSError:  # no descriptor left, until something is closed
                break
            self._names.popleft()
            if line:
                talk = Talk(line, self._poller, self._on_gone, self._on_drained)
                self._talks.add(talk)
                self._guarded(talk, self._hear, talk)
        if self._names:
            self._poller.drop(self._gate.ask)
        else:
            self._poller.watch(self._gate.ask, READ, self._on_ask)

    def _hear(self, talk: Talk) -> None:
        whole = talk.hear()
        if talk.closed:
            return
        if talk.size > PIECE and not talk.big and not self._may_be_big(talk):
            return
        if whole:
            talk.stop_hearing()
            self._ready.append(talk)
        else:
            talk.expect(lambda _: self._guarded(talk, self._hear, talk))

    def _may_be_big(self, talk: Talk) -> bool:
        if self._big >= self._limits.big and talk.receiving:
            talk.leave()
            self._held.append(talk)
            return False
        talk.big = True
        self._big += 1
        return True

    def _forget_request(self, talk: Talk) -> None:
        """Its long text is nowhere any more: the next may come."""
        talk.request = None
        if talk.big:
            talk.big = False
            self._big -= 1

    def _resume_held(self) -> None:
        while self._held and self._big < self._limits.big:
            talk = self._held.popleft()
            if not talk.closed:
                talk.started = talk.progress = time.monotonic()
                self._guarded(talk, self._hear, talk)

    # What is done

    def _start_ready(self) -> bool:
        """True = something was begun, so there may be places again."""
        begun = False
        while self._ready and self._work.count(lasting=False) < self._limits.running and self._unsaid() < self._limits.waiting:
            talk = self._ready.popleft()
            if not talk.closed:
                self._guarded(talk, self._begin, talk)
                begun = True
        return begun

    def _begin(self, talk: Talk) -> None:
        assert talk.request
        self._work.take(talk, self._answer(talk.request, self._orders))

    def _done(self, talk: Talk, step: Reply | Want) -> None:
        if isinstance(step, Want):
            self._end(talk, encode_want(step))
        else:
            self._note(talk, step)
            self._end(talk, encode_reply(step))

    # How it ends

    def _end(self, talk: Talk, last: bytes) -> None:
        self._forget_request(talk)
        talk.ended = True
        talk.say(last)
        if talk.closed:
            self._leave(talk)

    def _on_drained(self, talk: Talk) -> None:
        if talk.ended:
            talk.close()
            self._leave(talk)
        elif talk.process:
            self._work.listen(talk, talk.process)

    def _on_gone(self, talk: Talk) -> None:
        """A request that had not begun is dropped; what changes something runs to its end, and is recorded."""
        talk.close()
        if talk.process is None:
            self._forget_request(talk)
            self._leave(talk)
        elif talk.process.command.live:
            self._work.give_up(talk.process)

    def _leave(self, talk: Talk) -> None:
        self._talks.discard(talk)

    def _note(self, talk: Talk, reply: Reply) -> None:
        """Arguments yes; no script, and no variable's value."""
        said = reply.err[:500].decode("utf-8", "replace") if reply.code else ""
        facts: dict[str, Plain] = {
            "command": talk.name, "arguments": told(talk.name, talk.words), "verdict": ALLOW, "code": reply.code, **dict(reply.facts),
            **({"said": said} if said else {}),
        }  # fmt: skip
        if ABOUT_JOBS & facts.keys() or self._share.take(facts, time.monotonic()):
            self._note_left_out()
            self._audit.write("slurm", {"session": self._orders.session, **facts})
        else:
            self._left_out += 1

    def _note_left_out(self) -> None:
        if self._left_out:
            self._audit.write("slurm", {"session": self._orders.session, "verdict": "left out", "requests": self._left_out})
            self._left_out = 0

    def _guarded(self, talk: Talk, act: Callable[..., object], *arguments: object) -> None:
        """Whatever goes wrong with one stub stays with it."""
        try:
            act(*arguments)
        except (WireError, UserError) as error:
            self._fail(talk, str(error))
        except Exception as error:
            self._audit.write("error", {"session": self._orders.session, "command": talk.name, "what": f"{type(error).__name__}: {error}"[:500]})
            self._fail(talk, "something went wrong in the chaperon; nothing was done, or `squeue` shows it")

    def _fail(self, talk: Talk, problem: str) -> None:
        self._work.kill(talk)
        talk.refuse()
        reply = refused(talk.name or NAME, *problem.splitlines())
        self._nonsense += not talk.name
        if self._nonsense <= NONSENSE:  # a jail must not be able to fill the log with what is no request
            self._note(talk, reply)
        self._end(talk, encode_reply(reply))

    # Time

    def _tick(self, now: float) -> None:
        pressed = len(self._talks) >= self._limits.talks
        for talk in list(self._talks):
            self._guarded(talk, self._look, talk, now, pressed)
        if now - self._swept > self._limits.sweep:
            self._swept = now
            self._sweep()
        tidy.start_when_due(self._orders)

    def _look(self, talk: Talk, now: float, pressed: bool) -> None:
        limits, quiet = self._limits, now - talk.progress
        idle, stall = (limits.pressed, limits.pressed) if pressed else (limits.idle, limits.stall)
        if talk.process and talk.process.until is not None and now > talk.process.until:
            self._work.out_of_time(talk, talk.process, now)
        elif talk.receiving and talk not in self._held and (quiet > idle or now - talk.started > limits.whole):
            raise WireError("the rest of the request did not come in time")
        elif talk.unsaid and quiet > stall:
            self._on_gone(talk)

    def _sweep(self) -> None:
        try:
            self._gate.sweep()
        except OSError:  # the directory is gone
            pass

    def _unsaid(self) -> int:
        return sum(talk.unsaid for talk in self._talks)
