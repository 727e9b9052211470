"""Device patterns become the device nodes that the jail gets. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.launcher.resolve.environment import Names
from agent_sandbox.launcher.resolve.hidden import expand
from agent_sandbox.launcher.view import Kind, Mount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.probe import Disk

# Each of these reaches around the jail: memory, disks, kernel modules' control files, other people's terminals.
NEVER = (
    "/dev/mem", "/dev/kmem", "/dev/port", "/dev/sd*", "/dev/nvme*", "/dev/loop*", "/dev/dm-*", "/dev/mapper", "/dev/fuse", "/dev/kvm",
    "/dev/vhost*", "/dev/net", "/dev/kmsg", "/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/vsock", "/dev/uinput", "/dev/tty*", "/dev/vd*",
)  # fmt: skip


def resolve_devices(settings: Settings, disk: Disk) -> list[Mount]:
    denied = Names((*NEVER, *settings.names("filesystem.deny_devices")))
    found: dict[str, Mount] = {}
    for entry in settings.entries("filesystem.devices"):
        for path in expand(entry.value, disk):
            if disk.kind(path) in ("other", "directory") and _may_be_granted(path, denied):
                found[path] = Mount(path=path, kind=Kind.DEVICE, origin=f"filesystem.devices ({entry.layer})")
    return list(found.values())


def _may_be_granted(path: str, denied: Names) -> bool:
    """Something strictly below /dev that neither itself nor by a directory above it is denied."""
    parts = path.split("/")
    above = ["/".join(parts[: i + 1]) for i in range(2, len(parts))]
    return path.startswith("/dev/") and not any(denied.match(one) for one in above)
