"""Announcements in the FIFO `ask` become open lines to stubs. The directory of FIFOs belongs to the jail: nothing in it is believed.

Whatever lies there under a name may have been put there, or be replaced while we look: a link to ~/.bashrc, a device, a file.
So each name is opened first as a mere place (O_PATH, no link followed), that place is checked, and only then is the same place
opened for use, by its descriptor. Nothing is ever created or truncated there but `ask` itself, before the jail starts.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from itertools import islice

from agent_sandbox.config.record import record

ASK = "ask"
GREETING = b"chaperon/1 "
DIGITS = 32
ANNOUNCEMENT = len(GREETING) + DIGITS
HEX = frozenset(b"0123456789abcdef")
AT_ONCE = 4096  # bytes of announcements that are taken at a time
OLD = 10.0  # seconds after which a FIFO that nobody holds open has been left behind
MOST_SWEPT = 4096


@record
class Line:
    """The two FIFOs of one stub, open: what it says, and what it hears."""

    hear: int
    tell: int


def prepare(directory: str) -> int:
    """Make and open `ask`, before the jail starts: from now on a stub finds somebody there. Held for writing too, so it never ends."""
    path = f"{directory}/{ASK}"
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:
        pass
    handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not _is_ours(os.fstat(handle)):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a FIFO of ours", path)
    return handle


class Gate:
    def __init__(self, directory: str, ask: int = -1) -> None:
        self._directory = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.ask = ask if ask >= 0 else prepare(directory)
        self._rest = b""

    def announced(self) -> list[str]:
        """Who has come; garbage between two line ends is nobody, and is never kept for long."""
        try:
            data = self._rest + os.read(self.ask, AT_ONCE)
        except BlockingIOError:
            return []
        *lines, rest = data.split(b"\n")
        self._rest = rest if len(rest) <= ANNOUNCEMENT else b"!"  # too long to become an announcement
        return [line[len(GREETING) :].decode() for line in lines if _is_announcement(line)]

    def admit(self, name: str) -> Line | None:
        """The line to a stub; None where it is gone, or is none. Its names disappear: nobody else can come by them.

        Raises OSError where we have no descriptor left, with everything as it was.
        """
        hear = self._open(f"{name}.in", os.O_RDONLY)
        try:
            tell = self._open(f"{name}.out", os.O_WRONLY) if hear >= 0 else -1
        except OSError:
            os.close(hear)
            raise
        for end in ("in", "out"):
            self._remove(f"{name}.{end}")
        if tell >= 0:
            return Line(hear=hear, tell=tell)
        if hear >= 0:
            os.close(hear)
        return None

    def _open(self, name: str, mode: int) -> int:
        try:
            place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            return -1
        try:
            if not _is_ours(os.fstat(place)):
                return -1
            return os.open(f"/proc/self/fd/{place}", mode | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError as error:  # for writing: nobody reads
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            return -1
        finally:
            os.close(place)

    def _remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._directory)
        except OSError:
            pass

    def sweep(self) -> None:
        """Remove the FIFOs of stubs that were killed before they announced themselves, or whose announcement was lost."""
        now = time.time()
        with os.scandir(self._directory) as entries:  # there may be any number of them
            names = [entry.name for entry in islice(entries, MOST_SWEPT)]
        for name in names:
            stem, _, end = name.rpartition(".")
            if end == "in" and is_name(stem.encode("utf-8", "replace")) and self._is_left(name, now):
                self._remove(name)
                self._remove(f"{stem}.out")

    def _is_left(self, name: str, now: float) -> bool:
        """A stub keeps this one open for both, from its making on: a writer finds a reader as long as the stub lives."""
        try:
            if now - os.lstat(name, dir_fd=self._directory).st_ctime < OLD:
                return False
        except OSError:
            return False
        handle = self._open(name, os.O_WRONLY)
        if handle >= 0:
            os.close(handle)
        return handle < 0

    def close(self) -> None:
        os.close(self.ask)
        os.close(self._directory)


def is_name(text: bytes) -> bool:
    return len(text) == DIGITS and HEX.issuperset(text)


def _is_announcement(line: bytes) -> bool:
    return line.startswith(GREETING) and is_name(line[len(GREETING) :])


def _is_ours(found: os.stat_result) -> bool:
    """A FIFO of this user's with one name: another name may be another program's."""
    return stat.S_ISFIFO(found.st_mode) and found.st_uid == os.getuid() and found.st_nlink == 1
