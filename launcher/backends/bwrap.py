"""A Policy becomes a bubblewrap Plan. Pure: filters and files come as bytes, nothing is started.

Mounts follow the order of the View. Whatever lies below a writable directory is not bwrap's to mount (before 0.12 a link planted
there makes it create files on the host): those are carves, made by our own stage on open files.
"""

from __future__ import annotations

import signal

from agent_sandbox.launcher.backends.filters import base_filters
from agent_sandbox.launcher.backends.rooms import places_of_helpers
from agent_sandbox.launcher.own import PORT, USUAL
from agent_sandbox.launcher.plan import Cover, Data, Held, Plan, Stage
from agent_sandbox.launcher.policy import Access, Gap, Masking, Property, Rooms, Shape
from agent_sandbox.launcher.view import SHELF, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_sandbox.launcher.policy import Host, Policy
    from agent_sandbox.launcher.view import Mount

BINDS = ("--bind", "--ro-bind", "--bind-try", "--ro-bind-try")
STATUS_FD, OPTIONS_FD, FIRST_DATA_FD = 10, 11, 12
SCOPES_ABI = 6
OWN_USER_NAMESPACES = 2  # bwrap makes two: one to mount devpts, one to be the user again
OWN_USER_NAMESPACES_OF_ROOT = 1  # root stays root in the first: a second one would be left for the agent

# Root's number opens these without any capability (a core_pattern with a pipe is run by the real root). bwrap covers some by
# itself, but not /proc/sys: its question whether that directory can be written is always answered with no.
ROOTS_PROC = (
    "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/mtrr",
    "/proc/driver",
)  # fmt: skip

# The terminal, the caller's shell and `kill` reach the whole process group. bwrap's monitor must outlive what the command
# handles; the command gets the usual dispositions back.
GROUP_SIGNALS = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
    signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
)  # fmt: skip


class Bwrap:
    name = "bwrap"

    def shape(self, host: Host, room: str) -> Shape:
        """Everything can be mounted where it belongs."""
        return Shape(masking=Masking.SOME, rooms=Rooms(home=host.home, tmp="/tmp", own=USUAL))

    def gaps(self, policy: Policy, host: Host) -> tuple[Gap, ...]:
        return tuple(_gaps(policy, host))

    def plan(self, policy: Policy, host: Host, command: Sequence[str]) -> Plan:
        data = tuple(_data(policy, host))
        options = tuple(_options(policy, host, data))
        return Plan(
            backend=self.name, program=host.bwrap, command=tuple(command), data=data,
            words=("--args", str(OPTIONS_FD), "--"), options=options, options_fd=OPTIONS_FD, status_fd=STATUS_FD,
            room=places_of_helpers(policy), helpers=policy.helpers,
            stage=Stage(
                carves=policy.carves, held=tuple(_held(policy, options)), covers=tuple(_covers(policy, options)), limits=policy.limits,
                most_user_namespaces=None if policy.syscalls.nested else _own_user_namespaces(host),
                scope_abstract_sockets=policy.network.mode == "open" and host.landlock >= SCOPES_ABI,
                scope_signals=host.landlock >= SCOPES_ABI, ignored_signals=GROUP_SIGNALS,
                listen=PORT if policy.network.mode == "proxied" else 0,
            ),
        )  # fmt: skip


def _own_user_namespaces(host: Host) -> int:
    return OWN_USER_NAMESPACES_OF_ROOT if (host.uid, host.gid) == (0, 0) else OWN_USER_NAMESPACES


def _gaps(policy: Policy, host: Host) -> Iterator[Gap]:
    reason = "when an account is added outside while the jail runs, /etc/passwd is a new file, and the names of all can be read"
    yield Gap(property=Property.USERS, reason=reason, weak=True, always=True)
    if policy.network.mode == "open" and host.landlock < SCOPES_ABI:
        reason = f"the network is shared and this kernel's Landlock (ABI {host.landlock}) has no scopes"
        yield Gap(property=Property.ABSTRACT_SOCKETS, reason=reason, fix="Linux 6.12, or --network isolated")
    if host.landlock < SCOPES_ABI and not host.own_group:
        reason = "a signal sent inside to the process group (`kill 0`) reaches the caller's, where the two are one"
        yield Gap(property=Property.PIDS, reason=reason, fix="Linux 6.12")
    if policy.limits.processes is not None and host.uid == 0:
        yield Gap(property=Property.LIMITS, reason="the kernel does not count root's processes (limits.processes)")


def _data(policy: Policy, host: Host) -> Iterator[Data]:
    """The filters first, then the files that we wrote, each on its own number."""
    number = FIRST_DATA_FD
    for content in base_filters(policy.syscalls, host.machine):
        yield Data(fd=number, content=content, label="seccomp")
        number += 1
    for mount in policy.view.mounts:
        if mount.kind == Kind.FILE:
            yield Data(fd=number, content=mount.content, label=mount.path)
            number += 1


def _options(policy: Policy, host: Host, data: tuple[Data, ...]) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    if policy.network.mode == "isolated":
        yield "--unshare-net"
    yield from ("--die-with-parent", "--cap-drop", "ALL", "--json-status-fd", str(STATUS_FD))
    yield from _filter_options(data)
    files = {one.label: str(one.fd) for one in data}
    shown = ""  # the bind that the mounts after it may lie below
    for mount in policy.view.mounts:
        below_bind = bool(shown) and mount.path.startswith(shown)
        yield from _mount(mount, files, below_bind)
        if mount.kind == Kind.BIND and not below_bind:
            shown = mount.path + "/"
        if mount.kind == Kind.PROC and host.uid == 0:
            yield from (word for path in ROOTS_PROC for word in ("--ro-bind-try", path, path))
    for mount in policy.view.mounts:
        if _ends_read_only(mount):
            yield from ("--remount-ro", mount.path)
    yield from ("--remount-ro", "/", "--chdir", policy.cwd)
    for name, value in policy.environment.values.items():
        yield from ("--setenv", name, value)


def _held(policy: Policy, options: tuple[str, ...]) -> Iterator[Held]:
    """Where the options name a source that could be swapped: bwrap follows links there, when it starts."""
    movable = {mount.path: mount for mount in policy.view.mounts if mount.kind == Kind.BIND and (mount.movable or mount.path == SHELF)}
    end = options.index("--chdir")  # after it come only variables
    for word in range(1, end - 1):
        mount = movable.get(options[word + 1]) if options[word - 1] in BINDS else None
        if mount and options[word] == (mount.source or mount.path):
            yield Held(path=options[word], word=word, optional=mount.optional)


def _covers(policy: Policy, options: tuple[str, ...]) -> Iterator[Cover]:
    movable = {mount.path for mount in policy.view.mounts if mount.kind == Kind.FILE and mount.movable}
    end = options.index("--chdir")  # after it come only variables
    for word in range(end - 4):
        if options[word] == "--perms" and options[word + 2] == "--ro-bind-data":
            path = options[word + 4]
            yield Cover(path=path, word=word, executable=options[word + 1] == "0700", movable=path in movable)


def _filter_options(data: tuple[Data, ...]) -> Iterator[str]:
    filters = [one for one in data if one.label == "seccomp"]
    option = "--seccomp" if len(filters) == 1 else "--add-seccomp-fd"
    for one in filters:
        yield from (option, str(one.fd))


def _mount(mount: Mount, files: dict[str, str], below_bind: bool) -> tuple[str, ...]:
    path = mount.path
    match mount.kind:
        case Kind.BIND:
            option = "--bind" if mount.access == Access.WRITE else "--ro-bind"
            return (f"{option}-try" if mount.optional else option, mount.source or path, path)
        case Kind.SCRATCH:
            return ("--perms", "1777" if path.endswith("/tmp") else "0700", "--tmpfs", path)
        case Kind.LINK:
            return ("--symlink", mount.target, path)
        case Kind.FILE:
            how = "--ro-bind-data" if below_bind else "--file"
            return ("--perms", "0700" if mount.executable else "0600", how, files[path], path)
        case Kind.MASK:
            return ("--perms", "0000", "--tmpfs", path)
        case Kind.DEVICE:
            return ("--dev-bind", path, path)
        case Kind.DEV:
            return ("--dev", path)
        case Kind.PROC:
            return ("--proc", path)


def _ends_read_only(mount: Mount) -> bool:
    """Made read-only after everything in it was made: an order that every bwrap understands."""
    return (mount.kind == Kind.SCRATCH and mount.access == Access.READ) or mount.kind == Kind.MASK
