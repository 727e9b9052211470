"""The launcher while the jail lives: asleep, in the caller's process group, passing on what only it can know.

Every signal is blocked and waited for, so that its sender is known: what the terminal sent has reached the command already,
what was sent to us by number has not. (What a process sent to the whole group comes to the command twice: the kernel does not
tell the two apart.)
"""

from __future__ import annotations

import os
import signal
import time

from agent_sandbox.config.record import record
from agent_sandbox.launcher import processes
from agent_sandbox.launcher.handover import FAILED, HARMLESS, STOPS, WATCHED
from agent_sandbox.launcher.orders import pack
from agent_sandbox.launcher.processes import end_children
from agent_sandbox.launcher.session import close_session
from agent_sandbox.launcher.start import is_wrapper
from agent_sandbox.launcher.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.handover import Guard
    from agent_sandbox.launcher.orders import Orders

FROM_TERMINAL = STOPS | HARMLESS | {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT}  # sent by the kernel: to the whole group
START_SECONDS = 1.0  # how long a signal waits for the command to be there
STOP_SECONDS = 0.3  # how long a command may take to stop after the terminal asked for it
GLANCE = 0.5  # seconds between two looks at whether the command stopped itself; only where there is a terminal
PAUSE = 0.005
TIMED_OUT = 124


@record
class Outcome:
    code: int
    started: bool
    timed_out: bool = False
    died_of: int = 0  # the signal, where our caller must see us die of it too: the terminal's Ctrl-C, any that a batch system sent
    problem: str = ""


def supervise(guard: Guard, orders: Orders) -> Outcome:
    """Tell the guard, which makes the session and starts the jail; wait; report how the command ended."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    terminal = Terminal()
    guard.tell(pack(orders))
    from agent_sandbox.launcher.syscalls import PR_SET_CHILD_SUBREAPER, prctl

    # Should the guard be killed, what it held comes to us. Before the backend starts: bwrap binds its first process to its own
    # life a moment after making it, and one that is orphaned in that moment would run on with nobody above it.
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    guard.let_go()
    outcome = _Watch(guard, orders.plan.program, glances=terminal.was_ours).until_it_ends()
    end_children()
    close_session(orders.session)
    terminal.take_back(restore_modes=outcome.code != 0)
    return outcome


def die_of(number: int) -> None:
    """As the command did: a shell that runs us in a loop goes on after an exit code, and ends after this."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})


class _Watch:
    def __init__(self, guard: Guard, backend: str, *, glances: bool) -> None:
        self._guard, self._status, self._backend, self._glances = guard.pid, guard.status, backend, glances
        self._canary = guard.canary
        self._passed: set[int] = set()
        self._hears = False  # does the command get what the terminal sends?
        self._interrupted = False
        self._ended_by = 0  # the signal that came before there was a command to receive it

    def until_it_ends(self) -> Outcome:
        """The guard is looked at before every wait: it may have been killed before we began to listen for it."""
        while True:
            pid, status = os.waitpid(self._guard, os.WNOHANG)
            if pid:
                return self._outcome(os.waitstatus_to_exitcode(status))
            caught = self._next_signal()
            if caught is None:
                self._glance()
            elif caught.si_signo != signal.SIGCHLD:
                self._pass_on(caught)

    def _next_signal(self) -> signal.struct_siginfo | None:
        if not self._glances:
            return signal.sigwaitinfo(WATCHED)
        return signal.sigtimedwait(WATCHED, GLANCE if self._hears else PAUSE)

    def _glance(self) -> None:
        """Of a key pressed while the jail is being built the command knows nothing: so we must know since when it can. One that
        waits for us now may have come before it could: better twice than never."""
        if self._hears:
            self._stop_if_the_command_did()
        else:
            self._hears = self._command(patience=0) is not None and not signal.sigpending() & FROM_TERMINAL

    def _pass_on(self, caught: signal.struct_siginfo) -> None:
        number = caught.si_signo
        by_terminal = caught.si_code > 0 and number in FROM_TERMINAL
        if by_terminal and number == signal.SIGINT:
            self._interrupted = True
        self._passed.add(number)
        if not (by_terminal and self._hears) and not self._reached_everybody(number):
            self._send(number)
        if number in STOPS:
            self._stop_with_the_command(number)

    def _reached_everybody(self, number: int) -> bool:
        """A batch system signals us alone or every process of the job: the command too, then, if it was there."""
        if self._canary is None:
            return False
        was_there = self._command(patience=0) is not None
        return self._canary.heard(number) and was_there

    def _send(self, number: int) -> None:
        command = self._command(patience=0 if number in HARMLESS else START_SECONDS)
        if command:
            processes.kill(command, number)
        elif not self._is_over() and number not in HARMLESS | STOPS and signal.getsignal(number) != signal.SIG_IGN:
            self._ended_by = self._ended_by or number
            self._end_now()

    def _command(self, patience: float) -> int | None:
        """The first child of the jail's first process, once it is the command and can hear: until then signals are ignored there."""
        deadline = time.monotonic() + patience
        while True:
            first = self._status.first_process()
            found = processes.children(first)[:1] if first else []
            if found and not self._is_ours(found[0]):
                return found[0]
            if time.monotonic() >= deadline or self._is_over():
                return None
            time.sleep(PAUSE)

    def _is_over(self) -> bool:
        return self._status.exit_code() is not None or processes.state(self._guard) in ("", "Z")

    def _is_ours(self, pid: int) -> bool:
        """Not yet the command: still this program (where our own process becomes it), the backend, or the wrapping."""
        words = processes.command_line(pid)
        return not words or words[0] == self._backend or is_wrapper(words) or words == processes.command_line(os.getpid())

    def _stop_with_the_command(self, number: int) -> None:
        """The caller's shell sees only us: stop when the command did, and not when it chose to go on."""
        deadline = time.monotonic() + STOP_SECONDS
        while not self._stop_if_the_command_did(number) and time.monotonic() < deadline:
            time.sleep(PAUSE)

    def _stop_if_the_command_did(self, number: int = signal.SIGSTOP) -> bool:
        command = self._command(patience=0)
        stopped = command is not None and processes.state(command) in ("T", "t")
        if stopped:
            os.kill(os.getpid(), number)
            mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})  # here we stop, until somebody continues us
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return stopped

    def _end_now(self) -> None:
        first = self._status.first_process()
        for pid in [first] if first else processes.children(self._guard):
            processes.kill(pid, signal.SIGKILL)

    def _outcome(self, ended: int) -> Outcome:
        """`ended` is the guard's exit code; negative = it was killed."""
        code, problem = self._status.exit_code(), self._status.stage_error()
        if code is None and ended >= 0 and self._status.is_inside():
            code = ended  # a backend that says it only by its own
        if self._status.timed_out():
            return Outcome(code=TIMED_OUT, started=True, timed_out=True)
        if self._ended_by:
            return Outcome(code=128 + self._ended_by, started=False)
        if code is not None and not problem:
            return Outcome(code=code, started=True, died_of=self._died_of(code - 128))
        if ended < 0:
            return Outcome(code=FAILED, started=False, problem="the guard was killed, and the jail ended with it")
        if problem or ended != 128 + signal.SIGKILL:
            return Outcome(code=FAILED, started=False, problem=problem or _why(ended))
        return Outcome(code=ended, started=self._status.first_process() is not None)

    def _died_of(self, number: int) -> int:
        seen = self._passed if self._canary else {signal.SIGINT} if self._interrupted else set()
        return number if number in seen else 0


def _why(ended: int) -> str:
    """The backend has said more on stderr, unless a signal ended it."""
    names = {128 + number: signal.Signals(number).name for number in range(1, signal.SIGSYS + 1)}
    died = f": {names[ended]} ended it, perhaps a limit is too small" if ended in names else ""
    return f"the jail could not be built{died}"
