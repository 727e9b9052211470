"""What a table with questions in it means, said a second time and plainly; and what the kernel can know of a call ahead."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent_sandbox.launcher.seccomp.assemble import ASK, PRETEND
from agent_sandbox.launcher.seccomp.rules import Rule
from tests.unit.launcher.seccomp.oracle import holds, interesting, refusal
from tests.unit.launcher.seccomp.simulator import ALLOW, JUMPS, decode

USER_NOTIF = 0x7FC00000
SUCCESS = 0x00050000  # the error that is none


class Situation(NamedTuple):
    network: str = "open"
    supervised: bool = True
    nested: bool = False
    private_ipc: bool = False
    covers_truncate: bool = True


SITUATIONS = tuple(
    Situation(network, *flags)
    for network in ("isolated", "proxied", "open")
    for flags in itertools.product((True, False), repeat=4)
)


def judged(rules: Sequence[Rule], call: str, arguments: Sequence[int]) -> int:
    for rule in rules:
        if call in rule.calls and all(holds(match, arguments) for match in rule.matches):
            return {ASK: USER_NOTIF, PRETEND: SUCCESS}.get(rule.error) or refusal(rule.error)
    return ALLOW


def beside(rules: Sequence[Rule]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """For each rule, calls that it is about and calls just beside it."""
    for rule in rules:
        values: dict[int, set[int]] = {}
        for match in rule.matches:
            values.setdefault(match.position, {0}).update(interesting(match))
        for call, chosen in itertools.product(rule.calls, itertools.product(*values.values())):
            arguments = dict(zip(values, chosen, strict=True))
            yield call, tuple(arguments.get(position, 0) for position in range(6))


def known_ahead(program: bytes, architecture: int, number: int) -> int | None:
    """The answer if it can be told from the number alone, as the kernel's cache asks; None where an argument is looked at."""
    code = decode(program)
    loaded, at = 0, 0
    while True:
        operation, then, otherwise, value = code[at]
        at += 1
        if operation == 0x06:
            return value
        if operation == 0x20:
            if value not in (0, 4):
                return None
            loaded = (number, architecture)[value // 4]
        elif operation == 0x05:
            at += value
        else:
            at += then if JUMPS[operation](loaded, value) else otherwise
