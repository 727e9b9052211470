"""Commands become processes: the real scheduler's programs, in an environment of ours, without anybody waiting for them.

Nothing here blocks. A Process has three pipes that the caller watches; it has ended when it was reaped and its pipes are empty.
"""

from __future__ import annotations

import errno
import os
import signal
import time

from agent_sandbox.chaperon.command import Result
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.chaperon.command import Command
    from agent_sandbox.chaperon.orders import Orders

PIECE = 64 << 10
GRACE = 2.0  # seconds between asking a program to end and ending it
UNSTARTED = {errno.ENOENT: 127}  # as a shell answers; everything else is 126
DEFAULTS = tuple(sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}))


class Process:
    """One program that runs. `out` and `err` are -1 once they have ended, `stdin` once everything was said."""

    def __init__(self, command: Command, pid: int, pipes: tuple[int, int, int], now: float) -> None:
        self.command, self.pid = command, pid
        self.stdin, self.out, self.err = pipes
        self.code: int | None = None
        self.until = None if command.lasting else now + command.seconds
        self.timed_out = self.cut = False
        self._left = memoryview(b"")
        self._said: dict[bool, list[bytes]] = {False: [], True: []}
        self._size = 0

    def prepare(self) -> None:
        """What it will be told is made while it starts. Where that fails the server kills it: it has seen no end of its input, and did nothing."""
        stdin = self.command.stdin
        self._left = memoryview(stdin if isinstance(stdin, bytes) else stdin())

    def feed(self) -> bool:
        """Say as much as fits; True = that was all. A program that does not listen has its reasons, and they are in its answer."""
        try:
            while self._left:
                self._left = self._left[os.write(self.stdin, self._left[:PIECE]) :]
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def close_input(self) -> None:
        """And forget what it was."""
        self._left = memoryview(b"")
        self.command = replace(self.command, stdin=b"")
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def read(self, handle: int) -> bytes | None:
        """One piece of output; b"" = nothing now, None = never again."""
        try:
            return os.read(handle, PIECE) or None
        except BlockingIOError:
            return b""

    def close_output(self, handle: int) -> None:
        os.close(handle)
        if handle == self.out:
            self.out = -1
        else:
            self.err = -1

    def close(self) -> None:
        self.close_input()
        for handle in self.outputs():
            self.close_output(handle)

    def outputs(self) -> list[int]:
        return [handle for handle in (self.out, self.err) if handle >= 0]

    def keep(self, piece: bytes, *, is_error: bool) -> None:
        """The rest of what is too long is read and forgotten: the program must be able to end."""
        room = self.command.most - self._size
        self.cut = self.cut or len(piece) > room
        self._said[is_error].append(piece[:room])
        self._size += min(len(piece), room)

    def take_first_line(self) -> bytes:
        """Of its output, once: empty until it is whole, and ever after."""
        line, end, _ = b"".join(self._said[False]).partition(b"\n") if self.command.hear else (b"", b"", b"")
        if end:
            self.command = replace(self.command, hear=None)
        return line + end if end else b""

    @property
    def has_spoken(self) -> bool:
        return self._size > 0

    def result(self) -> Result:
        code = self.code if self.code is not None else 1
        out, err = (b"".join(self._said[is_error]) for is_error in (False, True))
        return Result(code=code, out=out, err=err, timed_out=self.timed_out, cut=self.cut)

    def stop(self, now: float) -> None:
        """Ask it to end, and the next time end it."""
        number = signal.SIGKILL if self.timed_out else signal.SIGTERM
        self.timed_out, self.until = True, now + GRACE
        self.signal(number)

    def signal(self, number: int) -> None:
        """To it and to what it started; only while it is not reaped: later the number may be another's."""
        if self.code is None:
            try:
                os.killpg(self.pid, number)
            except OSError:
                pass


class Scheduler:
    def __init__(self, orders: Orders) -> None:
        self._programs = orders.programs
        self._environment = {
            "PATH": f"{orders.programs}:/usr/bin:/bin", "HOME": orders.home, "USER": orders.user, "LOGNAME": orders.user, "LANG": "C.UTF-8",
            **({"SLURM_CONF": orders.slurm_conf} if orders.slurm_conf else {}),
        }  # fmt: skip
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self.running: dict[int, Process] = {}

    def start(self, command: Command) -> Process | Result:
        """A process; or at once a result, where there is no such program."""
        path = command.program if command.program.startswith("/") else f"{self._programs}/{command.program}"
        words, environment = [path.rpartition("/")[2], *command.words], {**self._environment, **dict(command.environment)}
        ours, theirs = self._pipes(has_input=bool(command.stdin))
        wiring = [(os.POSIX_SPAWN_DUP2, handle, number) for number, handle in enumerate(theirs)]
        try:
            pid = os.posix_spawn(path, words, environment, file_actions=wiring, setsid=True, setsigmask=(), setsigdef=DEFAULTS)
        except (OSError, ValueError) as error:
            _close(ours)
            code = UNSTARTED.get(error.errno or 0, 126) if isinstance(error, OSError) else 126
            return Result(code=code, err=f"{command.program}: error: it cannot be started: {_why(error)}\n".encode())
        finally:
            _close(handle for handle in theirs if handle != self._null)
        process = Process(command, pid, ours, time.monotonic())
        self.running[pid] = process
        return process

    def _pipes(self, *, has_input: bool) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Our ends, which never block, and the program's."""
        opened: list[int] = []
        try:
            for _ in range(3 if has_input else 2):
                opened += os.pipe2(os.O_CLOEXEC)
        except OSError:
            _close(opened)
            raise
        out, their_out, err, their_err, *rest = opened
        their_input, stdin = rest or (self._null, -1)
        for handle in (out, err, stdin):
            if handle >= 0:
                os.set_blocking(handle, False)
        return (stdin, out, err), (their_input, their_out, their_err)

    def reap(self) -> list[Process]:
        """Those that have ended since the last time."""
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if process := self.running.pop(pid, None):
                code = os.waitstatus_to_exitcode(status)
                process.code = code if code >= 0 else 128 - code
                ended.append(process)
        return ended

    def close(self) -> None:
        """What changes nothing is asked to end, and so is what only waits for a job that it has named; a submission ends by itself."""
        for process in self.running.values():
            if process.command.live or (process.command.lasting and process.has_spoken):
                process.signal(signal.SIGTERM)


def _close(handles: Iterable[int]) -> None:
    for handle in handles:
        if handle >= 0:
            os.close(handle)


def _why(error: OSError | ValueError) -> str:
    return error.strerror or "" if isinstance(error, OSError) else "a word cannot be passed on"
