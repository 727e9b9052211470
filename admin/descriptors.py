"""Files and directories by descriptor: a link that an agent puts in the place of a path reaches nothing.

Every path is opened from / without following a link. Modes, owners and ACLs are changed through /proc/self/fd, on the very
file that is open; files are made under another name and renamed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher.syscalls import open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
NEW = ".botadm-new"  # in front of a name while a file is being written; sudo passes over it


@record
class Kept:
    """All that `put_kept` needs to make a file or directory look as it did."""

    uid: int
    gid: int
    mode: int
    access: str = ""  # ACLs as hexadecimal; "" = none
    default: str = ""
    content: str = ""  # of a file, hexadecimal


@contextlib.contextmanager
def opened(path: str, flags: int = os.O_PATH) -> Iterator[int]:
    """A descriptor on exactly this path; no component of it may be a link."""
    root = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        handle = _open(root, path, flags)
    finally:
        os.close(root)
    try:
        yield handle
    finally:
        os.close(handle)


def _open(root: int, path: str, flags: int) -> int:
    try:
        return open_beneath(root, path.lstrip("/") or ".", flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError("is a symbolic link, or leads through one", where=path, hint=f"its real path is {os.path.realpath(path)}")
        raise OSError(error.errno, error.strerror, path) from None


@contextlib.contextmanager
def opened_parent(path: str) -> Iterator[tuple[int, str]]:
    parent, name = os.path.split(path)
    with opened(parent, os.O_PATH | os.O_DIRECTORY) as handle:
        yield handle, name


def look(path: str) -> os.stat_result | None:
    """What is at a path, links not followed; None = nothing."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def magic(handle: int) -> str:
    """A path that is what the descriptor is open on, whatever has happened to its name."""
    return f"/proc/self/fd/{handle}"


def get_acl(handle: int, kind: str) -> bytes:
    try:
        return os.getxattr(magic(handle), kind)
    except OSError as error:
        if error.errno in (errno.ENODATA, errno.ENOTSUP):
            return b""
        raise


def set_acl(handle: int, kind: str, value: bytes) -> None:
    """b"" = none."""
    try:
        os.setxattr(magic(handle), kind, value) if value else os.removexattr(magic(handle), kind)
    except OSError as error:
        if value and error.errno == errno.ENOTSUP:
            raise UserError("the file system has no POSIX ACLs, which sharing needs", hint="use another one; NFS has them up to version 3")
        if value or error.errno not in (errno.ENODATA, errno.ENOTSUP):
            raise


def keep(handle: int, status: os.stat_result, *, content: bytes = b"") -> Kept:
    default = get_acl(handle, DEFAULT) if stat.S_ISDIR(status.st_mode) else b""
    return Kept(
        uid=status.st_uid, gid=status.st_gid, mode=stat.S_IMODE(status.st_mode),
        access=get_acl(handle, ACCESS).hex(), default=default.hex(), content=content.hex(),
    )  # fmt: skip


def keep_path(path: str) -> Kept | None:
    """Of a regular file with its content, of a directory without; None = nothing is there."""
    try:
        with opened(path) as handle:
            status = os.fstat(handle)
            return keep(handle, status, content=_read(handle, path) if stat.S_ISREG(status.st_mode) else b"")
    except (FileNotFoundError, NotADirectoryError):
        return None


def restore(handle: int, kept: Kept, *, is_directory: bool) -> None:
    """Owner first: a change of owner takes away bits of the mode."""
    path = magic(handle)
    os.chown(path, kept.uid, kept.gid)
    set_acl(handle, ACCESS, bytes.fromhex(kept.access))
    if is_directory:
        set_acl(handle, DEFAULT, bytes.fromhex(kept.default))
    os.chmod(path, kept.mode)


def _read(handle: int, path: str, most: int = 1 << 20) -> bytes:
    """Of the very file whose owner and mode were seen: another one's content under them could be put back as theirs."""
    with open(os.open(magic(handle), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:  # half of it could not be put back
        raise UserError(f"is larger than {most >> 20} MiB", where=path)
    return content


def write_file(path: str, content: bytes, kept: Kept) -> str:
    """The new content under another name beside it, ready to be renamed; that name."""
    with opened_parent(path) as (parent, name):
        new = f"{NEW}.{name}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new, dir_fd=parent)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent)
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            restore(handle, kept, is_directory=False) if kept.access else _dress(handle, kept)
            os.fsync(handle)
    return new


def _dress(handle: int, kept: Kept) -> None:
    """Owner and mode; an ACL that the directory gave stays, under the mode's mask."""
    os.fchown(handle, kept.uid, kept.gid)
    os.fchmod(handle, kept.mode)


def append(handle: int, line: bytes) -> None:
    """All of it, or none: a full disk takes a part, and says so at the next write only."""
    size = os.fstat(handle).st_size
    left = memoryview(line)
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError:
        os.ftruncate(handle, size)
        raise


def rename_into_place(path: str, new: str) -> None:
    with opened_parent(path) as (parent, name):
        os.rename(new, name, src_dir_fd=parent, dst_dir_fd=parent)


def remove_new(path: str) -> None:
    """What a write that was interrupted left."""
    with contextlib.suppress(OSError), opened_parent(path) as (parent, name):
        os.unlink(f"{NEW}.{name}", dir_fd=parent)


def remove_file(path: str) -> None:
    with contextlib.suppress(FileNotFoundError), opened_parent(path) as (parent, name):
        os.unlink(name, dir_fd=parent)


def make_directory(path: str, uid: int, gid: int, mode: int) -> None:
    with opened_parent(path) as (parent, name):
        os.mkdir(name, 0o700, dir_fd=parent)
    set_directory(path, uid, gid, mode)


def set_directory(path: str, uid: int, gid: int, mode: int) -> None:
    """-1 = as it is."""
    with opened(path, os.O_PATH | os.O_DIRECTORY) as handle:
        os.chown(magic(handle), uid, gid)
        if mode >= 0:
            os.chmod(magic(handle), mode)


def remove_directory(path: str) -> None:
    with contextlib.suppress(FileNotFoundError), opened_parent(path) as (parent, name):
        os.rmdir(name, dir_fd=parent)
