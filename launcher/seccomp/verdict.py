"""The name of a system call becomes what the jail says to it, in words. Pure.

Any name is taken: one that is no system call is `allowed` here; `numbers.number_of` tells them apart.
"""

from __future__ import annotations

from agent_sandbox.config.record import record
from agent_sandbox.launcher.seccomp.rules import rules_for


@record
class Refusal:
    error: str  # "EPERM"
    when: str  # "" is always
    reason: str


@record
class Verdict:
    action: str  # "allowed", "refused", or "depends" on the arguments
    refusals: tuple[Refusal, ...]


def verdict(name: str, mode: str, nested: bool) -> Verdict:
    refusals = tuple(
        Refusal(error=rule.error, when=rule.when, reason=rule.reason)
        for rule in rules_for(mode, nested=nested)
        if name in rule.calls
    )
    if not refusals:
        return Verdict(action="allowed", refusals=())
    return Verdict(action="depends" if all(refusal.when for refusal in refusals) else "refused", refusals=refusals)
