"""The name of a system call becomes an answer: what the jail's filters say to it, and why."""

from __future__ import annotations

from agent_sandbox.launcher.seccomp.numbers import number_of
from agent_sandbox.launcher.seccomp.verdict import verdict
from agent_sandbox.launcher.seeing.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.policy import Syscalls


def explain_call(name: str, syscalls: Syscalls, machine: str, origin_of: Callable[[str], str]) -> Answer:
    """`origin_of` tells where a key was set."""
    subject = f"syscall {name}"
    if number_of(name, machine) is None:
        return Answer(subject=subject, verdict="refused", rule=f"{machine} has no such call", origin="the kernel")
    if name in syscalls.deny:
        return Answer(subject=subject, verdict="refused (EPERM)", rule="seccomp.deny", origin=origin_of("seccomp.deny"))
    found = verdict(name, syscalls.mode, syscalls.nested)
    mode = f"seccomp.mode {syscalls.mode}" + (", sandbox.nested_userns" if syscalls.nested else "")
    errors = ", ".join(dict.fromkeys(refusal.error for refusal in found.refusals))
    notes = [f"{one.error} {one.when or 'always'}: {one.reason}" for one in found.refusals]
    return Answer(
        subject=subject, verdict=f"{found.action} ({errors})" if errors else found.action, rule=mode,
        origin=origin_of("seccomp.mode"), notes=tuple(notes),
    )  # fmt: skip
