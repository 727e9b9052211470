"""A child in a job's process group that does nothing but say which signals it got.

A batch system signals the first process of a job alone (`scancel --batch`, `sbatch --signal=B:…`), or the whole group, or every process
below it. The kernel does not tell us which; but what the canary got as well, the command has got already.
"""

from __future__ import annotations

import os
import select
import signal
import time

from agent_sandbox.launcher import syscalls
from agent_sandbox.launcher.handover import FORWARDED, HARMLESS, WATCHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

HEARD = FORWARDED - HARMLESS  # to be continued twice does no harm, and our own guard does that at the end
PATIENCE = 0.05  # seconds within which all of a job's processes are signalled


class Canary:
    def __init__(self) -> None:
        self._pipe, tell = os.pipe()
        launcher = os.getpid()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        if os.fork() == 0:
            _sing(tell, launcher)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(tell)
        self._heard: list[int] = []

    def heard(self, number: int) -> bool:
        """Did it get this signal, too? Each one counts once."""
        deadline = time.monotonic() + (PATIENCE if number in HEARD else 0.0)
        while number not in self._heard:
            if not select.select([self._pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return False
            told = os.read(self._pipe, 4096)
            if not told:  # it was killed
                return False
            self._heard.extend(told)
        self._heard = [one for one in self._heard if one != number]
        return True


def _sing(pipe: int, launcher: int) -> NoReturn:
    """Until the launcher is gone: one that ends in good order ends its children, and one that is killed takes us along."""
    try:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(pipe, 3)
        syscalls.close_from(4)  # among them the launcher's end of a pipe, by closing which it lets the guard go
        while os.getppid() == launcher:
            os.write(3, bytes([signal.sigwait(HEARD)]))
    finally:
        os._exit(0)
