"""A path or descriptor of the caller becomes a descriptor of ours on that very file, and its real path.

Paths are resolved here, with the caller's root, working directory and descriptors, into a descriptor that only names the file.
What is then judged and changed is that descriptor's file: links and directories can be swapped as often as anybody likes.
"""

from __future__ import annotations

import errno
import os
from fcntl import F_GETFL, fcntl

from agent_sandbox.launcher import syscalls
from agent_sandbox.launcher.supervisor import kernel
from agent_sandbox.launcher.supervisor.call import signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.supervisor.call import Call

AT_FDCWD = -100
DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
RENAMES = 16  # how often a walk is begun again because something was renamed on the way


def name_of(descriptor: int) -> bytes:
    """A path that leads to the very file, whatever has happened to its names."""
    return b"/proc/self/fd/%d" % descriptor


def real_path(descriptor: int) -> bytes:
    return os.readlink(name_of(descriptor))


def open_descriptor(call: Call, argument: int) -> int:
    """For calls that take a descriptor: one that only names a file does not do."""
    found = call.descriptor(signed(argument))
    if fcntl(found, F_GETFL) & os.O_PATH:
        raise OSError(errno.EBADF, "")
    return found


def open_at(call: Call, directory: int, path: bytes, flags: int = 0, *, empty: bool = False) -> int:
    """`flags`: O_NOFOLLOW, O_DIRECTORY. `empty`: an empty path is the directory (or any descriptor) itself."""
    if path.startswith(b"/"):
        return _open_absolute(call, path, flags)
    base = signed(directory)
    if not path and empty and base != AT_FDCWD:
        return call.descriptor(base)
    return _walk(call, _base(call, base), (path or b".") if empty else path, flags)


def _base(call: Call, directory: int) -> int:
    return _open_link(call, b"cwd") if directory == AT_FDCWD else call.descriptor(directory)


def _open_link(call: Call, name: bytes) -> int:
    return call.hold(os.open(b"/proc/%d/%s" % (call.tid, name), DIRECTORY))


def _open_absolute(call: Call, path: bytes, flags: int) -> int:
    own = _own_entry(path, call.tid)
    name, _, rest = own.partition(b"/")
    if name == b"cwd":
        return _walk(call, _open_link(call, name), rest or b".", flags)
    if name == b"root":
        return _walk(call, AT_FDCWD, b"/" + rest, flags)
    number, slash, rest = rest.partition(b"/")
    if not own or (not slash and flags & os.O_NOFOLLOW):
        return _walk(call, AT_FDCWD, path, flags)
    found = call.descriptor(int(number))
    return _walk(call, found, rest or b".", flags) if slash or flags & os.O_DIRECTORY else found


def _own_entry(path: bytes, tid: int) -> bytes:
    """What the caller means by its own entries in /proc, which are other files when we name them: `fd/3/x`, `cwd/x`, `root/x`."""
    if path.startswith(b"/dev/fd/"):
        entry = path[5:]
    elif path.startswith((b"/proc/self/", b"/proc/thread-self/", b"/proc/%d/" % tid)):
        entry = path.split(b"/", 3)[3]
    else:
        return b""
    parts = entry.split(b"/", 2)
    if parts[0] == b"fd":
        return entry if len(parts) > 1 and parts[1].isdigit() and len(parts[1]) < 10 else b""
    return entry if parts[0] in (b"cwd", b"root") and len(parts) > 1 else b""


def _walk(call: Call, base: int, path: bytes, flags: int) -> int:
    """Links in /proc that lead to open files are never followed: they would be ours."""
    root = os.readlink(b"/proc/%d/root" % call.tid)
    if root == b"/":
        return call.hold(kernel.open_path(base, path, flags, syscalls.RESOLVE_NO_MAGICLINKS))
    return _walk_below(call, _open_link(call, b"root"), _as_seen(root, base, path), flags)


def _as_seen(root: bytes, base: int, path: bytes) -> bytes:
    """For a caller that has changed its root: the path from there."""
    if base == AT_FDCWD or not path:
        return path
    place = real_path(base)
    if not (place + b"/").startswith(root + b"/"):
        raise OSError(errno.EACCES, "")
    return place[len(root) :] + b"/" + path


def _walk_below(call: Call, root: int, path: bytes, flags: int) -> int:
    for _ in range(RENAMES):
        try:
            return call.hold(kernel.open_path(root, path, flags, kernel.RESOLVE_IN_ROOT | syscalls.RESOLVE_NO_MAGICLINKS))
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
    raise OSError(errno.EACCES, "")
