"""A Policy becomes a Landlock Plan: rules on paths, a room for what cannot be mounted, filters, what a supervisor allows. Pure.

Landlock only takes rights away; nothing is mounted. So the throw-away home and /tmp are directories of the session's own with
links to what is granted, and a hidden path is one whose siblings have rules and it has none. Two properties can be had only at
a price, and are taken where somebody insists on them (`sandbox.require`): `pids` – then /proc shows no process, not even one's
own, which Java, debuggers and `ps` need – and `ipc` – then there is no /dev/shm, which Python's multiprocessing and MPI need.
"""

from __future__ import annotations

from agent_sandbox.config.record import replace
from agent_sandbox.launcher import rights
from agent_sandbox.launcher.backends.filters import base_filters
from agent_sandbox.launcher.backends.rooms import furnish, place_of
from agent_sandbox.launcher.plan import Domain, PathRule, Plan, Stage
from agent_sandbox.launcher.policy import Access, Gap, Masking, Property, Rooms, Shape
from agent_sandbox.launcher.seccomp.mediated import mediated_filter
from agent_sandbox.launcher.supervisor.allowed import Allowed
from agent_sandbox.launcher.view import Carving, Kind, is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_sandbox.launcher.policy import Host, Policy
    from agent_sandbox.launcher.view import Mount

YAMA_FORBIDS = 2
NODES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx")
TERMINALS = "/dev/pts/ptmx"  # where /dev/ptmx may be a link to; the terminals beside it are not granted
SHARED_MEMORY = "/dev/shm"
# All of /proc that is about the machine and not about a process.
MACHINE_FACTS = tuple(
    f"/proc/{name}"
    for name in (
        "buddyinfo", "bus", "cgroups", "cmdline", "consoles", "cpuinfo", "crypto", "devices", "diskstats", "driver", "filesystems",
        "interrupts", "iomem", "ioports", "loadavg", "locks", "meminfo", "misc", "modules", "pagetypeinfo", "partitions", "softirqs",
        "stat", "swaps", "sys", "uptime", "version", "vmstat", "zoneinfo",
    )
)  # fmt: skip


class Landlock:
    name = "landlock"

    def shape(self, host: Host, room: str) -> Shape:
        rooms = Rooms(home=f"{room}/home", tmp=f"{room}/tmp", own=f"{room}/own", session=room)
        return Shape(masking=Masking.NONE, rooms=rooms, no_proxy="" if can_supervise(host) else "no supervisor can run here")

    def gaps(self, policy: Policy, host: Host) -> tuple[Gap, ...]:
        return (*_carve_gaps(policy), *_given_away(policy, host), *_weak_points(policy, host))

    def plan(self, policy: Policy, host: Host, command: Sequence[str]) -> Plan:
        return Plan(
            backend=self.name, command=tuple(command), stage=Stage(limits=policy.limits, ignored_signals=()),
            domain=_domain(policy, host), room=furnish(policy), helpers=policy.helpers,
        )  # fmt: skip


def can_supervise(host: Host) -> bool:
    return host.notify and host.yama < YAMA_FORBIDS


def _carve_gaps(policy: Policy) -> Iterator[Gap]:
    """Rights add up along a path: below something writable there can be no exception."""
    hidden = [one.path for one in policy.carves if one.carving == Carving.HIDE]
    held = [one for one in policy.carves if one.carving == Carving.READ or (one.carving == Carving.HIDE and one.origin in OURS)]
    if hidden:
        reason = f"{_named(hidden)} {_lie(hidden)} below something writable, where Landlock cannot make an exception"
        yield Gap(property=Property.HIDDEN, reason=reason, fix="do not grant its parent as writable, or use another backend")
    for property, origin, what in HELD:
        paths = [one.path for one in held if one.origin.startswith(origin)]
        held = [one for one in held if not one.origin.startswith(origin)]
        if paths:
            yield Gap(property=property, reason=f"{_named(paths)} can be changed from inside: {what}", fix="use bwrap")


OURS = ("self-protection", "agent-sandbox")  # settings and state, and the code itself
HELD = (
    (Property.PROJECT_PROTECT, ("project.protect",), "below the project, which is writable, Landlock cannot make an exception"),
    (Property.SELF_PROTECTION, OURS, "it lies below something writable"),
    (Property.FS_WRITE, ("",), "it lies below something writable, and was to be read-only"),
)  # fmt: skip


def _named(paths: Sequence[str]) -> str:
    from agent_sandbox.launcher.probe import printable

    return printable(paths[0]) + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


def _lie(paths: Sequence[str]) -> str:
    return "lie" if len(paths) > 1 else "lies"


def _given_away(policy: Policy, host: Host) -> Iterator[Gap]:
    if not policy.insists_on(Property.PIDS):
        reason = "names, arguments and use of processes outside can be read in /proc"
        yield Gap(property=Property.PIDS, reason=reason, fix='sandbox.require = ["pids"] closes /proc, which breaks some programs', always=True)
    if not policy.insists_on(Property.IPC):
        reason = "/dev/shm and System V shared memory are shared with your processes outside"
        yield Gap(property=Property.IPC, reason=reason, fix='sandbox.require = ["ipc"] closes them, which breaks some programs', always=True)
    if host.landlock < rights.SCOPES_ABI:
        reason = f"this kernel's Landlock (ABI {host.landlock}) does not stop signals to your processes outside"
        yield Gap(property=Property.PIDS, reason=reason, fix="Linux 6.12")
    yield Gap(property=Property.USERS, reason="the names of all accounts can be read", fix="use bwrap", always=True)
    if policy.limits.processes is not None:
        reason = "the kernel does not count root's processes" if host.uid == 0 else "the kernel counts your processes outside too"
        yield Gap(property=Property.LIMITS, reason=f"{reason} (limits.processes)", fix="use bwrap")


def _weak_points(policy: Policy, host: Host) -> Iterator[Gap]:
    """What holds, but for something that is worth knowing."""
    reason = "that a path exists, its size, dates, attributes and where a link leads can be seen by who knows its name; no file can be read"
    yield Gap(property=Property.HIDDEN, reason=reason, weak=True, always=True)
    reason = "a file beside a hidden one, as all in /etc are, can no longer be read once it was replaced outside (resolv.conf, passwd)"
    yield Gap(property=Property.FS_READ, reason=reason, fix="start again", weak=True, always=True)
    if policy.insists_on(Property.PIDS):
        reason = "a process of yours outside can be moved to other processors by who guesses its number"
        yield Gap(property=Property.PIDS, reason=reason, fix="use bwrap", weak=True, always=True)
    if policy.network.mode != "open":
        reason = "there is no loopback of its own: programs inside cannot listen on a port, nor reach one another by TCP"
        yield Gap(property=Property.NETWORK, reason=reason, fix="use bwrap", weak=True, always=True)
    if not can_supervise(host):
        why = "kernel.yama.ptrace_scope forbids it" if host.notify else "this kernel's seccomp cannot notify"
        reason = f"no supervisor can run ({why}): all unix sockets, chmod, chown, touch and pseudo-terminals are refused"
        yield Gap(property=Property.UNIX_SOCKETS, reason=reason, fix="use bwrap", weak=True)
    if host.landlock < rights.REFER_ABI:
        reason = "with this kernel's Landlock (ABI 1) no file can be moved from one directory to another"
        yield Gap(property=Property.FS_WRITE, reason=reason, fix="Linux 5.19", weak=True)


def _domain(policy: Policy, host: Host) -> Domain:
    handled = rights.file_rights(host.landlock)
    rules = tuple(replace(one, rights=one.rights & handled) for one in _rules(policy) if one.rights & handled)
    supervised = can_supervise(host)
    network = policy.network.mode
    mediated = mediated_filter(
        host.machine, network=network, supervised=supervised, nested=policy.syscalls.nested,
        private_ipc=policy.insists_on(Property.IPC), covers_truncate=host.landlock >= rights.TRUNCATE_ABI,
    )  # fmt: skip
    return Domain(
        handled_files=handled, handled_network=rights.network_rights(host.landlock) if network != "open" else 0,
        scoped=rights.scopes(host.landlock), log_denials=policy.log_denials and host.landlock >= rights.LOG_ABI,
        rules=rules, filters=(*base_filters(policy.syscalls, host.machine), mediated), supervised=supervised,
        allowed=Allowed(
            writable=tuple(one.path for one in rules if one.rights & rights.MAKE_REG and one.path != SHARED_MEMORY),  # no service of others
            readable=tuple(one.path for one in rules if one.rights & rights.READ_FILE and not one.rights & rights.MAKE_REG),
            sockets=policy.sockets, abstract=host.landlock >= rights.SCOPES_ABI, hosts=None if network == "open" else (),
        ),
        environment=policy.environment.values, cwd=policy.cwd, machine=host.machine, proxied=network == "proxied",
    )  # fmt: skip


def _rules(policy: Policy) -> Iterator[PathRule]:
    for mount in policy.view.mounts:
        yield from _mount_rules(mount, policy)
    rooms = policy.rooms
    yield PathRule(path=rooms.own, rights=rights.READ)
    if policy.home_mode != "write":
        yield PathRule(path=rooms.home, rights=rights.WRITE if policy.home_mode == "tmpwrite" else rights.READ)
    yield PathRule(path=rooms.tmp, rights=rights.WRITE)
    yield from (PathRule(path=path, rights=rights.RESOLVE_UNIX, optional=True) for path in policy.sockets)


def _mount_rules(mount: Mount, policy: Policy) -> Iterator[PathRule]:
    match mount.kind:
        case Kind.BIND:
            wanted, masked = (rights.WRITE, ()) if mount.access == Access.WRITE else (rights.READ, _masked(mount, policy))
            yield PathRule(path=mount.path, rights=wanted, optional=mount.optional, without=masked)
        case Kind.DEVICE:
            yield PathRule(path=mount.path, rights=rights.DEVICE, optional=True)
        case Kind.DEV:
            yield from (PathRule(path=path, rights=rights.DEVICE, optional=True) for path in (*NODES, TERMINALS))
            if not policy.insists_on(Property.IPC):
                yield PathRule(path=SHARED_MEMORY, rights=rights.WRITE, optional=True)
        case Kind.PROC:
            shown = MACHINE_FACTS if policy.insists_on(Property.PIDS) else ("/proc",)
            yield from (PathRule(path=path, rights=rights.READ, optional=True) for path in shown)
        case Kind.FILE if not place_of(mount.path, policy):
            yield PathRule(path=mount.path, rights=rights.READ, optional=True)  # ours cannot be put over it: the host's own
        case Kind.SCRATCH | Kind.LINK | Kind.MASK | Kind.FILE:
            pass


def _masked(mount: Mount, policy: Policy) -> tuple[str, ...]:
    return tuple(one.path for one in policy.view.mounts if one.kind == Kind.MASK and is_below(one.path, mount.path))
