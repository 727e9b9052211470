"""A socket and an address of the caller become a connection, made here on a duplicate of the socket, or an error.

The address is read once, and the file it names is opened before it is judged: the connection goes to that very file.
"""

from __future__ import annotations

import errno
import struct
import time

from agent_sandbox.launcher.supervisor import kernel
from agent_sandbox.launcher.supervisor.call import signed
from agent_sandbox.launcher.supervisor.files import AT_FDCWD, name_of, open_at, real_path
from agent_sandbox.launcher.supervisor.telling import Teller
from agent_sandbox.launcher.supervisor.waiting import IN_PROGRESS, Wait, blocks, dial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.supervisor.allowed import Allowed, Reach
    from agent_sandbox.launcher.supervisor.call import Call
    from agent_sandbox.launcher.supervisor.waiting import Waiting

AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6 = 0, 1, 2, 10
SO_TYPE, SO_SNDTIMEO = 3, 21
CONNECTED_TYPES = (1, 5)  # SOCK_STREAM, SOCK_SEQPACKET: the others can send to any address without a connection
LONGEST_ADDRESS, LONGEST_UNIX_ADDRESS = 128, 110
SHORTEST = {AF_INET: 16, AF_INET6: 24}
NOWHERE = bytes(16)  # AF_UNSPEC: the connection is ended
MAPPED = bytes(10) + b"\xff\xff"  # an IPv4 address as an IPv6 one begins so


class Waits(Exception):
    """The answer comes later."""


class Connector:
    def __init__(self, allowed: Allowed, waiting: Waiting) -> None:
        self._waiting = waiting
        self._hosts = None if allowed.hosts is None else frozenset((packed(host), port) for host, port in allowed.hosts)
        self._teller = Teller(allowed.told) if allowed.told >= 0 else None

    def connect(self, call: Call, reach: Reach) -> int:
        size = signed(call.arguments[2])
        socket = call.descriptor(signed(call.arguments[0]))
        if not 2 <= size <= LONGEST_ADDRESS:
            raise OSError(errno.EINVAL, "")
        address = call.read(call.arguments[1], size)
        family = int.from_bytes(address[:2], "little")
        target = -1
        if family == AF_UNIX:
            target = self._find_unix(call, reach, socket, address)
        else:
            call.still_waits()
            self._check_host(family, address)
        if target >= 0:
            address = struct.pack("=H", AF_UNIX) + name_of(target) + b"\0"
        return self._connect(call, socket, address, target)

    def _find_unix(self, call: Call, reach: Reach, socket: int, address: bytes) -> int:
        """The socket's file, open; -1 for a name that is not in the file system."""
        if not 2 < len(address) <= LONGEST_UNIX_ADDRESS:
            raise OSError(errno.EINVAL, "")
        if int.from_bytes(kernel.socket_option(socket, SO_TYPE, 4), "little") not in CONNECTED_TYPES:
            raise OSError(errno.EACCES, "")
        if address[2] == 0:
            call.still_waits()
            if not reach.abstract:
                raise OSError(errno.EPERM, "")
            return -1
        target = open_at(call, AT_FDCWD, address[2:].partition(b"\0")[0])
        call.still_waits()
        if not reach.has_socket(real_path(target)):
            raise OSError(errno.EACCES, "")
        return target

    def _check_host(self, family: int, address: bytes) -> None:
        if self._hosts is None or family == AF_UNSPEC:  # AF_UNSPEC ends a connection
            return
        if family not in SHORTEST:
            raise OSError(errno.EACCES, "")
        if len(address) < SHORTEST[family]:
            raise OSError(errno.EINVAL, "")
        host = MAPPED + address[4:8] if family == AF_INET else address[8:24]
        if (host, int.from_bytes(address[2:4], "big")) not in self._hosts:
            raise OSError(errno.EACCES, "")
        if self._teller:
            self._teller.check()

    def _connect(self, call: Call, socket: int, address: bytes, target: int) -> int:
        result = dial(socket, address)
        full = result == errno.EAGAIN and address[0] == AF_UNIX
        if self._teller and address[0] in SHORTEST and result in (0, *IN_PROGRESS):
            self._tell(self._teller, socket)
        if (full or result in IN_PROGRESS) and blocks(socket):
            self._wait(call, socket, address, target, full=full)
        if result:
            raise OSError(result, "")
        return 0

    def _tell(self, teller: Teller, socket: int) -> None:
        """A connection that nobody was told of must not stand: the port may be another's by now, and the caller has the socket."""
        try:
            teller.tell(socket)
        except OSError:
            kernel.connect(socket, NOWHERE)
            raise

    def _wait(self, call: Call, socket: int, address: bytes, target: int, *, full: bool) -> None:
        if not self._waiting.has_room():
            raise OSError(errno.EAGAIN, "")
        seconds, micro = struct.unpack("=qq", kernel.socket_option(socket, SO_SNDTIMEO, 16))
        until = time.monotonic() + seconds + micro / 1e6 if seconds or micro else None
        self._waiting.add(Wait(id=call.id, tid=call.tid, socket=socket, address=address, full=full, target=target, until=until))
        call.keep(*(number for number in (socket, target) if number >= 0))
        raise Waits


def packed(host: str) -> bytes:
    from _socket import inet_pton

    return inet_pton(AF_INET6, host) if ":" in host else MAPPED + inet_pton(AF_INET, host)
