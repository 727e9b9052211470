"""The guard is started first and told later: it loads what it needs while the launcher reads the settings.

Until it is told it waits on a pipe. A launcher that refuses, or dies, closes that pipe, and the guard ends without a trace.
"""

from __future__ import annotations

import os

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.status import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn, Protocol

    class Canary(Protocol):
        def heard(self, number: int) -> bool:
            """Was this signal, which we got, sent to every process of ours?"""

else:
    import _signal as signal  # the same without names: those cost as much as all that is loaded before the guard starts

STOPS = frozenset({signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})
HARMLESS = frozenset({signal.SIGCONT, signal.SIGWINCH})  # nobody ends by them, so nobody waits to deliver them
FORWARDED = HARMLESS | {
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU,
    signal.SIGVTALRM, signal.SIGPROF,
}  # fmt: skip
WATCHED = FORWARDED | STOPS | {signal.SIGCHLD}
FAILED = 125
SIZE = 8  # bytes that say how long the orders are


class Guard:
    """The launcher's hold on its guard."""

    def __init__(self, pid: int, orders: int, status: int, ahead: int) -> None:
        self.pid, self.status = pid, Status(status)
        self._orders, self._ahead = orders, ahead
        self.canary: Canary | None = None  # where a batch system started us

    def parsed_ahead(self) -> bytes:
        """The usual config files, as the guard parsed them while we were busy."""
        with os.fdopen(self._ahead, "rb") as file:
            return file.read()

    def kernel(self) -> dict[str, int]:
        """What the guard found in the kernel while we were busy: the Landlock version, and whether seccomp can notify."""
        landlock = self.status.wait_for("landlock")
        if landlock is None:
            raise UserError("the guard could not be started", hint="`agent-sandbox doctor` finds the reason")
        return {"landlock": landlock, "notify": bool(self.status.number("notify"))}

    def tell(self, orders: bytes) -> None:
        """It prepares everything, and starts the backend when it is let go."""
        left = memoryview(len(orders).to_bytes(SIZE) + orders)
        try:
            while left:
                left = left[os.write(self._orders, left) :]
        except BrokenPipeError:
            pass  # it was killed: waiting for it will tell
        os.sched_yield()  # woken by us it may be queued behind us, for a millisecond or more

    def let_go(self) -> None:
        os.close(self._orders)
        self._orders = -1

    def dismiss(self) -> None:
        """Nothing comes of this launch. Does nothing once the guard was let go."""
        if self._orders >= 0:
            self.let_go()
            os.waitpid(self.pid, 0)


def start_guard() -> Guard:
    """Every signal that we wait for is blocked in the guard from its first moment on."""
    status, report = os.pipe()
    hear, orders = os.pipe()
    ahead, parsed = os.pipe()
    launcher = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    try:
        pid = os.fork()
    except OSError as error:
        raise UserError(f"no process can be started: {error.strerror}", hint="`ulimit -u` may be too low")
    if pid == 0:
        for handle in (status, orders, ahead):
            os.close(handle)
        _be_guard(hear, report, parsed, launcher)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for handle in (hear, report, parsed):
        os.close(handle)
    return Guard(pid, orders, status, ahead)


def _be_guard(hear: int, report: int, parsed: int, launcher: int) -> NoReturn:
    code = FAILED
    try:
        from agent_sandbox.config.ahead import parse_usual_files

        with os.fdopen(parsed, "wb") as file:
            file.write(parse_usual_files())
        from agent_sandbox.launcher.guard import run_guard

        code = run_guard(hear, report, launcher)
    finally:
        os._exit(code)
