"""Every call into the kernel that Python's own modules do not offer, as small functions that raise OSError.

The numbers of the newer calls are the same on every architecture that we run on.
"""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT = 428, 429, 430, 431, 432
CLOSE_RANGE, OPENAT2, MOUNT_SETATTR = 436, 437, 442
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446

AT_EMPTY_PATH, AT_RECURSIVE = 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH = 0x4, 0x40
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC = 1, 2, 4, 8
RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 0x02, 0x04, 0x08
FSCONFIG_SET_STRING, FSCONFIG_CMD_CREATE = 1, 6
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
MS_REC, MS_PRIVATE = 0x4000, 0x40000
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL = 1, 2
LANDLOCK_CREATE_RULESET_VERSION = 1


def _checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _call(number: int, *arguments: object) -> int:
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments))


def unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)))


def prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    _checked(_libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero))


def close_from(first: int) -> None:
    """Close every descriptor from `first` on."""
    try:
        _call(CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), ctypes.c_uint(0))
    except OSError:  # before Linux 5.9
        for number in [int(name) for name in os.listdir("/proc/self/fd") if int(name) >= first]:
            os.closerange(number, number + 1)


def make_mounts_private() -> None:
    _checked(_libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None))


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(directory: int, path: str, flags: int) -> int:
    """Open `path` below a directory, meeting no symbolic link on the way and at the end."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
    size = ctypes.c_size_t(ctypes.sizeof(how))
    return _call(OPENAT2, ctypes.c_int(directory), os.fsencode(path), ctypes.byref(how), size)


def clone_tree(source: int) -> int:
    """A detached copy of the mounts at an open file or directory."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE
    return _call(OPEN_TREE, ctypes.c_int(source), b"", ctypes.c_uint(flags))


def new_tmpfs(mode: str) -> int:
    """A detached, empty tmpfs whose root has the given mode (octal text)."""
    context = _call(FSOPEN, b"tmpfs", ctypes.c_uint(1))
    try:
        _call(FSCONFIG, ctypes.c_int(context), ctypes.c_uint(FSCONFIG_SET_STRING), b"mode", mode.encode(), ctypes.c_int(0))
        _call(FSCONFIG, ctypes.c_int(context), ctypes.c_uint(FSCONFIG_CMD_CREATE), None, None, ctypes.c_int(0))
        return _call(FSMOUNT, ctypes.c_int(context), ctypes.c_uint(1), ctypes.c_uint(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV))
    finally:
        os.close(context)


class _MountAttr(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd"))


def set_mount_attributes(tree: int, attributes: int) -> None:
    wanted = _MountAttr(attributes, 0, 0, 0)
    flags = ctypes.c_uint(AT_EMPTY_PATH | AT_RECURSIVE)
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    _call(MOUNT_SETATTR, ctypes.c_int(tree), b"", flags, ctypes.byref(wanted), size)


def attach_tree(tree: int, target: int) -> None:
    """Mount a detached tree on the very file or directory that `target` is open on."""
    flags = ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)
    _call(MOVE_MOUNT, ctypes.c_int(tree), b"", ctypes.c_int(target), b"", flags)


class _RulesetAttr(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("handled_access_fs", "handled_access_net", "scoped"))


def landlock_abi() -> int:
    """The Landlock version of the running kernel; 0 where there is none."""
    try:
        return _call(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(LANDLOCK_CREATE_RULESET_VERSION))
    except OSError:
        return 0


def landlock_scope(*, abstract_sockets: bool, signals: bool) -> None:
    """Cut this process and all it starts off from abstract sockets, or from sending signals, outside (ABI 6; needs no_new_privs)."""
    scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET * abstract_sockets | LANDLOCK_SCOPE_SIGNAL * signals
    attributes = _RulesetAttr(0, 0, scoped)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = _call(LANDLOCK_CREATE_RULESET, ctypes.byref(attributes), size, ctypes.c_uint(0))
    try:
        _call(LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    finally:
        os.close(ruleset)
