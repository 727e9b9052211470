"""Runs a seccomp filter on one system call, as a kernel would: so another machine's filters are tested here too."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
WORD = 0xFFFF_FFFF

JUMPS = {
    0x15: lambda a, k: a == k,
    0x25: lambda a, k: a > k,
    0x35: lambda a, k: a >= k,
    0x45: lambda a, k: a & k != 0,
}


@functools.cache
def decode(program: bytes) -> tuple[tuple[int, ...], ...]:
    return tuple(struct.iter_unpack("<HBBI", program))


def answer(program: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> int:
    """SECCOMP_RET_… of the program. Whatever the kernel would not load raises."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number & WORD, architecture, 0, *padded)
    code = decode(program)
    accumulator, at = 0, 0
    while True:
        operation, then, otherwise, value = code[at]
        at += 1
        if operation == 0x06:  # return
            return value
        if operation == 0x20:  # load a word
            assert value % 4 == 0 and value + 4 <= len(data)
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == 0x54:  # and
            accumulator &= value
        elif operation == 0x05:  # jump
            at += value
        else:
            at += then if JUMPS[operation](accumulator, value) else otherwise
