"""A directory goes with all that is in it: by descriptors, on one mount, never through a link.

However deep it is: a directory in a directory is first moved to the top, so two descriptors are enough and no path grows long.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat

from agent_sandbox.admin.descriptors import opened, opened_parent
from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.syscalls import open_beneath

TRIES = 1000


def delete_tree(path: str) -> None:
    """A link in its place goes itself, and nothing behind it. Nothing there: nothing to do."""
    try:
        with opened_parent(path) as (parent, name):
            if not stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
                os.unlink(name, dir_fd=parent)
                return
            with opened(path, os.O_RDONLY | os.O_DIRECTORY) as top:
                _empty(top)
            os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.EBUSY):
            raise UserError("something is mounted in it: it is not removed", where=path, hint="umount it, and start again")
        raise OSError(error.errno, error.strerror, path) from None


def _empty(top: int) -> None:
    numbers = itertools.count()
    while names := os.listdir(top):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # somebody else deletes as well
                _remove(top, name, numbers)


def _remove(top: int, name: str, numbers: itertools.count[int]) -> None:
    if not stat.S_ISDIR(os.lstat(name, dir_fd=top).st_mode):
        os.unlink(name, dir_fd=top)
        return
    handle = open_beneath(top, name, os.O_RDONLY | os.O_DIRECTORY, one_mount=True)
    try:
        for left in reversed(range(TRIES)):  # who was in it before may still fill it
            _empty_one(handle, top, numbers)
            try:
                os.rmdir(name, dir_fd=top)
                return
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or not left:
                    raise
    finally:
        os.close(handle)


def _empty_one(handle: int, top: int, numbers: itertools.count[int]) -> None:
    for entry in os.listdir(handle):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(entry, dir_fd=handle).st_mode):
                os.rename(entry, _free(top, numbers), src_dir_fd=handle, dst_dir_fd=top)
            else:
                os.unlink(entry, dir_fd=handle)


def _free(top: int, numbers: itertools.count[int]) -> str:
    """A name that is not taken: a rename would replace an empty directory, which is no harm, but not a full one."""
    while True:
        name = f".botadm-{next(numbers)}"
        try:
            os.lstat(name, dir_fd=top)
        except FileNotFoundError:
            return name
