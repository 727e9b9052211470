"""A notification becomes a call: its arguments, its caller's memory and descriptors, and the answer to it.

The caller is hostile: it can change its memory, its descriptors and its paths while we look, and die and leave its number to
another process. So memory is read once, descriptors are duplicated once, and `still_waits` says afterwards that what was
taken was the caller's: as long as it waits for the answer, its number is its own.
"""

from __future__ import annotations

import errno
import os
import struct
from fcntl import ioctl

from agent_sandbox.launcher.supervisor import kernel

PAGE = 4096
LONGEST_PATH = 4096  # with the NUL at its end

_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_ADDITION = struct.Struct("=QIIII")
_NOTHING = bytes(_NOTIFICATION.size)


class Gone(Exception):
    """The caller died, or its call was interrupted: there is nobody to answer."""


class Call:
    """One at a time, used again for the next."""

    def __init__(self, listener: int) -> None:
        self._listener = listener
        self._memory = kernel.MemoryReader(PAGE)
        self._buffer = bytearray(_NOTIFICATION.size)
        self._handle = -1
        self._held: list[int] = []
        self.id = self.tid = self.number = self.architecture = 0
        self.arguments: tuple[int, ...] = ()

    def receive(self) -> None:
        self._buffer[:] = _NOTHING  # the kernel refuses to write over anything else
        try:
            ioctl(self._listener, kernel.NOTIF_RECV, self._buffer, True)
        except OSError:
            raise Gone
        self.id, self.tid, _, self.number, self.architecture, _, *arguments = _NOTIFICATION.unpack(self._buffer)
        self.arguments = tuple(arguments)

    def still_waits(self) -> None:
        if not is_waiting(self._listener, self.id):
            raise Gone

    def answer(self, value: int, error: int = 0) -> None:
        send(self._listener, self.id, value, error)

    # What the caller has

    def _read_some(self, address: int, most: int) -> bytes:
        """Never across the end of a page: the next one may not be there."""
        part = self._memory.read(self.tid, address, min(most, PAGE - address % PAGE))
        if not part:
            raise OSError(errno.EFAULT, "")
        return part

    def read(self, address: int, size: int) -> bytes:
        """Exactly so many bytes of its memory."""
        parts = []
        while size:
            part = self._read_some(address, size)
            parts.append(part)
            address, size = address + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_text(self, address: int, most: int = LONGEST_PATH, error: int = errno.ENAMETOOLONG) -> bytes:
        """The bytes up to a NUL; an error where none comes among the first `most`."""
        text = b""
        while len(text) < most:
            part = self._read_some(address, most - len(text))
            end = part.find(0)
            if end >= 0:
                return text + part[:end]
            text, address = text + part, address + len(part)
        raise OSError(error, "")

    def descriptor(self, number: int) -> int:
        """A duplicate of one of its descriptors, which no longer changes when the caller's does."""
        if self._handle < 0:
            self._handle = self.hold(kernel.pidfd_open(self.tid))
        return self.hold(kernel.pidfd_getfd(self._handle, number))

    def add_descriptor(self, ours: int, *, close_on_exec: bool) -> int:
        """A duplicate of ours among the caller's: its number there."""
        wanted = bytearray(_ADDITION.pack(self.id, 0, ours, 0, os.O_CLOEXEC if close_on_exec else 0))
        number: int = ioctl(self._listener, kernel.NOTIF_ADDFD, wanted, True)  # what the kernel answered; of bytes, it would be those
        return number

    # Descriptors of ours that end with the call

    def hold(self, descriptor: int) -> int:
        self._held.append(descriptor)
        return descriptor

    def keep(self, *descriptors: int) -> None:
        """They are somebody else's to close now."""
        for descriptor in descriptors:
            self._held.remove(descriptor)

    def release(self) -> None:
        self._handle = -1
        while self._held:
            os.close(self._held.pop())


def is_waiting(listener: int, identity: int) -> bool:
    try:
        ioctl(listener, kernel.NOTIF_ID_VALID, identity.to_bytes(8, "little"))
    except OSError:
        return False
    return True


def send(listener: int, identity: int, value: int, error: int) -> None:
    """A caller that is gone by now is no error. Never CONTINUE: the kernel would then read the arguments a second time."""
    try:
        ioctl(listener, kernel.NOTIF_SEND, _RESPONSE.pack(identity, value, -error, 0))
    except OSError:
        pass


def signed(argument: int) -> int:
    """A C int: the kernel looks at the lower half of the register only."""
    low = argument & 0xFFFF_FFFF
    return low - (1 << 32) if low >> 31 else low
