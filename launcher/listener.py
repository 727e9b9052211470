"""The socket that the proxy accepts from is made where the jail is, and handed out to the guard: nothing has to forward.

    our stage (bwrap), our second stage (firejail)   in an empty network namespace, at a port that is always the same
    the process that becomes the supervisor          on this machine's loopback, at a port that happens to be free
"""

from __future__ import annotations

import array
import struct
from _socket import AF_INET, AF_UNIX, CMSG_SPACE, SCM_RIGHTS, SOCK_CLOEXEC, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM, SOL_SOCKET, socket, socketpair
from fcntl import ioctl

HERE = "127.0.0.1"
QUEUE = 4096
MOST = 2  # descriptors that are handed out: the listener, and where it is told who may come
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1


def raise_loopback() -> None:
    """In a new network namespace it is there, and down."""
    asker = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
    ioctl(asker.fileno(), SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", IFF_UP))
    asker.close()


def listen(port: int) -> tuple[int, int]:
    """The listening descriptor and its port; 0 asks for any that is free."""
    found = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
    found.bind((HERE, port))
    found.listen(QUEUE)
    port = int(found.getsockname()[1])
    return found.detach(), port


def make_hatch() -> tuple[int, int]:
    """What is handed in at the second comes out at the first."""
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)
    return ours.detach(), theirs.detach()


def hand_out(hatch: int, *descriptors: int) -> None:
    """Once, and the hatch is closed."""
    way = socket(fileno=hatch)
    way.sendmsg([b"."], [(SOL_SOCKET, SCM_RIGHTS, array.array("i", descriptors))])
    way.close()


def take(hatch: int) -> tuple[int, ...]:
    """What was handed out; nothing, if whoever was to do it has ended."""
    way = socket(fileno=hatch)
    _, told, _, _ = way.recvmsg(1, CMSG_SPACE(4 * MOST))
    way.close()
    found = array.array("i")
    for level, kind, data in told:
        if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return tuple(found)
