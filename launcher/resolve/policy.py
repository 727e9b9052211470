"""Settings and host facts become the Policy: the map of this folder. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace
from agent_sandbox.launcher.policy import Access, Gap, Masking, Policy, Property, Syscalls
from agent_sandbox.launcher.resolve.accounts import group_file, passwd_file
from agent_sandbox.launcher.resolve.carves import settle
from agent_sandbox.launcher.resolve.devices import name_fabrics, resolve_devices
from agent_sandbox.launcher.resolve.environment import TOOLS, resolve_environment
from agent_sandbox.launcher.resolve.filesystem import Layout
from agent_sandbox.launcher.resolve.grants import gather
from agent_sandbox.launcher.resolve.hidden import resolve_hidden
from agent_sandbox.launcher.resolve.limits import resolve_limits
from agent_sandbox.launcher.resolve.network import check_lists, resolve_network
from agent_sandbox.launcher.resolve.project import check_project
from agent_sandbox.launcher.resolve.protect import protect_project
from agent_sandbox.launcher.resolve.sockets import granted_sockets, reachable_sockets
from agent_sandbox.launcher.view import Carving, Kind, Mount, View, in_order, is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.policy import Host, Rooms, Shape
    from agent_sandbox.launcher.probe import Disk, Found
    from agent_sandbox.launcher.resolve.grants import Asked
    from agent_sandbox.launcher.resolve.project import Places

OURS = "agent-sandbox"
BOOTSTRAP = ("agent-sandbox", "bootstrap")  # what a person starts outside, where a clone of ours is the project


def resolve_policy(settings: Settings, host: Host, disk: Disk, places: Places, project: Found, shape: Shape) -> Policy:
    check_project(project.real, places, settings, disk)
    network = resolve_network(settings, shape.no_proxy)
    check_unready(settings, network.mode)
    notes = check_lists(settings, network.mode)
    sockets = granted_sockets(settings, disk)
    layout, weaknesses = _lay_out(settings, host, disk, places, project, sockets, shape.masking)
    rooms = _settle_rooms(shape.rooms, settings, host)
    devices = resolve_devices(settings, disk, network.mode)
    extra = [*_generated(host, disk, rooms), *devices]
    view = View(mounts=in_order(list({**layout.mounts, **{mount.path: mount for mount in extra}}.values())))  # ours win
    return Policy(
        project=project.real, cwd=_start_directory(host, project), home=host.home, real_home=places.home,
        home_mode=settings.text("filesystem.home"), rooms=rooms, view=view,
        carves=settle(layout.carves.values()),
        environment=resolve_environment(settings, host, rooms), network=network,
        syscalls=Syscalls(
            mode=settings.text("seccomp.mode"), nested=settings.flag("sandbox.nested_userns"), deny=settings.names("seccomp.deny"),
        ),
        limits=resolve_limits(settings), required=settings.names("sandbox.require"),
        accepted=settings.names("sandbox.accept_gaps"), sockets=tuple(one.grant.path for one in sockets),
        log_denials=settings.flag("audit.kernel"), notes=notes,
        weaknesses=(*weaknesses, *reachable_sockets(view, disk), *name_fabrics(devices, network.mode)),
    )  # fmt: skip


def _settle_rooms(rooms: Rooms, settings: Settings, host: Host) -> Rooms:
    """The real home and /tmp need no room."""
    home = host.home if settings.text("filesystem.home") == "write" else rooms.home
    return replace(rooms, home=home, tmp=rooms.tmp if settings.flag("filesystem.private_tmp") else "/tmp")


def _lay_out(
    settings: Settings, host: Host, disk: Disk, places: Places, project: Found, sockets: Sequence[Asked], masking: Masking,
) -> tuple[Layout, list[Gap]]:  # fmt: skip
    layout = Layout(host, disk, resolve_hidden(settings, places, disk), masking)
    mode = settings.text("filesystem.home")
    _lay_scratch(layout, settings, places, mode)
    layout.add_all([*gather(settings, host, disk, places, project), *sockets])
    layout.add_links(disk.follow(host.home).links)
    if mode != "restricted":
        _add_seeds(layout, settings, disk, read_only=mode == "write")
    layout.hide_all()
    weaknesses = _protect(layout, settings, disk, places, project.real)
    return layout, weaknesses + _name_weaknesses(layout, mode, masking)


def _lay_scratch(layout: Layout, settings: Settings, places: Places, mode: str) -> None:
    if mode in ("restricted", "tmpwrite"):
        access = Access.READ if mode == "restricted" else Access.WRITE
        layout.scratch(places.home, access, f"filesystem.home {mode}")
    if settings.flag("filesystem.private_tmp"):
        for path in ("/tmp", "/var/tmp"):
            layout.scratch(path, Access.WRITE, "filesystem.private_tmp")


def _add_seeds(layout: Layout, settings: Settings, disk: Disk, read_only: bool) -> None:
    """A copy without secrets where home is ours to fill; where home is the real one, the file held read-only."""
    for entry in settings.entries("filesystem.seed"):
        found = disk.follow(entry.value)
        content = disk.read(found.real) if found.kind == "file" else None
        if content is None or found.real in layout.hidden:
            continue
        if read_only:
            layout.hold(found.real, f"filesystem.seed ({entry.layer})")
        else:
            parent, _, name = entry.value.rpartition("/")
            place = f"{disk.follow(parent).real}/{name}"  # home may be a link, and below a link nothing can be made
            layout.replace_file(place, found.real, _cleaned(content), f"filesystem.seed ({entry.layer})")


def _cleaned(content: bytes) -> bytes:
    from agent_sandbox.launcher.resolve.seeds import without_secrets

    return without_secrets(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _protect(layout: Layout, settings: Settings, disk: Disk, places: Places, project: str) -> list[Gap]:
    """Our own directories, the admin's denials and the parts of the project that run outside later."""
    for path in (places.install, places.data, places.admin, *settings.names("filesystem.deny_writable")):
        if disk.kind(path):
            layout.hold(path, "self-protection" if path in (places.install, places.data, places.admin) else "filesystem.deny_writable")
    root = layout.writable_root(f"{project}/.") or project
    names = settings.names("project.protect")
    if disk.kind(f"{places.data}/clones{project}/.installed"):
        names += BOOTSTRAP
    carves, gaps = protect_project(project, root, names, disk)
    for carve in carves:
        layout.carves.setdefault(carve.path, carve)
    return gaps


def _name_weaknesses(layout: Layout, mode: str, masking: Masking) -> list[Gap]:
    masked = sum(carve.carving == Carving.HIDE for carve in layout.carves.values())
    found = []
    if mode == "write":
        reason = "home is writable: files in it that run outside later (.bashrc and others) can be changed from inside"
        found.append(Gap(property=Property.FS_WRITE, reason=reason, fix="--home tmpwrite"))
    if masked and masking != Masking.NONE:
        reason = f"{masked} hidden path(s) lie below something writable: a mask covers them, which a rename outside takes away"
        found.append(Gap(property=Property.HIDDEN, reason=reason, fix="do not grant their parent as writable"))
    return found


def _generated(host: Host, disk: Disk, rooms: Rooms) -> list[Mount]:
    files = {"/etc/passwd": passwd_file(host, disk), "/etc/group": group_file(host, disk)}
    return [
        Mount(path="/dev", kind=Kind.DEV, origin=OURS),
        Mount(path="/proc", kind=Kind.PROC, origin=OURS),
        Mount(path=f"{rooms.own}/{TOOLS}/agent-sandbox", kind=Kind.LINK, target=host.entry, origin=OURS),
        *(Mount(path=path, kind=Kind.FILE, content=content, origin="accounts") for path, content in files.items()),
    ]


def _start_directory(host: Host, project: Found) -> str:
    return host.cwd if is_below(host.cwd, project.real) else project.real


def check_unready(settings: Settings, network: str) -> None:
    """A setting whose part is not built yet, and without which the jail would not be what was asked for: refuse."""
    for name in settings.unready():
        if name.startswith("network.") and network == "isolated":
            continue
        raise UserError(
            f"{name} is set, and the part that enforces it is not in this version",
            where=settings.origin(name), hint="take it out, or wait for a version that has it",
        )  # fmt: skip
