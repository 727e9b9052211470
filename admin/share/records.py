"""How the files of a shared tree were before: root's own file for each tree, written before each change.

The first line names the tree and whom it was shared for; each other line is one file. A file is known again by its inode and the time
it was made, wherever in the tree it has been moved to; where a file system does not keep that time, by its inode and its path.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os

from agent_sandbox.admin.descriptors import Kept, append
from agent_sandbox.admin.places import SHARES
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.admin.share.rules import File

    Identity = tuple[int, int, str]


@record
class Header:
    path: str
    owner: str
    recursive: bool


def record_of(path: str) -> str:
    return f"{SHARES}/{hashlib.sha256(os.fsencode(path)).hexdigest()[:24]}.jsonl"


def identity(inode: int, made: int, path: str) -> Identity:
    return (inode, made, "" if made else path)


def identity_of(file: File) -> Identity:
    return identity(file.inode, file.made, file.path)


class Writer:
    """Appends; `size` is where the next line begins."""

    def __init__(self, header: Header) -> None:
        path = record_of(header.path)
        _cut_last_line(path)
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if os.fstat(self._handle).st_size == 0:
            self._write(dict(vars(header)))

    def add(self, file: File) -> None:
        kept = file.kept
        self._write([file.path, file.inode, file.made, kept.uid, kept.gid, kept.mode, kept.access, kept.default])

    def close(self) -> None:
        os.fsync(self._handle)
        os.close(self._handle)

    def _write(self, line: object) -> None:
        append(self._handle, json.dumps(line).encode() + b"\n")


def _cut_last_line(path: str) -> None:
    """Where a crash left half of one: nothing was done that it would tell of."""
    with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
        whole = sum(len(line) for line in file if line.endswith(b"\n"))
        file.truncate(whole)


def size_of(path: str) -> int:
    """Of a tree's record; 0 = there is none."""
    try:
        return os.stat(record_of(path)).st_size
    except FileNotFoundError:
        return 0


def read_header(name: str) -> Header | None:
    """None = a crash cut it off, before anything was shared."""
    with open(f"{SHARES}/{name}", encoding="utf-8") as file:
        line = file.readline()
    return Header(**json.loads(line)) if line.endswith("\n") else None


def headers() -> list[Header]:
    try:
        names = sorted(name for name in os.listdir(SHARES) if name.endswith(".jsonl"))
    except FileNotFoundError:
        return []
    return [header for header in map(read_header, names) if header]


def read_files(path: str, start: int = 0) -> Iterator[tuple[str, int, int, Kept]]:
    """Path, inode, time and state of each file, from a place in the record on; the first word on a file is the one that counts."""
    if not size_of(path):
        return
    with open(record_of(path), "rb") as file:
        if not start:
            file.readline()
        file.seek(start or file.tell())
        for line in file:
            if not line.endswith(b"\n"):
                return
            name, inode, made, uid, gid, mode, access, default = json.loads(line)
            yield name, inode, made, Kept(uid=uid, gid=gid, mode=mode, access=access, default=default)


def read_known(path: str) -> dict[Identity, Kept]:
    known: dict[Identity, Kept] = {}
    for name, inode, made, kept in read_files(path):
        known.setdefault(identity(inode, made, name), kept)
    return known


def cut(path: str, size: int) -> None:
    """Back to a size that it had; 0 = it goes."""
    if not size:
        forget(path)
    elif size_of(path) > size:
        os.truncate(record_of(path), size)


def forget(path: str) -> None:
    try:
        os.unlink(record_of(path))
    except FileNotFoundError:
        pass
