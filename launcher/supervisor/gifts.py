"""Calls whose answer is a descriptor, made here and put among the caller's: a pair of sockets, the other end of a terminal. And watches.

A pair of datagram sockets becomes a pair that keeps message boundaries as well but cannot send to any other address. A
terminal's other end is opened without its path: /dev/pts, where the user's other terminals are, need not be granted.
"""

from __future__ import annotations

import errno
import os
import resource
import stat

from agent_sandbox.launcher.supervisor import kernel
from agent_sandbox.launcher.supervisor.call import signed
from agent_sandbox.launcher.supervisor.files import AT_FDCWD, name_of, open_at, open_descriptor, real_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.supervisor.allowed import Reach
    from agent_sandbox.launcher.supervisor.call import Call

AF_UNIX = 1
SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_TYPES = 2, 3, 5, 0xF
MASTER = os.makedev(5, 2)  # /dev/ptmx, and every devpts' own
PEER_FLAGS = os.O_ACCMODE | os.O_NONBLOCK | os.O_CLOEXEC
IN_ONLYDIR, IN_DONT_FOLLOW = 0x0100_0000, 0x0200_0000


def socketpair(call: Call, reach: Reach) -> int:
    family, kind, protocol, address = call.arguments[:4]
    flags = kind & 0xFFFF_FFFF & ~SOCK_TYPES
    if signed(family) != AF_UNIX or kind & SOCK_TYPES not in (SOCK_DGRAM, SOCK_RAW) or flags & ~(os.O_CLOEXEC | os.O_NONBLOCK):
        raise OSError(errno.EPERM, "")
    if signed(protocol) not in (0, AF_UNIX):
        raise OSError(errno.EPROTONOSUPPORT, "")
    memory = _writable_memory(call, address)
    _leave_room(call)
    ends = _make_pair(flags)
    for end in ends:
        call.hold(end)
    call.still_waits()
    numbers = [call.add_descriptor(end, close_on_exec=bool(flags & os.O_CLOEXEC)) for end in ends]
    os.pwrite(memory, b"".join(number.to_bytes(4, "little") for number in numbers), address)
    return 0


def _make_pair(flags: int) -> tuple[int, int]:
    import _socket

    ends = _socket.socketpair(AF_UNIX, SOCK_SEQPACKET | flags | os.O_CLOEXEC, 0)
    return ends[0].detach(), ends[1].detach()


def _writable_memory(call: Call, address: int) -> int:
    """Tried before anything is made. Opened, the memory stays the caller's even if another process gets its number."""
    if address >= 1 << 63:
        raise OSError(errno.EFAULT, "")
    memory = call.hold(os.open(b"/proc/%d/mem" % call.tid, os.O_RDWR | os.O_CLOEXEC))
    call.still_waits()
    try:
        os.pwrite(memory, os.pread(memory, 8, address), address)
    except OSError:
        raise OSError(errno.EFAULT, "")
    return memory


def _leave_room(call: Call) -> None:
    """A first descriptor could not be taken back if there were no room for the second."""
    most, _ = resource.prlimit(call.tid, resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and sum(int(number) < most for number in os.listdir(b"/proc/%d/fd" % call.tid)) + 2 > most:
        raise OSError(errno.EMFILE, "")


def open_terminal(call: Call, reach: Reach) -> int:
    """ioctl, of which only TIOCGPTPEER comes here. It must not become our controlling terminal."""
    if call.arguments[1] & 0xFFFF_FFFF != kernel.TIOCGPTPEER:
        raise OSError(errno.EPERM, "")
    flags = call.arguments[2] & 0xFFFF_FFFF
    master = open_descriptor(call, call.arguments[0])
    call.still_waits()
    seen = os.fstat(master)
    if not stat.S_ISCHR(seen.st_mode) or seen.st_rdev != MASTER:
        raise OSError(errno.ENOTTY, "")
    peer = call.hold(kernel.open_peer(master, flags & PEER_FLAGS | os.O_NOCTTY | os.O_CLOEXEC))
    return call.add_descriptor(peer, close_on_exec=bool(flags & os.O_CLOEXEC))


def watch(call: Call, reach: Reach) -> int:
    watcher = open_descriptor(call, call.arguments[0])
    mask = call.arguments[2] & 0xFFFF_FFFF
    flags = (os.O_NOFOLLOW if mask & IN_DONT_FOLLOW else 0) | (os.O_DIRECTORY if mask & IN_ONLYDIR else 0)
    found = open_at(call, AT_FDCWD, call.read_text(call.arguments[1]), flags)
    call.still_waits()
    if not reach.watchable.hold(real_path(found)):
        raise OSError(errno.EACCES, "")
    return kernel.add_watch(watcher, name_of(found), mask & ~IN_DONT_FOLLOW)


HANDLERS = {"socketpair": socketpair, "ioctl": open_terminal, "inotify_add_watch": watch}
