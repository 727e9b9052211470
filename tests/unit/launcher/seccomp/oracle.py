"""What the table of rules means, said a second time and plainly: the filters are compared with this."""

from __future__ import annotations

import errno
import itertools
from collections.abc import Iterator, Sequence

from agent_sandbox.launcher.seccomp.filters import ARCHITECTURES
from agent_sandbox.launcher.seccomp.numbers import read_numbers
from agent_sandbox.launcher.seccomp.rules import MODES, Match, Rule, rules_for
from tests.unit.launcher.seccomp.simulator import ALLOW, ERRNO

VARIANTS = tuple(itertools.product(MODES, ARCHITECTURES, (False, True)))
NUMBERS = {machine: read_numbers(machine) for machine in ARCHITECTURES}
UPPER_HALVES = (0, 1 << 32, 1 << 63, 0xFFFF_FFFF << 32)


def refusal(error: str) -> int:
    return ERRNO | int(getattr(errno, error))


def expected(rules: Sequence[Rule], call: str, arguments: Sequence[int]) -> int:
    for rule in rules:
        if call in rule.calls and all(holds(match, arguments) for match in rule.matches):
            return refusal(rule.error)
    return ALLOW


def holds(match: Match, arguments: Sequence[int]) -> bool:
    return (arguments[match.position] & match.mask & 0xFFFF_FFFF in match.values) == match.among


def examples(mode: str, nested: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """For each rule, calls that it refuses and calls just beside it, each with every upper half."""
    for rule in rules_for(mode, nested=nested):
        for call, values in itertools.product(rule.calls, itertools.product(*map(interesting, rule.matches))):
            arguments = [0] * 6
            for match, value in zip(rule.matches, values, strict=True):
                arguments[match.position] = value
            for upper in UPPER_HALVES:
                yield call, tuple(value | upper for value in arguments)


def interesting(match: Match) -> list[int]:
    """The rule's own values, and those one bit away from them."""
    return sorted({value ^ change for value in match.values for change in (0, *(1 << bit for bit in range(32)))})
