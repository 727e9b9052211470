"""The filter for calls that a config file denies."""

from __future__ import annotations

import pytest

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.seccomp.extra import deny_filter
from agent_sandbox.launcher.seccomp.filters import ARCHITECTURES
from tests.unit.launcher.seccomp.oracle import NUMBERS, refusal
from tests.unit.launcher.seccomp.simulator import ALLOW, answer

machines = pytest.mark.parametrize("machine", ARCHITECTURES)


@machines
@pytest.mark.parametrize("count", [0, 1, 200, 500])
def test_the_named_calls_are_refused_and_no_others(machine: str, count: int) -> None:
    denied = set(range(1, 2 * count, 2)) - set(range(512, 548))
    program = deny_filter(denied, machine)
    for number in {*range(512), *range(548, 1024)}:
        wanted = refusal("EPERM") if number in denied else ALLOW
        assert answer(program, ARCHITECTURES[machine], number) == wanted


@machines
def test_foreign_calls_are_refused(machine: str) -> None:
    program = deny_filter((1,), machine)
    for token in {*ARCHITECTURES.values(), 0x40000003} - {ARCHITECTURES[machine]}:
        assert answer(program, token, 39) == refusal("ENOSYS")


def test_x32_is_refused() -> None:
    program = deny_filter((NUMBERS["x86_64"]["ptrace"],), "x86_64")
    for number in (0x40000000 + 39, 0x40000000 + 521, 512, 521, 547):
        assert answer(program, ARCHITECTURES["x86_64"], number) == refusal("ENOSYS")


@machines
def test_a_call_that_a_tracer_answered_keeps_its_answer(machine: str) -> None:
    assert answer(deny_filter((1,), machine), ARCHITECTURES[machine], -1) == ALLOW


def test_a_repeated_number_costs_nothing() -> None:
    assert deny_filter((5, 3, 5), "aarch64") == deny_filter((3, 5), "aarch64")


def test_a_machine_without_filters_is_named() -> None:
    with pytest.raises(UserError, match="riscv64"):
        deny_filter((1,), "riscv64")
