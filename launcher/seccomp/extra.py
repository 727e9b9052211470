"""Numbers of system calls become a small filter that refuses them, assembled by hand. Pure.

This is the second filter, stacked on the ready one, for calls that a config file denies: the kernel runs both and
takes the stricter answer. `compile` begins its filters with the same checks.
"""

from __future__ import annotations

import errno
import struct

from agent_sandbox.launcher.seccomp.filters import architecture_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LOAD, EQUAL, GREATER, AT_LEAST, RETURN = 0x20, 0x15, 0x25, 0x35, 0x06  # the BPF operations that we write ourselves
NUMBER_AT, ARCHITECTURE_AT = 0, 4  # offsets in struct seccomp_data
ALLOW, ERRNO = 0x7FFF_0000, 0x0005_0000  # SECCOMP_RET_*

SKIPPED = 0xFFFF_FFFF  # number -1: a tracer has answered the call itself
X32_BIT = 0x4000_0000
X32_FIRST, X32_LAST = 512, 547  # x32's own calls; before Linux 5.4 they answer without the bit as well


def deny_filter(numbers: Iterable[int], machine: str) -> bytes:
    """Refuse these calls, foreign architectures and x32; allow the rest."""
    return own_calls_only(machine) + refuse(numbers) + instruction(RETURN, ALLOW)


def own_calls_only(machine: str) -> bytes:
    """Refuse foreign architectures and x32, whose numbers mean other calls; go on with the number loaded."""
    foreign = (
        instruction(LOAD, ARCHITECTURE_AT)
        + instruction(EQUAL, architecture_of(machine), then=1)
        + instruction(RETURN, ERRNO | errno.ENOSYS)
        + instruction(LOAD, NUMBER_AT)
    )
    x32 = (
        instruction(EQUAL, SKIPPED, then=4)
        + instruction(AT_LEAST, X32_BIT, then=2)
        + instruction(GREATER, X32_LAST, then=2)
        + instruction(AT_LEAST, X32_FIRST, otherwise=1)
        + instruction(RETURN, ERRNO | errno.ENOSYS)
    )
    return foreign + x32 if machine == "x86_64" else foreign


def refuse(numbers: Iterable[int]) -> bytes:
    """With the number loaded: refuse these. Each has its own return, as a jump reaches only 255 instructions."""
    return b"".join(
        instruction(EQUAL, number, otherwise=1) + instruction(RETURN, ERRNO | errno.EPERM)
        for number in sorted(set(numbers))
    )


def instruction(operation: int, value: int, *, then: int = 0, otherwise: int = 0) -> bytes:
    """One struct sock_filter; both machines are little-endian."""
    return struct.pack("<HBBI", operation, then, otherwise, value)
