"""Connections that the jail has made to the proxy are told to it by their own address: others on this machine could reach its port as well.

And `listen`, of which Landlock knows nothing: unix sockets of the jail's may, a port of this machine's may not be opened to others.
"""

from __future__ import annotations

import errno
import os
import select

from agent_sandbox.launcher.supervisor import kernel
from agent_sandbox.launcher.supervisor.call import signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.supervisor.allowed import Reach
    from agent_sandbox.launcher.supervisor.call import Call

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SO_DOMAIN = 39
MAPPED = bytes(10) + b"\xff\xff"


class Teller:
    def __init__(self, told: int) -> None:
        self._told = told
        self._ears = select.poll()
        self._ears.register(told, 0)  # an error alone

    def check(self) -> None:
        """Once the proxy is gone its port may be anybody's."""
        if self._ears.poll(0):
            raise OSError(errno.ECONNREFUSED, "")

    def tell(self, socket: int) -> None:
        """Who is not told of is not served: so where this fails nothing is open."""
        name = kernel.socket_name(socket)
        family = int.from_bytes(name[:2], "little")
        if family not in (AF_INET, AF_INET6):
            raise OSError(errno.EACCES, "")
        address = MAPPED + name[4:8] if family == AF_INET else name[8:24]
        try:
            os.write(self._told, address + name[2:4])
        except OSError:
            raise OSError(errno.ECONNREFUSED, "")


def listen(call: Call, reach: Reach) -> int:
    found = call.descriptor(signed(call.arguments[0]))
    call.still_waits()
    if int.from_bytes(kernel.socket_option(found, SO_DOMAIN, 4), "little") != AF_UNIX:
        raise OSError(errno.EACCES, "")
    kernel.listen(found, signed(call.arguments[1]))
    return 0


HANDLERS = {"listen": listen}
