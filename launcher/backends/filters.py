"""The settings on system calls become the seccomp programs that are loaded, whatever the backend. Reads the ready ones."""

from __future__ import annotations

from agent_sandbox.launcher.seccomp.filters import ready_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.policy import Syscalls


def base_filters(syscalls: Syscalls, machine: str) -> Iterator[bytes]:
    if syscalls.mode != "off":
        yield ready_filter(syscalls.mode, machine, syscalls.nested)
    if syscalls.deny:
        from agent_sandbox.launcher.seccomp.extra import deny_filter
        from agent_sandbox.launcher.seccomp.numbers import numbers_of

        yield deny_filter(numbers_of(syscalls.deny, machine), machine)
