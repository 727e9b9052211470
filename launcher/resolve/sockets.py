"""Sockets of services outside that a jail could reach, since they lie in what is granted, become named weaknesses. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.launcher.policy import Gap, Property
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.view import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.probe import Disk
    from agent_sandbox.launcher.view import View

TABLE = "/proc/net/unix"  # every bound socket of this network, with its path
MOST = 16 << 20
NAMED = 3


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
