"""The types that a launch is made of: what the host is, what will be true inside. Pure."""

from __future__ import annotations

import enum

from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.view import Carve, View


class Property(enum.StrEnum):
    """What a backend can enforce: the words of config, doctor, explain, audit and tests."""

    FS_READ = "fs-read"
    FS_WRITE = "fs-write"
    HIDDEN = "hidden"
    ENVIRONMENT = "environment"
    PIDS = "pids"
    IPC = "ipc"
    TMP = "tmp"
    USERS = "users"
    DEVICES = "devices"
    TTY = "tty"
    SYSCALLS = "syscalls"
    UNIX_SOCKETS = "unix-sockets"
    ABSTRACT_SOCKETS = "abstract-sockets"
    NETWORK = "network"
    MAIL = "mail"
    SLURM = "slurm"
    LIMITS = "limits"
    PROJECT_PROTECT = "project-protect"
    SELF_PROTECTION = "self-protection"


class Access(enum.IntEnum):
    """Ordered: the smaller value is the narrower right."""

    HIDDEN, READ, WRITE = range(3)


@record
class Host:
    """What this machine is and can do, read once."""

    user: str
    uid: int
    gid: int
    home: str
    shell: str
    groups: tuple[tuple[int, str], ...]  # gid and name, the primary group first
    name: str
    machine: str  # x86_64, aarch64
    landlock: int  # ABI, 0 = none
    bwrap: str  # absolute path, "" = not installed
    firejail: str = ""
    notify: bool = True  # seccomp can hand calls over to a supervisor
    yama: int = 0  # kernel.yama.ptrace_scope: from 2 on a supervisor cannot look into the jail's processes
    install: str  # the directory that holds our own code
    entry: str  # the program that starts it
    package: str  # the directory agent_sandbox in it
    python: str
    environment: dict[str, str]
    cwd: str
    own_group: bool = True  # the caller gave us a process group of our own, as an interactive shell does


@record
class Tried:
    """What came of running a backend here."""

    backend: str
    problem: str  # "" = it ran
    fix: str = ""


class Masking(enum.Enum):
    """How a backend hides what lies below something that it shows read-only."""

    SOME = "some"  # by leaving it out, the siblings shown one by one; a mask where only root could take it away
    NONE = "none"  # only by leaving it out
    ALL = "all"  # only by a mask


@record
class Rooms:
    """Where the jail's own places are: at the usual paths where these can be mounted, else in a directory of the session's."""

    home: str
    tmp: str
    own: str  # the summary, and the tools of ours that are found by PATH
    session: str = ""  # the directory that holds those that could not be mounted


@record
class Shape:
    """What a policy must know of the backend that is to enforce it."""

    masking: Masking
    rooms: Rooms
    no_proxy: str = ""  # why this backend cannot give mode `proxied` here


@record
class Grant:
    path: str
    access: Access
    origin: str  # starts every message about this grant


@record
class Gap:
    """A property that the chosen backend cannot give to this policy here."""

    property: Property
    reason: str
    fix: str = ""
    weak: bool = False  # the property holds, but for this: said, and no reason to stop
    always: bool = False  # every jail of this backend has it: told by name alone

    def line(self) -> str:
        return self.weak_line() if self.weak else f"{self.property} is not enforced: {self.reason}{self._advice()}"

    def weak_line(self) -> str:
        """For a gap that comes with what was asked for, whatever the backend."""
        return f"weak point in {self.property}: {self.reason}{self._advice()}"

    def _advice(self) -> str:
        return f" ({self.fix})" if self.fix else ""


@record
class Environment:
    values: dict[str, str]
    removed: tuple[tuple[str, str], ...]  # name, and the rule that removed it
    changed: tuple[tuple[str, str], ...]  # name, and what was taken out of its value
    renamed: tuple[str, ...] = ()  # names whose value is ours, not the caller's


@record
class Network:
    mode: str  # what holds inside
    asked: str  # what the settings say
    why: str = ""  # how the one became the other


@record
class Syscalls:
    mode: str
    nested: bool
    deny: tuple[str, ...] = ()


@record
class Limits:
    """None = no limit. Bytes and seconds."""

    processes: int | None = None
    memory: int | None = None
    cpu_time: int | None = None
    file_size: int | None = None
    open_files: int | None = None
    core_size: int | None = None
    wall_time: int | None = None


@record
class Helper:
    """A process of ours outside the jail that serves it while it lives."""

    module: str  # whose `run(orders, door, guard)` is its life
    orders: bytes
    place: str = ""  # a directory in the session's room that the jail can write
    door: str = ""  # a FIFO in it, held open from before the jail starts; "" = a socket that listens inside, and is handed out from there
    line: str = ""  # what the start line says of it
    death: str = ""  # what is said when it ends before the jail does


@record
class Policy:
    """What will be true inside."""

    project: str
    cwd: str
    home: str
    real_home: str  # without links on the way
    home_mode: str
    rooms: Rooms
    view: View
    carves: tuple[Carve, ...]  # mounts below a writable directory, made before the backend runs
    environment: Environment
    network: Network
    syscalls: Syscalls
    limits: Limits
    required: tuple[str, ...]
    accepted: tuple[str, ...]
    sockets: tuple[str, ...] = ()  # unix sockets of services outside that can be reached
    log_denials: bool = False
    helpers: tuple[Helper, ...] = ()
    weaknesses: tuple[Gap, ...] = ()  # gaps of the policy itself, whatever the backend
    notes: tuple[str, ...] = ()

    def insists_on(self, wanted: Property) -> bool:
        return wanted in self.required and wanted not in self.accepted
