"""Which Slurm is there: asked of its own sbatch once, when a request has an option that not every Slurm knows.

Kept by what the program is – path, time, size – so that an update during a session is noticed; what was not found out is asked again.
"""

from __future__ import annotations

import os
import re

from agent_sandbox.chaperon.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.command import Result, Step

SECONDS = 10.0
PROGRAM, WORDS = "sbatch", ("--version",)
_SAID = re.compile(r"slurm\S* ([0-9]{2})\.([0-9]{1,2})(?:\.([0-9]{1,4}))?")
_known: dict[tuple[str, int, int], tuple[int, ...]] = {}


def known_version(programs: str) -> tuple[int, ...]:
    """Of the Slurm in a directory; empty where nobody has asked yet."""
    return _known.get(_identity(programs), ())


def ask_version(programs: str, then: Callable[[tuple[int, ...]], Step]) -> Command:
    """`then` gets it, or nothing where it cannot be found out."""
    identity = _identity(programs)

    def finish(result: Result) -> Step:
        version = read_version(result.out)
        if version:
            _known[identity] = version
        return then(version)

    return Command(program=PROGRAM, words=WORDS, finish=finish, seconds=SECONDS)


def read_version(said: bytes) -> tuple[int, ...]:
    """`slurm-wlm 22.05.8`"""
    found = _SAID.match(said.decode("ascii", "replace"))
    return tuple([int(part) for part in found.groups() if part]) if found else ()


def _identity(programs: str) -> tuple[str, int, int]:
    path = f"{programs}/{PROGRAM}"
    try:
        found = os.stat(path)
    except OSError:
        return path, 0, 0
    return path, found.st_mtime_ns, found.st_size
