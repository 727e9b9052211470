"""The helpers of a session, each behind a door: whoever knocks first is what starts one. A session that never asks pays next to nothing.

A door is a FIFO, or a socket that listens inside and comes out through a hatch. The guard holds every door open from before the jail
starts, so that whoever comes early finds somebody there; with its helper started it lets go of its own end, so that a helper that dies
leaves a door at which nobody is.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import time

from agent_sandbox.config.record import record
from agent_sandbox.launcher import processes, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_sandbox.launcher.policy import Helper

FAILED = 125
HEARD = (signal.SIGCHLD, signal.SIGTERM)  # blocked in the guard, and waited for
AGAIN = 0.2  # seconds until a helper that could not be started is tried again
PATIENCE = 5.0  # seconds that a helper has to bring what it has begun to an end


@record
class Knock:
    """Who is behind a door, and what else it gets with it."""

    helper: Helper
    more: tuple[int, ...] = ()


class Doors:
    def __init__(self, helpers: Sequence[Helper], complain: Callable[[str], None]) -> None:
        """`complain` is told, once, of a helper that cannot be started."""
        self._complain = complain
        self._complained: set[str] = set()
        self._shut: dict[int, Knock] = {_open(helper.door): Knock(helper=helper) for helper in helpers if helper.door}
        self._hatches: dict[int, Helper] = {}
        self.hatch = -1  # for the process that becomes the jail
        self._running: dict[int, Helper] = {}
        self._bell = -1  # where signals are heard while there are doors to listen at
        for helper in helpers:
            if not helper.door:
                from agent_sandbox.launcher.listener import make_hatch

                ours, self.hatch = make_hatch()
                self._hatches[ours] = helper

    def forget(self) -> None:
        """In the child that becomes the jail, and must not hold them."""
        for door in (*self._shut, *self._hatches):
            os.close(door)

    def begin(self) -> None:
        """That child has its end of the hatch."""
        if self.hatch >= 0:
            os.close(self.hatch)

    def wait(self, seconds: float | None) -> bool:
        """Until one of our signals comes; False = the time is over, or somebody was let in."""
        if not self._shut and not self._hatches:
            return bool(signal.sigwait(HEARD) if seconds is None else signal.sigtimedwait(HEARD, seconds))
        if self._bell < 0:
            self._bell = syscalls.signal_handle(HEARD)
        ears = select.poll()
        for handle in (self._bell, *self._shut, *self._hatches):
            ears.register(handle, select.POLLIN)
        ready = [handle for handle, _ in ears.poll(None if seconds is None else seconds * 1000)]
        for handle in ready:
            if handle in self._hatches:
                self._hang(handle, self._hatches.pop(handle))
            elif handle in self._shut:
                self._start(handle, self._shut.pop(handle))
        return self._bell in ready and bool(os.read(self._bell, 4096))

    def _hang(self, hatch: int, helper: Helper) -> None:
        """The door has come. It does not where the jail could not be built."""
        from agent_sandbox.launcher.listener import take

        door, *more = take(hatch) or (-1,)
        if door >= 0:
            self._shut[door] = Knock(helper=helper, more=tuple(more))

    def _start(self, door: int, knock: Knock) -> None:
        """What it needs is loaded in its own process, which gives up everything else that is open."""
        helper = knock.helper
        guard = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:  # the user has no process left, by the jail's doing perhaps, which must not end it: whoever knocked waits
            self._shut[door] = knock
            self._name(helper, error)
            time.sleep(AGAIN)
            return
        if pid == 0:
            try:
                gc.freeze()  # what the guard has made stays, and is shared with it
                gc.enable()  # a launcher does without, since it is over soon: this one is not
                from importlib import import_module

                import_module(helper.module).run(helper.orders, door, guard, *knock.more)
            finally:
                os._exit(FAILED)
        for handle in (door, *knock.more):
            os.close(handle)
        self._running[pid] = helper

    def _name(self, helper: Helper, error: OSError) -> None:
        """By its package: `proxy`, `chaperon`."""
        name = helper.module.split(".")[-2]
        if name not in self._complained:
            self._complained.add(name)
            self._complain(f"the {name} of this session cannot be started: {error.strerror}; whoever asks for it waits until it can")

    def dead(self, pid: int) -> Helper | None:
        """The helper that this process was."""
        return self._running.pop(pid, None)

    def close(self) -> None:
        """The jail is over: nobody asks any more, and what is in the middle of something may end it."""
        for pid in self._running:
            processes.kill(pid, signal.SIGTERM)
        for pid in self._running:
            processes.wait_for(pid, PATIENCE)


def _open(path: str) -> int:
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
