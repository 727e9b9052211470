"""Steps become programs, and what programs say goes to the stub or to the next step: captured, or live.

The loop is the server's. Here is what follows from its events: a program that takes input, speaks, ends, or does not end.
"""

from __future__ import annotations

import signal
import time

from agent_sandbox.chaperon.command import Command, finished
from agent_sandbox.chaperon.scheduler import Process
from agent_sandbox.chaperon.wire import ERR, OUT, encode_output, refused
from agent_sandbox.launcher.poller import READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.command import Step
    from agent_sandbox.chaperon.limits import Limits
    from agent_sandbox.chaperon.scheduler import Scheduler
    from agent_sandbox.chaperon.talk import Talk
    from agent_sandbox.chaperon.wire import Reply, Want
    from agent_sandbox.launcher.poller import Poller

PIECES = 256  # of output that are still taken after the end of a program


class Work:
    """`guarded` does something for a stub so that its failure stays there; `fed` is told when the request's text is not needed any
    more; `done` gets the last step."""

    def __init__(
        self, poller: Poller, scheduler: Scheduler, limits: Limits,
        guarded: Callable[..., None], fed: Callable[[Talk], None], done: Callable[[Talk, Reply | Want], None],
    ) -> None:  # fmt: skip
        self._poller, self._scheduler, self._limits = poller, scheduler, limits
        self._guarded, self._fed, self._done = guarded, fed, done
        self._running: dict[int, Talk] = {}

    def reap(self) -> None:
        for process in self._scheduler.reap():
            if talk := self._running.get(process.pid):
                self._guarded(talk, self._on_exit, talk, process)

    def take(self, talk: Talk, step: Step) -> None:
        """One step after the other, until one has to be waited for."""
        while isinstance(step, Command):
            if step.lasting and self.count(lasting=True) >= self._limits.lasting:
                step = refused(talk.name, f"{self._limits.lasting} commands of this session wait already; end one of them first")
                break
            talk.say(encode_output(OUT, step.first))
            started = self._scheduler.start(step)
            if isinstance(started, Process):
                self._watch(talk, started)
                return
            step = finished(step, started)
        self._done(talk, step)

    def _watch(self, talk: Talk, process: Process) -> None:
        talk.process = process
        self._running[process.pid] = talk
        if process.stdin >= 0:
            process.prepare()
            self._poller.watch(process.stdin, WRITE, lambda _: self._guarded(talk, self._feed, talk, process))
            self._feed(talk, process)
        else:
            self._fed(talk)
        self.listen(talk, process)
        if talk.closed and process.command.live:
            self.give_up(process)

    def listen(self, talk: Talk, process: Process) -> None:
        for handle in process.outputs():
            self._poller.watch(handle, READ, lambda _, handle=handle: self._guarded(talk, self._read, talk, process, handle))  # type: ignore[misc]

    def _feed(self, talk: Talk, process: Process) -> None:
        handle = process.stdin
        if process.feed():
            self._poller.drop(handle)
            process.close_input()
            self._fed(talk)

    def _read(self, talk: Talk, process: Process, handle: int) -> bool:
        """One piece; False = there is none now."""
        piece = process.read(handle)
        if piece is None:
            self._poller.drop(handle)
            process.close_output(handle)
        elif not process.command.live:
            self._keep(talk, process, piece, is_error=handle == process.err)
        elif piece:
            talk.say(encode_output(ERR if handle == process.err else OUT, piece))
            self._hold_back(talk, process)
        if not process.outputs() and process.code is not None and talk.process is process:
            self._finish(talk, process)
        return bool(piece)

    def _keep(self, talk: Talk, process: Process, piece: bytes, *, is_error: bool) -> None:
        process.keep(piece, is_error=is_error)
        hear = process.command.hear
        if hear and (line := process.take_first_line()):
            talk.say(encode_output(OUT, hear(line)))

    def _hold_back(self, talk: Talk, process: Process) -> None:
        """A stub that does not take its output makes the program wait, as a pipe between the two would."""
        if talk.unsaid > self._limits.ahead:
            for handle in process.outputs():
                self._poller.drop(handle)

    def _on_exit(self, talk: Talk, process: Process) -> None:
        """What it said last is in its pipes; what somebody else holds open after it has ended is not waited for."""
        process.until = time.monotonic() + self._limits.stall
        for handle in process.outputs():
            for _ in range(PIECES):
                if talk.unsaid > self._limits.ahead or not self._read(talk, process, handle):
                    break
        if talk.process is process and talk.unsaid <= self._limits.ahead:
            self._finish(talk, process)

    def _finish(self, talk: Talk, process: Process) -> None:
        self.release(talk, process)
        self.take(talk, finished(process.command, process.result()))

    def release(self, talk: Talk, process: Process) -> None:
        talk.process = None
        self._running.pop(process.pid, None)
        for handle in (process.stdin, *process.outputs()):
            if handle >= 0:
                self._poller.drop(handle)
        process.close()
        self._fed(talk)

    def give_up(self, process: Process) -> None:
        process.stop(time.monotonic())

    def out_of_time(self, talk: Talk, process: Process, now: float) -> None:
        if process.code is None:
            process.stop(now)
        else:
            self._finish(talk, process)

    def count(self, *, lasting: bool) -> int:
        return sum(talk.process.command.lasting is lasting for talk in self._running.values() if talk.process)

    def changes_something(self) -> bool:
        return any(not talk.process.command.live for talk in self._running.values() if talk.process)

    def kill(self, talk: Talk) -> None:
        if talk.process:
            talk.process.signal(signal.SIGKILL)
            self.release(talk, talk.process)
