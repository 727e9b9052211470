"""Modes, owners, times and extended attributes: changed where the file's real path lies in a writable place, else refused.

Landlock judges none of them. Files that have no path – pipes, sockets, memory files – lie in no such place.
"""

from __future__ import annotations

import errno
import os
import struct

from agent_sandbox.launcher.supervisor import kernel
from agent_sandbox.launcher.supervisor.call import signed
from agent_sandbox.launcher.supervisor.files import AT_FDCWD, name_of, open_at, open_descriptor, real_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.supervisor.allowed import Reach
    from agent_sandbox.launcher.supervisor.call import Call

    Find = Callable[[Call], int]
    Change = tuple[Callable[..., None], tuple[object, ...]]  # what to do to a path, and the other arguments
    Prepare = Callable[[Call], Change]

AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH = 0x100, 0x1000
NO_ID = 0xFFFF_FFFF  # chown: leave it as it is
LONGEST_NAME, LONGEST_VALUE = 256, 65536  # of an extended attribute; the name with the NUL at its end
MICROSECONDS = 10**6


def change(find: Find, prepare: Prepare) -> Callable[[Call, Reach], int]:
    """A handler. All that is the caller's is read first; then the file is judged, and changed by a name that leads nowhere else."""

    def handle(call: Call, reach: Reach) -> int:
        found = find(call)
        do, values = prepare(call)
        call.still_waits()
        if not reach.writable.hold(real_path(found)):
            raise OSError(errno.EPERM, "")
        do(name_of(found), *values)
        return 0

    return handle


# Which file: the first arguments


def by_descriptor(call: Call) -> int:
    return open_descriptor(call, call.arguments[0])


def by_path(call: Call) -> int:
    return open_at(call, AT_FDCWD, call.read_text(call.arguments[0]))


def by_path_of_link(call: Call) -> int:
    return open_at(call, AT_FDCWD, call.read_text(call.arguments[0]), os.O_NOFOLLOW)


def at_directory(call: Call) -> int:
    return open_at(call, call.arguments[0], call.read_text(call.arguments[1]))


def at_directory_with(position: int) -> Find:
    """The flags are in the argument at this position."""

    def find(call: Call) -> int:
        flags = call.arguments[position] & 0xFFFF_FFFF
        if flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH):
            raise OSError(errno.EINVAL, "")
        follow = os.O_NOFOLLOW if flags & AT_SYMLINK_NOFOLLOW else 0
        return open_at(call, call.arguments[0], call.read_text(call.arguments[1]), follow, empty=bool(flags & AT_EMPTY_PATH))

    return find


def or_by_descriptor(find: Find) -> Find:
    """The calls that set times take no path at all for the descriptor itself."""
    return lambda call: find(call) if call.arguments[1] or signed(call.arguments[0]) == AT_FDCWD else by_descriptor(call)


def for_utimensat(call: Call) -> int:
    if not call.arguments[1] and call.arguments[3] & 0xFFFF_FFFF:
        raise OSError(errno.EINVAL, "")
    return or_by_descriptor(at_directory_with(3))(call)


# What to do: the arguments from `first` on


def mode(first: int) -> Prepare:
    return lambda call: (os.chmod, (call.arguments[first] & 0o7777,))


def owner(first: int) -> Prepare:
    return lambda call: (os.chown, (_id(call.arguments[first]), _id(call.arguments[first + 1])))


def _id(argument: int) -> int:
    number = argument & NO_ID
    return -1 if number == NO_ID else number


def nanoseconds(call: Call) -> Change:
    address = call.arguments[2]
    return kernel.set_times, (call.read(address, 32) if address else None,)


def microseconds(first: int) -> Prepare:
    def prepare(call: Call) -> Change:
        address = call.arguments[first]
        return kernel.set_times, (_finer(call.read(address, 32)) if address else None,)

    return prepare


def _finer(times: bytes) -> bytes:
    seconds, micro, other_seconds, other_micro = struct.unpack("=4q", times)
    if not (0 <= micro < MICROSECONDS and 0 <= other_micro < MICROSECONDS):
        raise OSError(errno.EINVAL, "")
    return struct.pack("=4q", seconds, micro * 1000, other_seconds, other_micro * 1000)


def seconds(call: Call) -> Change:
    address = call.arguments[1]
    times = struct.unpack("=2q", call.read(address, 16)) if address else None
    return kernel.set_times, (struct.pack("=4q", times[0], 0, times[1], 0) if times else None,)


def attribute(call: Call) -> Change:
    name, address, size, flags = _attribute_name(call), *call.arguments[2:5]
    if size > LONGEST_VALUE:
        raise OSError(errno.E2BIG, "")
    return os.setxattr, (name, call.read(address, size) if size else b"", flags & 0xFFFF_FFFF)


def no_attribute(call: Call) -> Change:
    return os.removexattr, (_attribute_name(call),)


def _attribute_name(call: Call) -> bytes:
    name = call.read_text(call.arguments[1], LONGEST_NAME, errno.ERANGE)
    if not name:
        raise OSError(errno.ERANGE, "")
    return name


HANDLERS = {
    "chmod": change(by_path, mode(1)),
    "fchmod": change(by_descriptor, mode(1)),
    "fchmodat": change(at_directory, mode(2)),
    "fchmodat2": change(at_directory_with(3), mode(2)),
    "chown": change(by_path, owner(1)),
    "lchown": change(by_path_of_link, owner(1)),
    "fchown": change(by_descriptor, owner(1)),
    "fchownat": change(at_directory_with(4), owner(2)),
    "utime": change(by_path, seconds),
    "utimes": change(by_path, microseconds(1)),
    "futimesat": change(or_by_descriptor(at_directory), microseconds(2)),
    "utimensat": change(for_utimensat, nanoseconds),
    "setxattr": change(by_path, attribute),
    "lsetxattr": change(by_path_of_link, attribute),
    "fsetxattr": change(by_descriptor, attribute),
    "removexattr": change(by_path, no_attribute),
    "lremovexattr": change(by_path_of_link, no_attribute),
    "fremovexattr": change(by_descriptor, no_attribute),
}
