"""Events become lines of the audit log, each carrying the hash of the line before. A log that cannot be written warns, never blocks.

One file a host and day, in a directory that no jail can see. A new day's file goes on from the last line of the one before.
"""

from __future__ import annotations

import fcntl
import os
import time

from agent_sandbox.launcher.jsonline import dumps

try:
    from _sha256 import sha256
except ImportError:
    from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.jsonline import Plain

FIRST = "0" * 64
LONGEST_LINE = 1 << 16
LOCK_SECONDS = 1.0


class Audit:
    def __init__(self, directory: str, host: str, *, enabled: bool, keep_days: int | None, max_size: int | None) -> None:
        self.directory, self.host, self.enabled = directory, host.replace("/", "_"), enabled
        self._keep_days, self._max_size = keep_days, max_size

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
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        path = f"{self.directory}/{stamp[:10]}.{self.host}.jsonl"
        handle, is_new = self._open(path)
        try:
            handle = _lock(handle, path)
            before = last_line(handle) or (self._before(path) if is_new else b"")
            previous = sha256(before).hexdigest() if before else FIRST
            line = dumps({"time": stamp, "event": event, **facts, "prev": previous})
            _write_whole(handle, _shortened(line, event, stamp, previous).encode() + b"\n")
        finally:
            os.close(handle)

    def _open(self, path: str) -> tuple[int, bool]:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(path, flags), False
        except FileNotFoundError:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            self._prune()
            return os.open(path, flags | os.O_CREAT, 0o600), True

    def files(self) -> list[str]:
        """This host's files, oldest first."""
        try:
            names = os.listdir(self.directory)
        except OSError:
            return []
        return [f"{self.directory}/{name}" for name in sorted(names) if f".{self.host}." in name and name.endswith(".jsonl")]

    def _before(self, path: str) -> bytes:
        earlier = [one for one in self.files() if one < path]
        if not earlier:
            return b""
        handle = os.open(earlier[-1], os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return last_line(handle)
        finally:
            os.close(handle)

    def _prune(self) -> None:
        """By age and by size, oldest first; once a day, when a file begins."""
        files = self.files()
        oldest = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86400 * self._keep_days)) if self._keep_days else ""
        total = sum(os.path.getsize(path) for path in files)
        for path in files:
            too_old = os.path.basename(path)[:10] < oldest
            too_much = self._max_size is not None and total > self._max_size
            if too_old or too_much:
                total -= os.path.getsize(path)
                os.unlink(path)


def _lock(handle: int, path: str) -> int:
    """One writer at a time; where locks do not work, a file of this process's own."""
    deadline = time.monotonic() + LOCK_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            time.sleep(0.002)
        except OSError:
            break
    os.close(handle)
    own = f"{path.removesuffix('.jsonl')}.{os.getpid()}.jsonl"
    return os.open(own, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def last_line(handle: int) -> bytes:
    """The last whole line, without its end; what a crash left half-written does not count."""
    size = os.fstat(handle).st_size
    tail = os.pread(handle, min(size, 2 * LONGEST_LINE), max(0, size - 2 * LONGEST_LINE))
    lines = tail.rpartition(b"\n")[0].rpartition(b"\n")
    return lines[2]


def _shortened(line: str, event: str, stamp: str, previous: str) -> str:
    if len(line) < LONGEST_LINE:
        return line
    return dumps({"time": stamp, "event": event, "shortened": line[: LONGEST_LINE // 4], "prev": previous})


def _write_whole(handle: int, data: bytes) -> None:
    """A line is there or not: a full disk must not leave half of one in the chain."""
    size = os.fstat(handle).st_size
    torn = size and os.pread(handle, 1, size - 1) != b"\n"
    whole = b"\n" + data if torn else data
    try:
        if os.write(handle, whole) < len(whole):
            raise OSError(28, os.strerror(28))
    except OSError:
        os.ftruncate(handle, size)
        raise
