"""The committed files are what the table compiles to."""

from __future__ import annotations

import operator
from collections.abc import Iterator

import pyseccomp  # type: ignore[import-untyped]
import pytest

from agent_sandbox.launcher.seccomp import compile as compiler
from agent_sandbox.launcher.seccomp.filters import ARCHITECTURES, ready_filter
from agent_sandbox.launcher.seccomp.rules import Rule, is_among, is_other_than
from tests.unit.launcher.seccomp.oracle import NUMBERS, VARIANTS, examples, holds
from tests.unit.launcher.seccomp.simulator import answer


def answers(program: bytes, machine: str) -> Iterator[tuple[str, tuple[int, ...], int]]:
    for call, number in NUMBERS[machine].items():
        yield call, (), answer(program, ARCHITECTURES[machine], number)
    for call, arguments in examples("strict", nested=False):
        if call in NUMBERS[machine]:
            yield call, arguments, answer(program, ARCHITECTURES[machine], NUMBERS[machine][call], arguments)


@pytest.mark.parametrize(("mode", "machine", "nested"), VARIANTS)
def test_no_filter_is_stale(mode: str, machine: str, nested: bool) -> None:
    committed = ready_filter(mode, machine, nested=nested)
    fresh = compiler.compile_filter(mode, machine, nested=nested)
    # Another libseccomp may write the same decisions in another order.
    alike = fresh == committed or all(map(operator.eq, answers(fresh, machine), answers(committed, machine)))
    assert alike, "python -m agent_sandbox.launcher.seccomp.compile"


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_no_list_of_names_is_stale(machine: str) -> None:
    fresh = dict(line.split() for line in compiler.list_names(machine).splitlines())
    committed = {name: str(number) for name, number in NUMBERS[machine].items()}
    # A newer libseccomp knows more names; none may be missing or differ that the committed list has.
    assert {name: fresh.get(name) for name in committed} == committed


def test_newer_names_are_unknown_to_libseccomp_or_have_the_same_number_there() -> None:
    for name, number in compiler.NEWER.items():
        for token in ARCHITECTURES.values():
            assert pyseccomp.resolve_syscall(token, name) in (-1, number)


@pytest.mark.parametrize("values", [(0,), (0, 0x40000, 0xFFFFFFFF), (1, 2, 10, 16), (0xFFFFFFFF,)])
@pytest.mark.parametrize("mask", [0xFFFFFFFF, 0x7E020000, 0xF])
def test_comparisons_hold_for_every_value_but_the_excepted(values: tuple[int, ...], mask: int) -> None:
    match = is_other_than(0, *{value & mask for value in values}, mask=mask)
    comparisons = [(c._data_a, c._data_b) for c in compiler.compare(match)]  # type: ignore[attr-defined]
    beside = {value ^ 1 << bit for value in values for bit in range(32)}
    for probe in {*values, *beside, *range(64), *range(1 << 31, 1 << 32, 99991)}:
        assert any(probe & within == wanted for within, wanted in comparisons) == holds(match, [probe])


def test_a_name_that_nobody_knows_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(calls=("frobnicate",), reason="none")
    monkeypatch.setattr(compiler, "rules_for", lambda mode, nested: (rule,))
    with pytest.raises(ValueError, match="frobnicate"):
        compiler.compile_filter("hpc", "x86_64", nested=False)


def test_a_newer_call_does_not_lose_its_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = Rule(calls=("open_tree_attr",), reason="none", matches=(is_among(0, 1),))
    monkeypatch.setattr(compiler, "rules_for", lambda mode, nested: (rule,))
    with pytest.raises(NotImplementedError):
        compiler.compile_filter("hpc", "x86_64", nested=False)
