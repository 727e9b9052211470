"""How a policy is made true: the value that a backend hands to `execute`. Printable; making one changes nothing. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from agent_sandbox.launcher.policy import Gap, Host, Limits, Policy
    from agent_sandbox.launcher.view import Carve

    class Backend(Protocol):
        name: str

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
class Stage:
    """What our own process does to itself before it becomes the backend."""

    carves: tuple[Carve, ...]
    held: tuple[Held, ...]
    limits: Limits
    most_user_namespaces: int | None  # None = as many as the system allows
    scope_abstract_sockets: bool
    scope_signals: bool  # the process group is the caller's: `kill 0` inside would end the caller's script
    ignored_signals: tuple[int, ...]


@record
class Plan:
    backend: str
    program: str
    options: tuple[str, ...]  # handed over by `options_fd`
    options_fd: int
    status_fd: int
    command: tuple[str, ...]
    data: tuple[Data, ...]
    stage: Stage

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.program, "--args", str(self.options_fd), "--", *self.command)
