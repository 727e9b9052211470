"""Questions to /proc about other processes, a `kill` that does not mind one that is gone, and the end of all children."""

from __future__ import annotations

import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

AGAIN = 0.05  # seconds until those that still live are killed once more


def children(pid: int) -> list[int]:
    """The direct children of a process, oldest first."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(word) for word in file.read().split()]
    except FileNotFoundError:  # the process is gone, or the kernel was built without this file
        return scan_children(pid) if os.path.exists(f"/proc/{pid}") else []
    except OSError:
        return []


def oldest_descendant(pid: int, generations: int) -> int | None:
    """Of the oldest child the oldest child, and so on."""
    here: int | None = pid
    for _ in range(generations):
        here = next(iter(children(here)), None) if here else None
    return here


def scan_children(pid: int) -> list[int]:
    """The same by looking at every process."""
    found = []
    for name in os.listdir("/proc"):
        fields = _stat(name) if name.isdecimal() else []
        if fields and int(fields[1]) == pid:
            found.append((int(fields[19]), int(name)))
    return [one for _, one in sorted(found)]


def state(pid: int) -> str:
    """R, S, D, T (stopped), t (traced), Z (ended, not collected); "" = gone."""
    fields = _stat(str(pid))
    return fields[0].decode() if fields else ""


def parent(pid: int) -> int:
    """0 = it has none, is gone, or is not shown to us."""
    fields = _stat(str(pid))
    return int(fields[1]) if fields else 0


def command_line(pid: int) -> list[str]:
    """The first words of it; none while the process is becoming another program, and when it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            text = file.read(4096)
    except OSError:
        return []
    return [os.fsdecode(word) for word in text.split(b"\0")] if text else []


def kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _stat(pid: str) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on: a name before them may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def end_children() -> None:
    """Kill and collect until no child is left: killing a jail's first process ends all the others.

    First those processes, which are our children's: a backend that sees its jail end puts its own affairs in order (firejail has
    files in /run), and one that is killed does not.
    """
    firsts = [first for backend in children(os.getpid()) for first in children(backend)]
    for pid in firsts:
        kill(pid, signal.SIGKILL)
    if firsts:
        signal.sigtimedwait({signal.SIGCHLD}, AGAIN)
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in children(os.getpid()):
            kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, AGAIN)


def wait_for(pid: int, seconds: float) -> None:
    """Until a child has ended and is collected, or the time is over. SIGCHLD must be blocked."""
    deadline = time.monotonic() + seconds
    try:
        while not os.waitpid(pid, os.WNOHANG)[0] and time.monotonic() < deadline:
            signal.sigtimedwait({signal.SIGCHLD}, AGAIN)
    except ChildProcessError:  # collected before
        pass


def reap(wanted: int, heard: Callable[[int, int], None] | None = None) -> int | None:
    """Collect whoever ended; the exit code of the one that is wanted, once it is among them (128 + n: by signal n). `heard` is told of the others."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        ended = os.waitstatus_to_exitcode(status)
        if pid == wanted:
            code = ended if ended >= 0 else 128 - ended
        elif heard:
            heard(pid, ended)
