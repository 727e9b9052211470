"""The launcher while the jail lives: asleep, in the caller's process group, passing on what only it can know.

Every signal is blocked and waited for, so that its sender is known: what the terminal sent has reached the command already,
what was sent to us by number has not.
"""

from __future__ import annotations

import os
import signal
import time

from agent_sandbox.config.record import record
from agent_sandbox.launcher.guard import children, run_guard
from agent_sandbox.launcher.status import Status
from agent_sandbox.launcher.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.plan import Plan

STOPS = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
FORWARDED = frozenset({
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCONT,
    signal.SIGWINCH, signal.SIGXCPU,
})  # fmt: skip
WATCHED = FORWARDED | STOPS | {signal.SIGCHLD}
GRACE = 5.0  # seconds between asking the command to end and ending it
STOP_SECONDS = 0.3  # how long a command may take to stop after the terminal asked for it
TIMED_OUT = 124


@record
class Outcome:
    code: int
    started: bool
    timed_out: bool = False
    problem: str = ""


def supervise(plan: Plan, clean_up: Callable[[], None]) -> Outcome:
    """Fork the guard, which starts the jail; wait; report how the command ended."""
    reader, writer = os.pipe()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    terminal = Terminal()
    launcher = os.getpid()
    guard = os.fork()
    if guard == 0:
        _guard_and_exit(plan, reader, writer, launcher, clean_up)
    os.close(writer)
    outcome = _Watch(guard, Status(reader), plan.stage.limits.wall_time).until_it_ends()
    terminal.take_back(restore_modes=outcome.code != 0)
    return outcome


def _guard_and_exit(plan: Plan, reader: int, writer: int, launcher: int, clean_up: Callable[[], None]) -> None:
    code = 125
    try:
        os.close(reader)
        code = run_guard(plan, writer, launcher, clean_up)
    finally:
        os._exit(code)


class _Watch:
    def __init__(self, guard: int, status: Status, seconds: int | None) -> None:
        self._guard, self._status, self._seconds = guard, status, seconds
        self._deadline = time.monotonic() + seconds if seconds is not None else None
        self._timed_out = False

    def until_it_ends(self) -> Outcome:
        while True:
            caught = self._next_signal()
            if caught is None:
                self._end_by_time()
            elif caught.si_signo == signal.SIGCHLD:
                ended = self._guard_ended()
                if ended is not None:
                    return self._outcome(ended)
            else:
                self._pass_on(caught)

    def _next_signal(self) -> signal.struct_siginfo | None:
        if self._deadline is None:
            return signal.sigwaitinfo(WATCHED)
        return signal.sigtimedwait(WATCHED, max(0.0, self._deadline - time.monotonic()))

    def _guard_ended(self) -> int | None:
        pid, status = os.waitpid(self._guard, os.WNOHANG)
        if not pid:
            return None
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def _pass_on(self, caught: signal.struct_siginfo) -> None:
        by_a_process = caught.si_code <= 0  # the kernel's own signals, the terminal's among them, have positive codes
        if by_a_process:
            self._send(caught.si_signo)
        if caught.si_signo in STOPS:
            self._stop_with_the_command()

    def _send(self, number: int) -> None:
        command = self._command()
        if command:
            _kill(command, number)
        elif number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            self._end_now()

    def _command(self) -> int | None:
        """The command is the first child of the jail's first process; it may not be there for some milliseconds yet."""
        for _ in range(200):
            first = self._status.first_process()
            found = children(first) if first else []
            if found:
                return found[0]
            if first and not os.path.exists(f"/proc/{first}"):
                return None
            time.sleep(0.005)
        return None

    def _stop_with_the_command(self) -> None:
        """The caller's shell sees only us: stop when the command did, and not when it chose to go on."""
        command = self._command()
        deadline = time.monotonic() + STOP_SECONDS
        while command and time.monotonic() < deadline:
            if _is_stopped(command):
                os.kill(os.getpid(), signal.SIGSTOP)
                return
            time.sleep(0.005)

    def _end_by_time(self) -> None:
        """First asked, then ended with everything that it started."""
        if self._timed_out:
            self._end_now()
            self._deadline = None
            return
        self._timed_out = True
        self._deadline = time.monotonic() + GRACE
        command = self._command()
        if command:
            _kill(command, signal.SIGTERM)
            _kill(command, signal.SIGCONT)

    def _end_now(self) -> None:
        first = self._status.first_process()
        if first:
            _kill(first, signal.SIGKILL)
        else:
            for pid in children(self._guard):
                _kill(pid, signal.SIGKILL)

    def _outcome(self, ended: int) -> Outcome:
        code = self._status.exit_code()
        if self._timed_out:
            return Outcome(code=TIMED_OUT, started=True, timed_out=True)
        if code is not None:
            return Outcome(code=code, started=True)
        problem = self._status.stage_error()
        if problem or ended < 128:
            return Outcome(code=125, started=False, problem=problem or "the jail could not be built")
        return Outcome(code=ended, started=self._status.first_process() is not None)


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in b"Tt"
    except OSError:
        return False
