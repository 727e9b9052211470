"""Device patterns become the device nodes that the jail gets. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.launcher.resolve.hidden import expand
from agent_sandbox.launcher.view import Kind, Mount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.probe import Disk


def resolve_devices(settings: Settings, disk: Disk) -> list[Mount]:
    """Each node by itself is held against the denials: a pattern may be wider than what denies a part of it."""
    found: dict[str, Mount] = {}
    for entry in settings.entries("filesystem.devices"):
        for path in _nodes(entry.value, disk):
            if path.startswith("/dev/") and not settings.denied_by("filesystem.devices", path, entry.rank):
                found[path] = Mount(path=path, kind=Kind.DEVICE, origin=f"filesystem.devices ({entry.layer})")
    return list(found.values())


def _nodes(pattern: str, disk: Disk) -> Iterator[str]:
    """The nodes themselves, also those in a directory that was named."""
    for path in expand(pattern, disk):
        inside = [f"{path}/{name}" for name in disk.entries(path)] if disk.kind(path) == "directory" else []
        yield from (node for node in (path, *inside) if disk.kind(node) == "other")
