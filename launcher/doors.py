"""The helpers of a session, each behind a FIFO: whoever knocks first is what starts one. A session that never asks pays next to nothing.

The guard holds every door open from before the jail starts, so that whoever comes early finds somebody there; with its helper started
it lets go of its own end, so that a helper that dies leaves a door at which nobody is.
"""

from __future__ import annotations

import os
import select
import signal
import time

from agent_sandbox.launcher import processes, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.launcher.policy import Helper

FAILED = 125
HEARD = (signal.SIGCHLD, signal.SIGTERM)  # blocked in the guard, and waited for
AGAIN = 0.2  # seconds until a helper that could not be started is tried again
PATIENCE = 5.0  # seconds that a helper has to bring what it has begun to an end


class Doors:
    def __init__(self, helpers: Sequence[Helper]) -> None:
        self._shut = {_open(helper.door): helper for helper in helpers}
        self._running: list[int] = []
        self._bell = -1  # where signals are heard while there are doors to listen at

    def forget(self) -> None:
        """In a child that must not hold them."""
        for door in self._shut:
            os.close(door)

    def wait(self, seconds: float | None) -> bool:
        """Until one of our signals comes; False = the time is over, or somebody was let in."""
        if not self._shut:
            return bool(signal.sigwait(HEARD) if seconds is None else signal.sigtimedwait(HEARD, seconds))
        if self._bell < 0:
            self._bell = syscalls.signal_handle(HEARD)
        ears = select.poll()
        for handle in (self._bell, *self._shut):
            ears.register(handle, select.POLLIN)
        ready = [handle for handle, _ in ears.poll(None if seconds is None else seconds * 1000)]
        for door in [handle for handle in ready if handle in self._shut]:
            self._start(door, self._shut.pop(door))
        return self._bell in ready and bool(os.read(self._bell, 4096))

    def _start(self, door: int, helper: Helper) -> None:
        """What it needs is loaded in its own process, which gives up everything else that is open."""
        guard = os.getpid()
        try:
            pid = os.fork()
        except OSError:  # the user has no process left, by the jail's doing perhaps, which must not end it: whoever knocked waits
            self._shut[door] = helper
            time.sleep(AGAIN)
            return
        if pid == 0:
            try:
                from importlib import import_module

                import_module(helper.module).run(helper.orders, door, guard)
            finally:
                os._exit(FAILED)
        os.close(door)
        self._running.append(pid)

    def close(self) -> None:
        """The jail is over: nobody asks any more, and what is in the middle of something may end it."""
        for pid in self._running:
            processes.kill(pid, signal.SIGTERM)
        for pid in self._running:
            processes.wait_for(pid, PATIENCE)


def _open(path: str) -> int:
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
