"""The hidden entries of the settings become real paths. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.patterns import glob_matches, is_pattern
from agent_sandbox.config.record import record
from agent_sandbox.launcher.probe import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.probe import Disk
    from agent_sandbox.launcher.resolve.project import Places


SELF_PROTECTION = "self-protection"
MOST_MATCHES = 2000  # of one pattern: nothing here may walk a tree


@record
class Hidden:
    path: str
    rule: str  # the entry as it was written


def resolve_hidden(settings: Settings, places: Places, disk: Disk) -> tuple[Hidden, ...]:
    """The entry and what it points to, both: a mount is keyed by path, and a link is one more path to the same file.

    Also one that is not there yet, where its directory is: somebody may log in to something while the jail runs.
    """
    revealed = {path for entry in settings.names("filesystem.reveal") for path in expand(entry, disk)}
    found: dict[str, Hidden] = {}
    for entry in settings.entries("filesystem.hidden"):
        for path in expand(entry.value, disk):
            if path not in revealed or entry.rank != 0:
                _add(found, path, entry.value, disk)
    for own in (places.config, places.state, places.runtime):
        found[own] = Hidden(path=own, rule=SELF_PROTECTION)
    return tuple(found.values())


def _add(found: dict[str, Hidden], path: str, rule: str, disk: Disk) -> None:
    parent, _, name = path.rpartition("/")
    holder = disk.follow(parent or "/")
    if not holder.kind:
        return
    literal = f"{holder.real.rstrip('/')}/{name}"
    found[literal] = Hidden(path=literal, rule=rule)
    if disk.kind(literal) == "link":
        end = disk.follow(literal)
        if end.kind or disk.kind(end.real.rpartition("/")[0] or "/"):
            found[end.real] = Hidden(path=end.real, rule=rule)


def expand(pattern: str, disk: Disk) -> Iterable[str]:
    """`*` and `?` stand for names in one directory; only the directories on the way are listed."""
    if not is_pattern(pattern):
        return (pattern,)
    paths = [""]
    for part in pattern.split("/")[1:]:
        if is_pattern(part):
            paths = [f"{base}/{name}" for base in paths for name in _matching(part, disk.entries(base or "/"))]
            if len(paths) > MOST_MATCHES:
                raise UserError(f"{printable(pattern)} stands for more than {MOST_MATCHES} paths", hint="write it narrower")
        else:
            paths = [f"{base}/{part}" for base in paths]
    return tuple(paths)


def _matching(pattern: str, names: Iterable[str]) -> list[str]:
    """By the plain beginning first: most names in a directory are out by that."""
    beginning = min((pattern.partition(mark)[0] for mark in "*?["), key=len)
    return [name for name in names if name.startswith(beginning) and glob_matches(pattern, name)]
