"""A Policy becomes a firejail Plan: lines of a profile, and orders for a second stage of ours inside. Pure: nothing is started.

firejail shows and hides by path. `whitelist` empties a top directory but for what is named; `blacklist`, `read-only` and
`read-write` are done after that, in their order, each with all that lies below it. A line that it cannot obey it passes over
in silence: so the second stage looks at every path before it starts anything.
"""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.backends.bwrap import SCOPES_ABI, Bwrap
from agent_sandbox.launcher.backends.filters import base_filters
from agent_sandbox.launcher.backends.rooms import furnish
from agent_sandbox.launcher.own import PORT
from agent_sandbox.launcher.plan import Inner, Plan, Stage
from agent_sandbox.launcher.policy import Access, Gap, Masking, Property, Rooms, Shape
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.view import Carving, Kind, is_below, way_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_sandbox.launcher.policy import Host, Policy
    from agent_sandbox.launcher.view import Mount, View

    Rule = tuple[str, str]

STATUS_FD, PROFILE_FD, ORDERS_FD, INPUT_FD, HATCH_FD = 10, 11, 12, 13, 14
INNER_STAGE = "/launcher/firejailed.py"
OWN_NETWORK = ("isolated", "proxied")
NOTHING = "agent-sandbox-nothing"  # a name that is not there: to whitelist it empties the directory
PIN = "pin"  # no word of firejail's: made read-only and writable again, a directory is a mount point, and those cannot be renamed
REFUSED = frozenset('!"#%&,;<>\\^{}*?[]')  # it refuses some of these, reads some as patterns, and # as a comment
ALWAYS = (
    "quiet", "caps.drop all", "nonewprivs", "ipc-namespace", "private-dev", "dbus-user none", "dbus-system none", "keep-config-pulse",
    "deterministic-exit-code", "writable-var", "tab", "nosound", "notv", "nodvd", "nou2f", "novideo", "noinput", "blacklist /dev/log",
)  # fmt: skip
EMPTIED = ("/run", "/var", "/srv", "/mnt", "/media")
KEPT = ("/dev", "/proc", "/tmp", "/home", *EMPTIED)
READ_ONLY = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/etc", "/sys")  # without being told
WHOLE = ("/usr", "/sys", "/proc")  # cannot be emptied but for a part
GPUS = ("/dev/dri", "/dev/nvidia")  # what its own /dev can have beside the usual nodes
SKELETON = (".bashrc", ".zshrc", ".cshrc")  # it fills a throw-away home with the system's, and shows no other there
CARRIED = (".Xauthority", ".asoundrc")  # and copies these into it: the key to the person's screen


class Firejail:
    name = "firejail"

    def shape(self, host: Host, room: str) -> Shape:
        """It mounts nothing of ours: our own place is a directory of the session's, shown read-only."""
        return Shape(masking=Masking.ALL, rooms=Rooms(home=host.home, tmp="/tmp", own=f"{room}/own", session=room))

    def gaps(self, policy: Policy, host: Host) -> tuple[Gap, ...]:
        return (*Bwrap().gaps(policy, host), *_gaps(policy, host))

    def plan(self, policy: Policy, host: Host, command: Sequence[str]) -> Plan:
        rules = tuple(_rules(policy))
        for _, path in rules:
            check_path(path)
        return Plan(
            backend=self.name, program=host.firejail, command=tuple(command), words=_words(policy, host),
            options=(*_settings(policy), *(f"{verb} {path}" for verb, path in rules)), options_fd=PROFILE_FD, status_fd=STATUS_FD,
            stage=Stage(
                limits=policy.limits, ignored_signals=(), scope_signals=host.landlock >= SCOPES_ABI,
                scope_abstract_sockets=policy.network.mode == "open" and host.landlock >= SCOPES_ABI,
            ),
            room=furnish(policy), inner=_inner(policy, host), helpers=policy.helpers,
        )  # fmt: skip


def _words(policy: Policy, host: Host) -> tuple[str, ...]:
    """The rules come by an open file, and so does the command: firejail takes 128 words of 4 KiB, and a process list shows them."""
    kept = tuple(map(str, (STATUS_FD, ORDERS_FD, INPUT_FD, *((HATCH_FD,) if policy.network.mode == "proxied" else ()))))
    files = (f"--profile=/proc/self/fd/{PROFILE_FD}", f"--keep-fd={','.join(kept)}")
    return ("--quiet", *files, host.python, "-I", "-S", host.package + INNER_STAGE, *kept)


def _inner(policy: Policy, host: Host) -> Inner:
    home = policy.real_home if _has_own_home(policy) else ""
    made = {mount.path: mount for mount in policy.view.mounts if home and is_below(mount.path, home)}
    return Inner(
        environment=policy.environment.values, cwd=policy.cwd, home=home,
        filters=tuple(base_filters(policy.syscalls, host.machine)),
        files=tuple((path, mount.content) for path, mount in made.items() if mount.kind == Kind.FILE),
        links=tuple((path, mount.target) for path, mount in made.items() if mount.kind == Kind.LINK),
        copies=tuple(mount.path for mount in policy.view.mounts if _is_copied(mount, policy)),
        shown=tuple(dict.fromkeys((*KEPT, *(way_to(mount.path)[-1] for mount in policy.view.mounts)))),
        checks=tuple(dict.fromkeys(_checks(policy))), own_network=policy.network.mode in OWN_NETWORK,
        listen=PORT if policy.network.mode == "proxied" else 0, insists_on_pins=policy.insists_on(Property.PROJECT_PROTECT),
    )  # fmt: skip


def _settings(policy: Policy) -> Iterator[str]:
    yield from ALWAYS
    if policy.network.mode in OWN_NETWORK:
        yield "net none"
    if not policy.syscalls.nested:
        yield "restrict-namespaces"
    if _other_homes(policy):
        yield "allusers"
    if _uses_var_tmp(policy):
        yield "keep-var-tmp"
    if not any(mount.kind == Kind.DEVICE and mount.path.startswith(GPUS) for mount in policy.view.mounts):
        yield "no3d"


def _other_homes(policy: Policy) -> list[str]:
    """Grants in the homes of others, which firejail hides by itself unless all are to stay."""
    binds = [mount.path for mount in policy.view.mounts if mount.kind == Kind.BIND]
    return [path for path in binds if is_below(path, "/home") and not is_below(path, policy.real_home)]


def _uses_var_tmp(policy: Policy) -> bool:
    return any(mount.kind == Kind.BIND and is_below(mount.path, "/var/tmp") for mount in policy.view.mounts)


def _rules(policy: Policy) -> Iterator[Rule]:
    for top in EMPTIED:
        if not _is_bind(policy.view.covering(top)):
            yield "whitelist", f"{top}/{NOTHING}"
    if not _is_bind(policy.view.covering(policy.rooms.own)):
        yield "whitelist", policy.rooms.own
    yield "read-only", policy.rooms.own
    for mount in policy.view.mounts:
        yield from _mount_rules(mount, policy)
    for carve in policy.carves:
        yield from _carve_rules(carve.path, carve.carving)


def _mount_rules(mount: Mount, policy: Policy) -> Iterator[Rule]:
    if mount.kind == Kind.SCRATCH:
        yield from _scratch_rules(mount, policy)
    elif mount.kind == Kind.MASK:
        yield "blacklist", mount.path
    elif mount.kind == Kind.BIND and not _is_copied(mount, policy):
        above = policy.view.covering(mount.path.rpartition("/")[0])
        if not _is_bind(above) and mount.path.count("/") > 1:
            yield "whitelist", mount.path
        yield from _right_rules(mount, above)


def _right_rules(mount: Mount, above: Mount | None) -> Iterator[Rule]:
    if mount.access == Access.READ and mount.path not in READ_ONLY and not _is_read_only(above):
        yield "read-only", mount.path
    elif mount.access == Access.WRITE and _is_read_only(above):
        yield "read-write", mount.path


def _is_bind(mount: Mount | None) -> bool:
    return mount is not None and mount.kind == Kind.BIND


def _is_read_only(mount: Mount | None) -> bool:
    return mount is not None and mount.kind in (Kind.BIND, Kind.SCRATCH) and mount.access == Access.READ


def _scratch_rules(mount: Mount, policy: Policy) -> Iterator[Rule]:
    """Of home, /tmp and /var/tmp; any other is made on the way to what is shown in it."""
    if mount.path == "/var/tmp" and not _uses_var_tmp(policy):
        yield "whitelist", mount.path  # its own, which it has put there before
    elif mount.path == "/tmp":
        yield "whitelist", f"/tmp/{NOTHING}"
    elif mount.path == policy.real_home:
        yield from _home_rules(mount)


def _home_rules(home: Mount) -> Iterator[Rule]:
    top = way_to(home.path)[-1]
    if top not in (home.path, "/home"):
        yield "whitelist", f"{top}/{NOTHING}"  # beside a home that is somewhere else it hides nothing without being told
    yield "whitelist", f"{home.path}/{NOTHING}"
    yield from (("blacklist", f"{home.path}/{name}") for name in CARRIED)
    if home.access == Access.READ:
        yield "read-only", home.path


def _carve_rules(path: str, carving: Carving) -> tuple[Rule, ...]:
    verb = {Carving.READ: "read-only", Carving.WRITE: "read-write", Carving.HIDE: "blacklist", Carving.PIN: PIN}[carving]
    return ((verb, path),)


def _is_copied(mount: Mount, policy: Policy) -> bool:
    """A file of the throw-away home in the place of which firejail puts its own."""
    return mount.kind == Kind.BIND and _has_own_home(policy) and mount.path in {f"{policy.real_home}/{name}" for name in SKELETON}


def _has_own_home(policy: Policy) -> bool:
    around = policy.view.covering(policy.real_home)
    return around is not None and around.kind == Kind.SCRATCH


def _checks(policy: Policy) -> Iterator[tuple[str, str]]:
    rights = {Access.READ: "read", Access.WRITE: "write"}
    carved = {Carving.READ: "read", Carving.WRITE: "write", Carving.HIDE: "hidden", Carving.PIN: "pinned"}
    yield from (("/dev/log", "hidden"), ("/dev/shm", "scratch"), ("/run", "scratch"), (policy.rooms.own, "read"))
    if _has_own_home(policy):
        yield from ((f"{policy.real_home}/{name}", "hidden") for name in CARRIED)
    for mount in policy.view.mounts:
        if mount.kind == Kind.BIND and not mount.optional and not _is_copied(mount, policy):
            yield mount.path, rights[mount.access]
        elif mount.kind in (Kind.SCRATCH, Kind.MASK):
            yield mount.path, "scratch" if mount.kind == Kind.SCRATCH else "hidden"
    yield from ((carve.path, carved[carve.carving]) for carve in policy.carves)


def check_path(path: str) -> None:
    what = unsuitable(path)
    if what:
        raise UserError(f"firejail cannot take this path, for {what}", where=printable(path), hint="rename it, or use another backend")


def unsuitable(path: str) -> str:
    """What in it firejail would misread, in words; "" = nothing."""
    bad = [one for one in path if one in REFUSED or (ord(one) < 128 and not one.isprintable())]
    if bad:
        return f"the character {bad[0]}" if bad[0].isprintable() else "a control character"
    if path.endswith(" ") or "  " in path:
        return "a space at its end" if path.endswith(" ") else "two spaces in a row"
    return ""


def _gaps(policy: Policy, host: Host) -> Iterator[Gap]:
    taken = next(((path, what) for _, path in _rules(policy) if (what := unsuitable(path))), None)
    if taken:
        reason = f"firejail cannot take this path, for {taken[1]}: {printable(taken[0])}"
        yield Gap(property=Property.FS_READ, reason=reason, fix="rename it, or use another backend")
    if host.uid == 0:
        reason = "firejail leaves / itself writable, and root could write there"
        yield Gap(property=Property.FS_WRITE, reason=reason, fix="use bwrap, or be another user")
    if _has_own_home(policy) and policy.home != policy.real_home:
        reason = f"{printable(policy.home)} is a link, and firejail makes no throw-away home where it leads"
        yield Gap(property=Property.FS_WRITE, reason=reason, fix="--home read, or another backend")
    yield from _view_gaps(policy.view)
    if _other_homes(policy):
        reason = f"to show {printable(_other_homes(policy)[0])} firejail shows the names of all accounts"
        yield Gap(property=Property.USERS, reason=reason, fix="use bwrap")
    masks = sum(mount.kind == Kind.MASK and is_below(mount.path, policy.real_home) for mount in policy.view.mounts)
    if masks or not _has_own_home(policy):
        reason = f"{masks} hidden path(s) in home are covered by a mask, which a rename outside takes away, and what is made there later has none"
        yield Gap(property=Property.HIDDEN, reason=reason, fix="--home tmpwrite", weak=True)
    if _uses_var_tmp(policy) and not _is_bind(policy.view.covering("/var/tmp")):
        yield Gap(property=Property.TMP, reason="/var/tmp has only what is granted below it and cannot be written", weak=True, always=True)
    if policy.limits.processes is not None:
        reason = "limits.processes counts all processes of this user, those outside as well"
        yield Gap(property=Property.LIMITS, reason=reason, fix="use bwrap", weak=True)


def _view_gaps(view: View) -> Iterator[Gap]:
    reason = "the names of what lies in / can be seen, and what is made there later can be read"
    yield Gap(property=Property.FS_READ, reason=reason, weak=True, always=True)
    for top in WHOLE:
        parts = [mount for mount in view.mounts if mount.kind == Kind.BIND and is_below(mount.path, top)]
        if parts and not _is_bind(view.covering(top)):
            yield Gap(property=Property.FS_READ, reason=f"firejail shows all of {top}, not only {printable(parts[0].path)}", fix="use bwrap")
    missing = [mount.path for mount in view.mounts if mount.kind == Kind.DEVICE and not mount.path.startswith(GPUS)]
    if missing:
        reason = f"firejail's own /dev does not have {printable(missing[0])}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
        yield Gap(property=Property.DEVICES, reason=reason, fix="use bwrap", weak=True)
