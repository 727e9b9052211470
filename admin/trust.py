"""Is code of ours out of everybody's reach but root's? Each directory and link that leads to it counts, from / on."""

from __future__ import annotations

import os
import stat
import sys

from agent_sandbox.config.errors import UserError


def package() -> str:
    """Where the code that runs lies."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def who_else_writes(path: str, *, sticky_is_fine: bool) -> str:
    """The first part of the way that somebody else than root can change, in words; "" = none.

    In a sticky directory of root's others cannot replace what is root's; a rule that outlives us should not rest on that.
    """
    for one in _way(path):
        status = os.lstat(one)
        if status.st_uid != 0:
            return f"{one} belongs to uid {status.st_uid}"
        sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX and sticky_is_fine
        if status.st_mode & 0o022 and not stat.S_ISLNK(status.st_mode) and not sticky:
            return f"{one} can be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def _way(path: str) -> list[str]:
    """The path and all above it, as given and as resolved."""
    ways = []
    for one in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        parts = one.strip("/").split("/")
        ways += ["/", *("/" + "/".join(parts[: number + 1]) for number in range(len(parts)))]
    return ways


def check_own_code() -> None:
    """Root runs code that only root can change: an agent may work in the clone."""
    problem = who_else_writes(package(), sticky_is_fine=True) or who_else_writes(sys.executable, sticky_is_fine=True)
    if problem:
        raise UserError(f"root does not run code that others can change: {problem}", hint="sudo make install-system, then sudo botadm …")


def check_entry(entry: str) -> None:
    """The whole install of a strict rule's program: itself, its library and its interpreter."""
    if not os.path.isfile(entry):
        raise UserError("--strict needs an installed copy: this one has no entry point", where=entry, hint="sudo make install-system")
    for path in (entry, package(), sys.executable):
        problem = who_else_writes(path, sticky_is_fine=False)
        if problem:
            raise UserError(f"--strict is refused: {problem}", hint="install it where all is root's up to /: sudo make install-system")
