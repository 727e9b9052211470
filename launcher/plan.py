"""How a policy is made true: the value that a backend hands to `execute`. Printable; making one changes nothing. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from agent_sandbox.launcher.policy import Gap, Helper, Host, Limits, Policy, Shape
    from agent_sandbox.launcher.supervisor.allowed import Allowed
    from agent_sandbox.launcher.view import Carve

    class Backend(Protocol):
        name: str

        def shape(self, host: Host, room: str) -> Shape: ...

        def gaps(self, policy: Policy, host: Host) -> tuple[Gap, ...]: ...

        def plan(self, policy: Policy, host: Host, command: Sequence[str]) -> Plan: ...


@record
class Data:
    """Bytes that the backend reads from an open file: nothing is written to disk, nothing shows in a process list."""

    fd: int
    content: bytes
    label: str


@record
class Held:
    """A grant that the backend gets as an open file's mount: by its path it might be led elsewhere."""

    path: str
    word: int  # which of the options names it as the source
    optional: bool


@record
class Cover:
    """A file of ours over one of the host's, put there by us: bwrap looks for it by path again and again, and it may be replaced meanwhile."""

    path: str
    word: int  # where the options name it: five words from here on
    executable: bool = False
    movable: bool = False  # somebody but root could put a link there, which bwrap would follow


@record
class Stage:
    """What our own process does to itself before it becomes the backend."""

    limits: Limits
    ignored_signals: tuple[int, ...]
    carves: tuple[Carve, ...] = ()
    held: tuple[Held, ...] = ()
    covers: tuple[Cover, ...] = ()
    most_user_namespaces: int | None = None  # None = as many as the system allows
    scope_abstract_sockets: bool = False
    scope_signals: bool = False  # the process group is the caller's: `kill 0` inside would end the caller's script
    listen: int = 0  # the port on which the proxy listens in a network of the jail's own; 0 = no such network is made here


@record
class Room:
    """What a session keeps in a directory of its own, since it cannot be mounted where it belongs."""

    path: str
    directories: tuple[str, ...]  # parents first, the room itself among them
    links: tuple[tuple[str, str], ...]  # where, and what it says
    files: tuple[tuple[str, bytes, bool], ...]  # where, what, and whether it is a program


@record
class PathRule:
    """A Landlock rule; rights that make no sense for a file are dropped when it turns out to be one."""

    path: str
    rights: int
    optional: bool = False  # may be gone by the time it is opened
    without: tuple[str, ...] = ()  # paths below it that get no rule: then each of their neighbours has one


@record
class Domain:
    """What a Landlock jail is made of."""

    handled_files: int
    handled_network: int
    scoped: int
    log_denials: bool
    rules: tuple[PathRule, ...]
    filters: tuple[bytes, ...]  # seccomp programs in the order in which they are loaded
    supervised: bool  # the last of them hands calls over to a supervisor
    allowed: Allowed
    environment: dict[str, str]
    cwd: str
    machine: str
    proxied: bool = False  # the only way out is a port on this machine's loopback, which PORT in the environment stands for


@record
class Inner:
    """What a second stage of ours does inside, where nothing of it may come before the backend."""

    environment: dict[str, str]
    cwd: str
    home: str  # "" = no throw-away one
    filters: tuple[bytes, ...]
    files: tuple[tuple[str, bytes], ...]  # made in the throw-away home
    links: tuple[tuple[str, str], ...]  # as well: where, and what it says
    copies: tuple[str, ...]  # files of home that the backend puts its own in the place of: read outside, written inside
    shown: tuple[str, ...]  # the entries of / that stay; every other is hidden
    checks: tuple[tuple[str, str], ...]  # paths, and what must be true of them before anything runs
    own_network: bool
    insists_on_pins: bool  # a directory that cannot be held in place stops the launch
    listen: int = 0  # as in Stage


@record
class Plan:
    backend: str
    command: tuple[str, ...]
    stage: Stage
    program: str = ""  # "" = our own process becomes the command
    words: tuple[str, ...] = ()  # between the program and the command
    options: tuple[str, ...] = ()  # handed over by `options_fd`
    options_fd: int = -1
    status_fd: int = -1
    data: tuple[Data, ...] = ()
    domain: Domain | None = None
    room: Room | None = None
    helpers: tuple[Helper, ...] = ()
    inner: Inner | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.program, *self.words, *self.command)
