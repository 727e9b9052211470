"""One system call made in the running kernel, with or without a filter, by a small program of its own."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_sandbox.launcher.seccomp.numbers import number_of
from tests.unit.launcher.seccomp.simulator import ERRNO

MACHINE = os.uname().machine
SOURCE = Path(__file__).parents[3] / "machines/attempt.c"
MARK = errno.EDOTDOT
HIGH = 0xDEADBEEF << 32

x86_only = pytest.mark.skipif(MACHINE != "x86_64", reason="other machines have neither int 0x80 nor x32")


class Result(NamedTuple):
    value: int
    error: int


class Kernel(NamedTuple):
    program: Path
    folder: Path

    def attempt(self, code: bytes | None, how: str, call: str | int, *arguments: int) -> Result:
        path = self.folder / "filter"
        path.write_bytes(code or b"")
        number = call if isinstance(call, int) else number_of(call, MACHINE)
        words = (str(self.program), str(path) if code else "-", how, str(number), *map(str, arguments))
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
        assert (done.returncode, done.stderr) == (0, "")  # it got as far as the call
        return Result(*map(int, done.stdout.split()))


def marked(code: bytes, answers: tuple[int, ...] = (ERRNO,)) -> bytes:
    """The same filter, with MARK for every error, or for every answer of the given kinds."""
    kinds = {answer >> 16 for answer in answers}
    instructions = list(struct.iter_unpack("<HBBI", code))
    changed = [(*i[:3], ERRNO | MARK) if i[0] == 0x06 and i[3] >> 16 in kinds else i for i in instructions]
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in changed)
