"""Sockets of services outside: what the settings grant, and what could be reached since it lies in a grant. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.launcher.policy import Access, Gap, Grant, Property
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.resolve.grants import Asked
from agent_sandbox.launcher.resolve.hidden import expand
from agent_sandbox.launcher.view import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.probe import Disk
    from agent_sandbox.launcher.view import View

TABLE = "/proc/net/unix"  # every bound socket of this network, with its path
MOST = 16 << 20
NAMED = 3
SOCKET = 0o140000


def granted_sockets(settings: Settings, disk: Disk) -> list[Asked]:
    """Each held against the denials by its real path too: a link may name what an admin denied. One that is not there is passed over."""
    found: dict[str, Asked] = {}
    for entry in settings.entries("sockets.allow"):
        for path in expand(entry.value, disk):
            end = disk.follow(path)
            seen = disk.stat(end.real)
            if seen is None or seen.st_mode & 0o170000 != SOCKET or settings.denied_by("sockets.allow", end.real, entry.rank):
                continue
            grant = Grant(path=end.real, access=Access.READ, origin=f"sockets.allow ({entry.layer})")
            found[end.real] = Asked(grant=grant, links=end.links, shipped=False)
    return list(found.values())


def reachable_sockets(view: View, disk: Disk) -> list[Gap]:
    """A mount does not stop connect(). Looked at once, at the start: most jails have none."""
    table = disk.read(TABLE, MOST) or b""
    binds = [mount.path for mount in view.mounts if mount.kind == Kind.BIND]
    if not any(f" {path}/".encode("utf-8", "surrogateescape") in table for path in binds):
        return []
    paths = [line.split(maxsplit=7)[7:] for line in table.decode("utf-8", "surrogateescape").splitlines()[1:]]
    found = sorted({path[0] for path in paths if path and path[0].startswith("/") and view.shows(path[0])})
    if not found:
        return []
    named = ", ".join(map(printable, found[:NAMED])) + (f" and {len(found) - NAMED} more" if len(found) > NAMED else "")
    reason = f"a service outside that listens in what is granted can be reached: {named}"
    return [Gap(property=Property.UNIX_SOCKETS, reason=reason, fix="--hide it")]
