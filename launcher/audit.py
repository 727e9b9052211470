"""Events become lines of the audit log, each with the hash of the one before. A log that fails warns, never blocks.

    DAY.HOST.jsonl      the file that grows; a new day's goes on from the last line of the one before
    DAY.HOST+N.jsonl    an earlier part of that day, set aside when it became too long
    DAY.HOST~PID.jsonl  a chain of one process alone, made where the file could not be locked

They lie in a directory that no jail can see. Every decision about a file is made by whoever holds its lock.
"""

from __future__ import annotations

import fcntl
import os
import time

from agent_sandbox.config.record import record
from agent_sandbox.launcher.jsonline import dumps

try:  # importing hashlib would load OpenSSL
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.jsonline import Plain

FIRST = "0" * 64
LONGEST_LINE = 1 << 16
LOCK_SECONDS = 1.0
PARTS = 8  # a file is set aside at this fraction of the room, so that dropping the oldest leaves most of it
FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


@record
class Log:
    """Where the log is, whose it is, and how long it is kept."""

    directory: str
    host: str
    enabled: bool
    keep_days: int | None
    max_size: int | None


class Audit:
    def __init__(self, log: Log) -> None:
        self.log = log
        self.directory, self.host, self.enabled = log.directory, log.host.replace("/", "_"), log.enabled
        self._keep_days, self._max_size = log.keep_days, log.max_size

    def write(self, event: str, facts: dict[str, Plain]) -> str:
        """Append one event; the problem in words if that failed, else ""."""
        if not self.enabled:
            return ""
        try:
            self._append(event, facts)
        except OSError as error:
            return f"the audit log cannot be written ({error.strerror}): {self.directory}"
        return ""

    def _append(self, event: str, facts: dict[str, Plain]) -> None:
        handle, stamp, chained = self._open()
        try:
            before, size = last_line(handle)
            begins = not before
            if begins and chained:
                before = self._line_before(f"{self.directory}/{stamp[:10]}.{self.host}.jsonl")
            previous = hash_of(before) if before else FIRST
            line = dumps({"time": stamp, "event": event, **facts, "prev": previous})
            _write_whole(handle, _shortened(line, event, stamp, previous).encode() + b"\n", size)
            if begins:
                self._prune()
        finally:
            os.close(handle)

    def _open(self) -> tuple[int, str, bool]:
        """The file to append to, locked, with the time; False = a chain of this process alone."""
        for _ in range(20):
            day = _stamp()[:10]
            path = f"{self.directory}/{day}.{self.host}.jsonl"
            handle = self._create(path)
            if not lock(handle):
                os.close(handle)
                return self._create(f"{self.directory}/{day}.{self.host}~{os.getpid()}.jsonl"), _stamp(), False
            stamp = _stamp()  # after the wait: it may be another day, and lines stand in the order of their times
            if stamp[:10] == day and _is_at(handle, path) and not self._set_aside(handle, path):
                return handle, stamp, True
            os.close(handle)
        raise OSError(11, os.strerror(11))

    def _create(self, path: str) -> int:
        try:
            return os.open(path, FLAGS | os.O_CREAT, 0o600)
        except FileNotFoundError:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            return os.open(path, FLAGS | os.O_CREAT, 0o600)

    def _set_aside(self, handle: int, path: str) -> bool:
        """A day's file that has grown too long makes room for a new one."""
        if self._max_size is None or os.fstat(handle).st_size <= self._max_size // PARTS:
            return False
        today = path.removesuffix(".jsonl")
        parts = [one[len(today) + 1 : -6] for one in self.files() if one.startswith(f"{today}+")]
        os.rename(path, f"{today}+{int(parts[-1]) + 1 if parts else 1}.jsonl")
        return True

    def files(self) -> list[str]:
        """This host's chain, oldest first."""
        return [f"{self.directory}/{name}" for name in sorted(self._names(), key=self._order) if "~" not in name[11:]]

    def loose_files(self) -> list[str]:
        """The chains of single processes."""
        return [f"{self.directory}/{name}" for name in sorted(self._names()) if "~" in name[11:]]

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self.directory)
        except OSError:
            return []
        return [name for name in names if name.endswith(".jsonl") and self._is_ours(name[11:-6])]

    def _is_ours(self, stem: str) -> bool:
        rest = stem.removeprefix(self.host)
        return stem == self.host or (rest != stem and rest[0] in "+~" and rest[1:].isdecimal())

    def _order(self, name: str) -> tuple[str, float]:
        part = name[11:-6].removeprefix(self.host)[1:]
        return name[:10], int(part) if part else float("inf")

    def _line_before(self, new: str) -> bytes:
        """The last line of the files before this one; whoever still writes there is waited for."""
        files = self.files()
        for path in reversed(files[: files.index(new)]):
            handle = os.open(path, FLAGS)
            try:
                lock(handle)
                found = last_line(handle)[0]
            finally:
                os.close(handle)
            if found:
                return found
        return b""

    def _prune(self) -> None:
        """By age and by size, oldest first; when a file begins, and never that file."""
        oldest = _day(time.time() - 86400 * self._keep_days) if self._keep_days is not None else ""
        files = sorted([*self.files()[:-1], *self.loose_files()], key=lambda path: os.path.basename(path)[:10])
        sizes = {path: _size(path) for path in files}
        total = sum(sizes.values())
        for path in files:
            too_much = self._max_size is not None and total > self._max_size
            if os.path.basename(path)[:10] < oldest or too_much:
                total -= sizes[path]
                _remove(path)


def hash_of(line: bytes) -> str:
    return str(sha256(line).hexdigest())


def _stamp() -> str:
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def lock(handle: int) -> bool:
    """One writer at a time. False where locks do not work, or somebody holds this one and does not go on."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        except OSError:
            return False


def _is_at(handle: int, path: str) -> bool:
    """Is the file still there under its name? Another process may have set it aside while we waited."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def last_line(handle: int) -> tuple[bytes, int]:
    """The last whole line, and where it ends: what a crash left half-written after it does not count."""
    size = os.fstat(handle).st_size
    start = max(0, size - 2 * LONGEST_LINE)
    whole, end, _ = os.pread(handle, size - start, start).rpartition(b"\n")
    if not end:
        return b"", 0 if start == 0 else size
    return whole.rpartition(b"\n")[2], start + len(whole) + 1


def _shortened(line: str, event: str, stamp: str, previous: str) -> str:
    if len(line) < LONGEST_LINE:
        return line
    return dumps({"time": stamp, "event": event, "shortened": line[: LONGEST_LINE // 4], "prev": previous})


def _write_whole(handle: int, data: bytes, size: int) -> None:
    """A line is there or not: neither a crash before us nor a full disk now leaves half of one in the chain."""
    if os.fstat(handle).st_size != size:
        os.ftruncate(handle, size)
    try:
        if os.write(handle, data) < len(data):
            raise OSError(28, os.strerror(28))
    except OSError:
        os.ftruncate(handle, size)
        raise


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
