"""One change at a time: a lock that is held as long as we, or a program that we started, still work."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from agent_sandbox.admin.places import LOCK
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0


@contextlib.contextmanager
def own_turn(seconds: float = SECONDS) -> Iterator[int]:
    """The lock's descriptor. It is let go by closing: a program that inherited it and outlives us keeps the turn."""
    handle = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _wait(handle, seconds)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield handle
    finally:
        os.close(handle)


def _wait(handle: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                holder = os.pread(handle, 32, 0).decode(errors="replace").strip()
                raise UserError(f"another botadm is at work (process {holder or 'unknown'})", hint="wait for it, and start again") from None
            time.sleep(0.05)
