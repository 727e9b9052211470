"""Parts of the project that run outside the jail later become read-only carves. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.launcher.policy import Gap, Property
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.view import Carve, Carving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.launcher.probe import Disk


def protect_project(project: str, root: str, names: Iterable[str], disk: Disk) -> tuple[list[Carve], list[Gap]]:
    """What is there of the names, as carves; a link cannot be held in place, and is named."""
    carves: dict[str, Carve] = {}
    gaps: list[Gap] = []
    for name in names:
        path, kind = _reach(project, name, disk)
        if kind == "link":
            gaps.append(_link_gap(path))
        elif kind:
            carves[path] = Carve(root=root, path=path, carving=Carving.READ, origin=f"project.protect {name}")
    return list(carves.values()), list({gap.reason: gap for gap in gaps}.values())


def _reach(project: str, name: str, disk: Disk) -> tuple[str, str]:
    """How far the name goes: to its end, to a file that stands in for a directory (a worktree's `.git`), or to a link."""
    path = project
    for part in name.split("/"):
        path = f"{path}/{part}"
        kind = disk.kind(path)
        if kind != "directory":
            break
    return path, kind


def _link_gap(path: str) -> Gap:
    reason = f"{printable(path)} is a symbolic link, which cannot be held in place"
    return Gap(property=Property.PROJECT_PROTECT, reason=reason, fix="replace the link by what it points to")
