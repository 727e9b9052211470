"""The committed filters, run on a simulated kernel, answer as the table says – on both machines."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.seccomp import filters
from agent_sandbox.launcher.seccomp.filters import ARCHITECTURES, ready_filter
from agent_sandbox.launcher.seccomp.rules import MODES, RULES, rules_for
from tests.unit.launcher.seccomp.oracle import NUMBERS, VARIANTS, examples, expected, refusal
from tests.unit.launcher.seccomp.simulator import ALLOW, answer

variants = pytest.mark.parametrize(("mode", "machine", "nested"), VARIANTS)
BY_ARGUMENT = sorted({call for rule in RULES if rule.matches for call in rule.calls})
FOREIGN = (0x40000003, 0x40000028, 0x4000003E, 0, 0xFFFFFFFF)  # i386, arm, x32's own token
NO_SUCH_CALL = refusal("ENOSYS")


@variants
def test_each_rule_refuses_its_examples_and_nothing_beside_them(mode: str, machine: str, nested: bool) -> None:
    program, rules = ready_filter(mode, machine, nested=nested), rules_for(mode, nested=nested)
    seen = set()
    for call, arguments in examples(mode, nested):
        if call in NUMBERS[machine]:
            found = answer(program, ARCHITECTURES[machine], NUMBERS[machine][call], arguments)
            assert found == expected(rules, call, arguments), (call, *map(hex, arguments))
            seen.add((call, found))
    refused = {(call, refusal(rule.error)) for rule in rules for call in rule.calls if call in NUMBERS[machine]}
    conditional = {call for rule in rules if rule.matches for call in rule.calls}
    assert seen == refused | {(call, ALLOW) for call in conditional}


@variants
def test_every_other_number_is_allowed(mode: str, machine: str, nested: bool) -> None:
    program = ready_filter(mode, machine, nested=nested)
    refused = {NUMBERS[machine].get(call) for rule in rules_for(mode, nested=nested) for call in rule.calls}
    for number in {*range(512), *range(548, 1024), *NUMBERS[machine].values()} - refused:
        for arguments in ([0] * 6, [1] * 6, [(1 << 64) - 1] * 6, [0x7E020000] * 6, [40, 3, 9, 1, 1, 1]):
            assert answer(program, ARCHITECTURES[machine], number, arguments) == ALLOW, number


@variants
def test_foreign_architectures_have_no_calls(mode: str, machine: str, nested: bool) -> None:
    program = ready_filter(mode, machine, nested=nested)
    others = (*FOREIGN, *(token for name, token in ARCHITECTURES.items() if name != machine))
    for token, number in itertools.product(others, (*range(512), 0x40000000, 0xFFFFFFFF)):
        assert answer(program, token, number) == NO_SUCH_CALL


@pytest.mark.parametrize(("mode", "nested"), tuple(itertools.product(MODES, (False, True))))
def test_x32_has_no_calls_with_or_without_its_bit(mode: str, nested: bool) -> None:
    program = ready_filter(mode, "x86_64", nested=nested)
    for number in (*range(512, 548), *range(0x40000000, 0x40000400), 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE):
        assert answer(program, ARCHITECTURES["x86_64"], number) == NO_SUCH_CALL


@variants
def test_a_call_that_a_tracer_answered_keeps_its_answer(mode: str, machine: str, nested: bool) -> None:
    assert answer(ready_filter(mode, machine, nested=nested), ARCHITECTURES[machine], -1) == ALLOW


WORDS = st.one_of(
    st.integers(0, (1 << 64) - 1),
    st.builds(lambda low, high: high << 32 | low, st.integers(0, 64), st.sampled_from((0, 1, 0xFFFFFFFF))),
    st.integers(0, 31).map(lambda bit: 1 << bit),
)


@settings(max_examples=500, deadline=None)
@given(
    variant=st.sampled_from(VARIANTS),
    call=st.sampled_from(BY_ARGUMENT),
    arguments=st.lists(WORDS, min_size=6, max_size=6),
)
def test_any_arguments_are_judged_as_the_table_says(
    variant: tuple[str, str, bool], call: str, arguments: list[int]
) -> None:
    mode, machine, nested = variant
    program = ready_filter(mode, machine, nested=nested)
    wanted = expected(rules_for(mode, nested=nested), call, arguments)
    assert answer(program, ARCHITECTURES[machine], NUMBERS[machine][call], arguments) == wanted


@variants
def test_every_family_type_and_protocol_of_a_socket_is_judged_as_the_table_says(
    mode: str, machine: str, nested: bool
) -> None:
    program, rules = ready_filter(mode, machine, nested=nested), rules_for(mode, nested=nested)
    chance = random.Random(0)
    for family, kind, protocol in itertools.product(range(48), range(12), (0, 1, 4, 9, 15, 16, 20, 31)):
        arguments = [value | chance.getrandbits(32) << 32 for value in (family, kind, protocol)]
        found = answer(program, ARCHITECTURES[machine], NUMBERS[machine]["socket"], arguments)
        assert found == expected(rules, "socket", arguments), (family, kind, protocol)


def test_a_machine_without_a_filter_is_named() -> None:
    with pytest.raises(UserError, match="no system-call filter for riscv64"):
        ready_filter("hpc", "riscv64", nested=False)


@pytest.mark.parametrize("content", [b"", b"1234567", b"x" * (8 * 4096 + 8)], ids=["empty", "torn", "too long"])
def test_a_damaged_filter_stops_the_launch(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "FOLDER", str(tmp_path))
    (tmp_path / "hpc.x86_64.bpf").write_bytes(content)
    with pytest.raises(UserError, match=r"hpc\.x86_64\.bpf: the system-call filter cannot be used: \d+ bytes"):
        ready_filter("hpc", "x86_64", nested=False)


def test_a_missing_filter_stops_the_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "FOLDER", str(tmp_path))
    with pytest.raises(UserError, match=r"hpc-nested\.x86_64\.bpf: .*No such file"):
        ready_filter("hpc", "x86_64", nested=True)
