"""Device patterns become the device nodes that the jail gets. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.config.settings import Rank
from agent_sandbox.launcher.policy import Gap, Property
from agent_sandbox.launcher.resolve.hidden import expand
from agent_sandbox.launcher.view import Kind, Mount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.probe import Disk

# InfiniBand and RoCE, Omni-Path, Slingshot: a program sends by these to any machine of the fabric, whatever network namespace it is in.
FABRICS = ("/dev/infiniband/", "/dev/hfi1", "/dev/ipath", "/dev/cxi")


def resolve_devices(settings: Settings, disk: Disk, network: str) -> list[Mount]:
    """Each node by itself is held against the denials: a pattern may be wider than what denies a part of it.

    A fabric is a network: it is there where that is open, or where an admin's own list names it.
    """
    found: dict[str, Mount] = {}
    for entry in settings.entries("filesystem.devices"):
        for path in _nodes(entry.value, disk):
            if not path.startswith("/dev/") or settings.denied_by("filesystem.devices", path, entry.rank):
                continue
            if network == "open" or entry.rank is Rank.ADMIN or not path.startswith(FABRICS):
                found[path] = Mount(path=path, kind=Kind.DEVICE, origin=f"filesystem.devices ({entry.layer})")
    return list(found.values())


def name_fabrics(devices: Sequence[Mount], network: str) -> list[Gap]:
    fabrics = [mount for mount in devices if mount.path.startswith(FABRICS)]
    if network == "open" or not fabrics:
        return []
    reason = f"{fabrics[0].path} is there by {fabrics[0].origin}, and what is sent by it passes nobody of ours"
    return [Gap(property=Property.NETWORK, reason=reason, fix="take it out of the admin's filesystem.devices")]


def _nodes(pattern: str, disk: Disk) -> Iterator[str]:
    """The nodes themselves, also those in a directory that was named."""
    for path in expand(pattern, disk):
        inside = [f"{path}/{name}" for name in disk.entries(path)] if disk.kind(path) == "directory" else []
        yield from (node for node in (path, *inside) if disk.kind(node) == "other")
