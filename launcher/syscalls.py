"""Every call into the kernel that Python's own modules do not offer, as small functions that raise OSError.

The numbers of the newer calls are the same on every architecture that we run on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Simple = ctypes._SimpleCData[Any]  # a C type that is one number or pointer

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT = 428, 429, 430, 431, 432
CLOSE_RANGE, OPENAT2, MOUNT_SETATTR = 436, 437, 442
LANDLOCK_CREATE_RULESET, LANDLOCK_RESTRICT_SELF = 444, 446

AT_EMPTY_PATH, AT_RECURSIVE = 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
MOVE_MOUNT_F_EMPTY_PATH, MOVE_MOUNT_T_EMPTY_PATH = 0x4, 0x40
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_NOEXEC = 1, 2, 4, 8
RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 0x02, 0x04, 0x08
FSCONFIG_SET_STRING, FSCONFIG_CMD_CREATE = 1, 6
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 4, 36, 38
MS_REC, MS_PRIVATE = 0x4000, 0x40000
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET, LANDLOCK_SCOPE_SIGNAL = 1, 2
LANDLOCK_CREATE_RULESET_VERSION = 1


def checked(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _call(number: int, *arguments: object) -> int:
    return checked(libc.syscall(ctypes.c_long(number), *arguments))


def unshare(flags: int) -> None:
    checked(libc.unshare(ctypes.c_int(flags)))


def prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    checked(libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero))


def close_from(first: int) -> None:
    """Close every descriptor from `first` on."""
    try:
        _call(CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), ctypes.c_uint(0))
    except OSError:  # before Linux 5.9
        for number in [int(name) for name in os.listdir("/proc/self/fd") if int(name) >= first]:
            os.closerange(number, number + 1)


def make_mounts_private() -> None:
    checked(libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None))


class OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(directory: int, path: str, flags: int) -> int:
    """Open `path` below a directory, meeting no symbolic link on the way and at the end."""
    how = OpenHow(flags | os.O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)
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


# Landlock


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class _Port(ctypes.Structure):
    _fields_ = (("allowed_access", ctypes.c_uint64), ("port", ctypes.c_uint64))


LANDLOCK_ADD_RULE = 445
LANDLOCK_RULE_PATH_BENEATH, LANDLOCK_RULE_NET_PORT = 1, 2
LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON = 2


def landlock_ruleset(files: int, network: int, scoped: int) -> int:
    """Fields that an older kernel does not know are no error as long as they are zero."""
    attributes = _RulesetAttr(files, network, scoped)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    return _call(LANDLOCK_CREATE_RULESET, ctypes.byref(attributes), size, ctypes.c_uint(0))


def landlock_allow_path(ruleset: int, path: int, rights: int) -> None:
    """At and below what `path` is open on."""
    rule = _PathBeneath(rights, path)
    _call(LANDLOCK_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_uint(LANDLOCK_RULE_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint(0))


def landlock_allow_port(ruleset: int, port: int, rights: int) -> None:
    rule = _Port(rights, port)
    _call(LANDLOCK_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_uint(LANDLOCK_RULE_NET_PORT), ctypes.byref(rule), ctypes.c_uint(0))


def landlock_restrict(ruleset: int, *, log_denials: bool = False) -> None:
    """This process and all it starts, for ever (needs no_new_privs)."""
    _call(LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON if log_denials else 0))


# Capabilities

PR_CAPBSET_DROP = 24
_CAPABILITY_VERSION_3 = 0x20080522


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def drop_capabilities() -> None:
    """All of them, and for good: also for programs that root starts."""
    for number in range(64):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:  # the kernel has no more of them, or we have none to drop
            break
    header = _CapHeader(_CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    checked(libc.capset(ctypes.byref(header), ctypes.byref(none)))


# What the kernel can do

SECCOMP = {"x86_64": 317, "aarch64": 277}
SECCOMP_GET_ACTION_AVAIL, SECCOMP_RET_USER_NOTIF = 2, 0x7FC00000


def can_notify() -> bool:
    """Can a seccomp filter hand a call over to a supervisor?"""
    action = ctypes.c_uint32(SECCOMP_RET_USER_NOTIF)
    number = SECCOMP.get(os.uname().machine)
    try:
        return number is not None and _call(number, ctypes.c_uint(SECCOMP_GET_ACTION_AVAIL), ctypes.c_uint(0), ctypes.byref(action)) == 0
    except OSError:
        return False


SECCOMP_SET_MODE_FILTER = 1
SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 8, 32


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def seccomp_load(program: bytes, *, listener: bool) -> int:
    """Put a filter on this process (needs no_new_privs): the descriptor that hears of its notifications, or 0 without a listener."""
    what = _Program(len(program) // 8, program)

    def load(flags: int) -> int:
        return _call(SECCOMP[os.uname().machine], ctypes.c_uint(SECCOMP_SET_MODE_FILTER), ctypes.c_uint(flags), ctypes.byref(what))

    if not listener:
        return load(0)
    try:
        return load(SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
    except OSError as error:
        if error.errno != errno.EINVAL:  # before Linux 5.19 a signal can interrupt a call that is being answered
            raise
        return load(SECCOMP_FILTER_FLAG_NEW_LISTENER)


def prepared(name: str, *arguments: type[Simple], result: type[Simple] = ctypes.c_int) -> Callable[..., int]:
    """A function object of its own, whose arguments need not be wrapped at each call."""
    function = libc[name]
    function.argtypes, function.restype = arguments, result
    return function


def signal_handle(numbers: Iterable[int]) -> int:
    """A descriptor that can be read when one of these signals, which are blocked, is there."""
    mask = sum(1 << (number - 1) for number in numbers).to_bytes(128, sys.byteorder)
    return checked(libc.signalfd(ctypes.c_int(-1), mask, ctypes.c_int(os.O_NONBLOCK | os.O_CLOEXEC)))


STATX_INO, STATX_BTIME = 0x100, 0x800


def birth(path: bytes) -> tuple[int, int] | None:
    """The inode of a file and when it was made, in nanoseconds; None where the file system does not tell."""
    found = ctypes.create_string_buffer(256)
    try:
        statx = prepared("statx", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    except AttributeError:  # an old C library
        return None
    checked(statx(-100, path, 0, STATX_INO | STATX_BTIME, found))
    mask, inode = int.from_bytes(found.raw[0:4], "little"), int.from_bytes(found.raw[32:40], "little")
    seconds, rest = int.from_bytes(found.raw[80:88], "little", signed=True), int.from_bytes(found.raw[88:92], "little")
    return (inode, seconds * 10**9 + rest) if mask & STATX_BTIME else None
