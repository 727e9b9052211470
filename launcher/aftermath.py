"""After a session: was something replaced outside that a mask covered, did something appear that runs outside later?"""

from __future__ import annotations

import os

from agent_sandbox.config.record import record
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.view import Carving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.launcher.view import Carve

REPLACED = {
    Carving.HIDE: "was replaced outside while the jail ran: the new file may have been readable inside",
    Carving.READ: "was replaced outside while the jail ran: the new file may have been changed from inside",
    Carving.PIN: "was replaced outside while the jail ran: what lies in it was not protected any more",
}


@record
class Before:
    carves: tuple[tuple[str, Carving, int], ...]  # each with an open file: while it is held, no new file gets its number
    absent: tuple[str, ...]


def remember(carves: Iterable[Carve], project: str, protected: Iterable[str]) -> Before:
    held = tuple((carve.path, carve.carving, _open(carve.path)) for carve in carves if carve.carving in REPLACED)
    absent = tuple(path for path in (f"{project}/{name}" for name in (".git", *protected)) if _identity(path) == (0, 0))
    return Before(carves=held, absent=absent)


def look_again(before: Before) -> tuple[str, ...]:
    lines = [f"{printable(path)} {REPLACED[carving]}" for path, carving, handle in before.carves if not _is_still(handle, path)]
    new = [path for path in before.absent if _identity(path) != (0, 0)]
    outermost = [path for path in new if not any(path.startswith(other + "/") for other in new)]
    if outermost:
        names = ", ".join(map(printable, outermost))
        lines.append(f"made in this session, and may run outside later: {names}: look at it before you use it")
    return tuple(lines)


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1


def _is_still(handle: int, path: str) -> bool:
    if handle < 0:
        return _identity(path) == (0, 0)
    found = os.fstat(handle)
    return (found.st_dev, found.st_ino) == _identity(path)


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.lstat(path)
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)
