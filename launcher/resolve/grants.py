"""Settings become grants: which host paths may be read or written inside, before anything is hidden. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher.policy import Access, Grant
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.view import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.config.settings import Entry, Settings
    from agent_sandbox.launcher.policy import Host
    from agent_sandbox.launcher.probe import Disk, Found
    from agent_sandbox.launcher.resolve.project import Places

COMMAND_LINE = "command line"
RESOLVER = "/etc/resolv.conf"


@record
class Asked:
    """A grant as it was asked for, followed on disk; a shipped default gives way where a person's own wish would be an error."""

    grant: Grant
    links: tuple[tuple[str, str], ...]
    shipped: bool


def gather(settings: Settings, host: Host, disk: Disk, places: Places, project: Found) -> tuple[Asked, ...]:
    asked = [
        *_listed(settings, "filesystem.system", Access.READ, disk),
        *_home_view(settings, disk, places),
        *_own(host, disk, places),
        Asked(grant=Grant(path=project.real, access=Access.WRITE, origin="project"), links=project.links, shipped=False),
    ]
    if not settings.flag("filesystem.private_tmp"):
        asked += [one for path in ("/tmp", "/var/tmp") for one in _at(path, Access.WRITE, "filesystem.private_tmp", disk)]
    return tuple(_within_denials(one, settings, places) for one in asked)


def _home_view(settings: Settings, disk: Disk, places: Places) -> Iterator[Asked]:
    """What of home is there: the listed paths, or the whole of it."""
    mode = settings.text("filesystem.home")
    if mode in ("read", "write"):
        access = Access.WRITE if mode == "write" else Access.READ
        yield Asked(grant=Grant(path=places.home, access=access, origin=f"filesystem.home {mode}"), links=(), shipped=True)
    yield from _listed(settings, "filesystem.readonly", Access.READ, disk, skip_shipped=mode == "write")
    yield from _listed(settings, "filesystem.writable", Access.WRITE, disk, skip_shipped=mode in ("restricted", "write"))


def _listed(settings: Settings, key: str, access: Access, disk: Disk, skip_shipped: bool = False) -> Iterator[Asked]:
    for entry in settings.entries(key):
        shipped = entry.rank == 0
        if shipped and skip_shipped:
            continue
        found = disk.follow(entry.value)
        if found.kind:
            yield Asked(grant=Grant(path=found.real, access=access, origin=_origin(entry, key)), links=found.links, shipped=shipped)
        elif entry.layer == COMMAND_LINE:
            raise UserError("there is nothing here to grant", where=printable(entry.value), hint="it was given on the command line")


def _origin(entry: Entry, key: str) -> str:
    return f"{key} ({entry.layer})"


def _own(host: Host, disk: Disk, places: Places) -> Iterator[Asked]:
    """Our own code and its interpreter (for `explain` inside and for the stubs), and what resolving names needs."""
    yield from _at(places.install, Access.READ, "agent-sandbox", disk)
    yield from _at(host.python, Access.READ, "agent-sandbox", disk)
    yield from _at(RESOLVER, Access.READ, "name resolution", disk)


def _at(path: str, access: Access, origin: str, disk: Disk) -> Iterator[Asked]:
    found = disk.follow(path)
    if found.kind:
        yield Asked(grant=Grant(path=found.real, access=access, origin=origin), links=found.links, shipped=True)


def _within_denials(asked: Asked, settings: Settings, places: Places) -> Asked:
    """The admin's denials once more, on the real path; and nothing writable that holds the home directory."""
    grant = asked.grant
    if grant.access < Access.WRITE:
        return asked
    where = printable(grant.path)
    for denied in settings.names("filesystem.deny_writable"):
        if is_below(grant.path, denied):
            problem = f"the admin keeps {printable(denied)} read-only ({grant.origin} asks to write)"
            raise UserError(problem, where=where, hint=f"the rule stands in {settings.origin('filesystem.deny_writable')}")
    if grant.path != places.home and is_below(places.home, grant.path):
        problem = f"a directory above home cannot be writable ({grant.origin})"
        raise UserError(problem, where=where, hint="grant the directory that is needed")
    if grant.path == places.home and not grant.origin.startswith("filesystem.home"):
        problem = f"home cannot be granted as a whole ({grant.origin})"
        raise UserError(problem, where=where, hint="grant what is needed, or choose --home write")
    return asked
