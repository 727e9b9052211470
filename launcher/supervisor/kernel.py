"""The supervisor's calls into the kernel, as launcher/syscalls.py has the others: answers to notifications, handles on other processes,
what is done in a caller's stead. Prototypes are prepared once, since each costs more than the call itself.
"""

from __future__ import annotations

import ctypes
import errno
import os

from agent_sandbox.launcher.syscalls import OPENAT2, OpenHow, checked, libc, prepared

PIDFD_OPEN, PIDFD_GETFD = 434, 438
PIDFD_THREAD = os.O_EXCL
NOTIF_RECV, NOTIF_SEND, NOTIF_ID_VALID, NOTIF_ADDFD, NOTIF_SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103, 0x40082104
NOTIF_SYNC_WAKE_UP = 1
RESOLVE_IN_ROOT = 0x10
TIOCGPTPEER = 0x5441
CLOCK_MONOTONIC = 1
TFD_NONBLOCK_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC


def wake_in_step(listener: int) -> None:
    """Hand the processor over between caller and supervisor (Linux 6.6); slower without."""
    try:
        checked(libc.ioctl(ctypes.c_int(listener), ctypes.c_ulong(NOTIF_SET_FLAGS), ctypes.c_ulong(NOTIF_SYNC_WAKE_UP)))
    except OSError:
        pass


_pidfd_open = prepared("syscall", ctypes.c_long, ctypes.c_int, ctypes.c_uint, result=ctypes.c_long)
_pidfd_getfd = prepared("syscall", ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_uint, result=ctypes.c_long)


def pidfd_open(tid: int) -> int:
    """A handle on a thread; before Linux 6.9 there are only handles on whole processes."""
    handle = _pidfd_open(PIDFD_OPEN, tid, PIDFD_THREAD)
    if handle < 0 and ctypes.get_errno() == errno.EINVAL:
        handle = _pidfd_open(PIDFD_OPEN, _process_of(tid), 0)
    return checked(handle)


def _process_of(tid: int) -> int:
    with open(f"/proc/{tid}/status", "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(b"Tgid:"))


def pidfd_getfd(handle: int, number: int) -> int:
    return checked(_pidfd_getfd(PIDFD_GETFD, handle, number, 0))


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


_pieces = (ctypes.c_void_p, ctypes.c_ulong)
_readv = prepared("process_vm_readv", ctypes.c_int, *_pieces, *_pieces, ctypes.c_ulong, result=ctypes.c_ssize_t)


class MemoryReader:
    """Reads memory of other processes through one buffer that is used again and again."""

    def __init__(self, most: int) -> None:
        self._buffer = ctypes.create_string_buffer(most)
        self._view = memoryview(self._buffer)
        self._here, self._there = _Piece(ctypes.addressof(self._buffer), 0), _Piece(0, 0)
        self._pointers = ctypes.byref(self._here), ctypes.byref(self._there)

    def read(self, tid: int, address: int, size: int) -> bytes:
        """Up to `size` bytes; fewer where the memory ends."""
        self._here.length = self._there.length = size
        self._there.base = address
        count = checked(_readv(tid, self._pointers[0], 1, self._pointers[1], 1, 0))
        return bytes(self._view[:count])


_openat2 = prepared("syscall", ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, result=ctypes.c_long)
_how = OpenHow(0, 0, 0)
_how_at, _how_size = ctypes.byref(_how), ctypes.sizeof(_how)


def open_path(directory: int, path: bytes, flags: int, resolve: int) -> int:
    """openat2: a descriptor that only names the file. Not for several threads at once."""
    _how.flags, _how.resolve = flags | os.O_PATH | os.O_CLOEXEC, resolve
    return checked(_openat2(OPENAT2, directory, path, _how_at, _how_size))


_connect = prepared("connect", ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
_getsockopt = prepared("getsockopt", ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def connect(socket: int, address: bytes) -> int:
    """0 or the error's number: most of them are no surprise."""
    return ctypes.get_errno() if _connect(socket, address, len(address)) < 0 else 0


_listen = prepared("listen", ctypes.c_int, ctypes.c_int)
_getsockname = prepared("getsockname", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def listen(socket: int, queue: int) -> None:
    checked(_listen(socket, queue))


def socket_name(socket: int) -> bytes:
    """Its own address, as the kernel writes it; zeros after its end."""
    value, length = ctypes.create_string_buffer(128), ctypes.c_uint(128)
    checked(_getsockname(socket, ctypes.byref(value), ctypes.byref(length)))
    return value.raw


def socket_option(socket: int, option: int, size: int) -> bytes:
    value, length = ctypes.create_string_buffer(size), ctypes.c_uint(size)
    checked(_getsockopt(socket, 1, option, ctypes.byref(value), ctypes.byref(length)))
    return value.raw


_utimensat = prepared("utimensat", ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int)
_watch = prepared("inotify_add_watch", ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)


def set_times(path: bytes, times: bytes | None) -> None:
    """`times` is a struct timespec[2]; None: now."""
    checked(_utimensat(-100, path, times, 0))


def add_watch(watcher: int, path: bytes, mask: int) -> int:
    return checked(_watch(watcher, path, mask))


def open_peer(master: int, flags: int) -> int:
    """The other end of a pseudo-terminal, without its path."""
    return checked(libc.ioctl(ctypes.c_int(master), ctypes.c_ulong(TIOCGPTPEER), ctypes.c_int(flags)))


class _Timer(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_long) for name in ("interval", "interval_ns", "first", "first_ns"))


def make_timer() -> int:
    return checked(libc.timerfd_create(ctypes.c_int(CLOCK_MONOTONIC), ctypes.c_int(TFD_NONBLOCK_CLOEXEC)))


def set_timer(timer: int, milliseconds: int) -> None:
    """Ring again and again; 0: never."""
    seconds, rest = divmod(milliseconds, 1000)
    checked(libc.timerfd_settime(ctypes.c_int(timer), ctypes.c_int(0), ctypes.byref(_Timer(seconds, rest * 10**6, seconds, rest * 10**6)), None))
