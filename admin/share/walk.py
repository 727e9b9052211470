"""A tree becomes its files, each open by descriptor; what cannot be entered is named. Follows no link and leaves no file system.

Directories come before what is in them. Each is opened anew from the top, so a tree that is moved about meanwhile is left, not followed.
"""

from __future__ import annotations

import errno
import os
import stat

from agent_sandbox.admin.descriptors import keep
from agent_sandbox.admin.share.rules import DEEP, MOUNTS, File
from agent_sandbox.launcher.syscalls import marks, open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REASONS = {errno.EXDEV: MOUNTS, errno.ENAMETOOLONG: DEEP}


def walk(top: int, *, recursive: bool, skipped: Callable[[str, str], None]) -> Iterator[tuple[int, File]]:
    """The top itself and, if recursive, all below. A descriptor is good until the next file is asked for."""
    yield top, look_at(top, "")
    waiting = [""] if recursive and stat.S_ISDIR(os.fstat(top).st_mode) else []
    while waiting:
        folder = waiting.pop()
        handle = _open(top, folder or ".", os.O_RDONLY | os.O_DIRECTORY, folder, skipped)
        if handle < 0:
            continue
        try:
            for name in sorted(os.listdir(handle), reverse=True):
                yield from _entry(handle, name, f"{folder}/{name}" if folder else name, waiting, skipped)
        finally:
            os.close(handle)


def _entry(folder: int, name: str, path: str, waiting: list[str], skipped: Callable[[str, str], None]) -> Iterator[tuple[int, File]]:
    handle = _open(folder, name, os.O_PATH, path, skipped)
    if handle < 0:
        return
    try:
        file = look_at(handle, path)
        yield handle, file
        if file.kind == stat.S_IFDIR:
            waiting.append(path)
    finally:
        os.close(handle)


def _open(folder: int, name: str, flags: int, path: str, skipped: Callable[[str, str], None]) -> int:
    """-1 = it is gone, or named as skipped."""
    try:
        return open_beneath(folder, name, flags | os.O_NOFOLLOW, one_mount=True)
    except OSError as error:
        if error.errno in REASONS:
            skipped(REASONS[error.errno], path)
        elif error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):  # gone, or something else in its place since we looked
            raise OSError(error.errno, error.strerror, path) from None
        return -1


def look_at(handle: int, path: str) -> File:
    status = os.fstat(handle)
    made, fixed = marks(handle)
    kind = stat.S_IFMT(status.st_mode)
    return File(path=path, kind=kind, kept=keep(handle, status), inode=status.st_ino, made=made, names=status.st_nlink, fixed=fixed)
