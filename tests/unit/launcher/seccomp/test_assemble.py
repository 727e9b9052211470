"""Rules become a program that answers as they say: any rules, any arguments."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_sandbox.launcher.seccomp.assemble import ASK, assemble
from agent_sandbox.launcher.seccomp.filters import ARCHITECTURES
from agent_sandbox.launcher.seccomp.rules import Match, Rule, is_among, is_other_than
from tests.unit.launcher.seccomp.mediation import judged
from tests.unit.launcher.seccomp.oracle import refusal
from tests.unit.launcher.seccomp.simulator import ALLOW, answer

TOKEN = ARCHITECTURES["aarch64"]
CALLS = {f"call{number}": number for number in range(24)}
SMALL = st.integers(0, 7)
MATCHES = st.builds(
    Match,
    position=st.integers(0, 2),
    values=st.lists(SMALL, min_size=1, max_size=3, unique=True).map(tuple),
    mask=st.sampled_from((0xFFFFFFFF, 3, 6)),
    among=st.booleans(),
)
RULES = st.builds(
    Rule,
    calls=st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=3).map(tuple),
    reason=st.just("example"),
    error=st.sampled_from(("EPERM", "ENOSYS", "EACCES", ASK)),
    matches=st.lists(MATCHES, max_size=3).map(tuple),
)


@settings(max_examples=300, deadline=None)
@given(rules=st.lists(RULES, max_size=12), arguments=st.lists(SMALL, min_size=3, max_size=3), high=st.integers(0, 0xFFFFFFFF))
def test_any_table_is_judged_as_it_says(rules: list[Rule], arguments: list[int], high: int) -> None:
    program = assemble(rules, "aarch64", CALLS)
    for call, number in CALLS.items():
        found = answer(program, TOKEN, number, [value | high << 32 for value in arguments])
        assert found == judged(rules, call, arguments)


def test_an_empty_table_allows_everything() -> None:
    program = assemble((), "aarch64", CALLS)
    assert {answer(program, TOKEN, number) for number in range(500)} == {ALLOW}


def test_the_first_rule_that_holds_decides() -> None:
    rules = (
        Rule(calls=("call1",), reason="first", error="EACCES", matches=(is_among(0, 1),)),
        Rule(calls=("call1",), reason="second", error="ENOSYS", matches=(is_other_than(0, 2),)),
        Rule(calls=("call1",), reason="third"),
    )
    program = assemble(rules, "aarch64", CALLS)
    assert [answer(program, TOKEN, 1, (value,)) for value in (1, 2, 3)] == [refusal(name) for name in ("EACCES", "EPERM", "ENOSYS")]


def test_a_call_that_the_machine_has_not_is_left_out() -> None:
    rule = Rule(calls=("call1", "elsewhere"), reason="example")
    assert assemble((rule,), "aarch64", CALLS) == assemble((Rule(calls=("call1",), reason="example"),), "aarch64", CALLS)


def test_a_rule_too_long_for_a_jump_does_not_assemble() -> None:
    """It would have to jump further than 255: better none than one that lands elsewhere."""
    rule = Rule(calls=("call1",), reason="example", matches=(is_other_than(0, *range(300)),))
    with pytest.raises(struct.error):
        assemble((rule,), "aarch64", CALLS)


@pytest.mark.parametrize("count", [1, 2, 3, 100, 400])
def test_many_calls_are_told_apart_in_few_steps(count: int) -> None:
    calls = {f"call{number}": number for number in range(0, 2 * count, 2)}
    program = assemble([Rule(calls=(call,), reason="example") for call in calls], "aarch64", calls)
    for number in range(2 * count):
        assert answer(program, TOKEN, number) == (ALLOW if number % 2 else refusal("EPERM"))
        assert sum(1 for _ in steps(program, number)) < 2 * count.bit_length() + 12


def steps(program: bytes, number: int) -> Iterator[int]:
    """The instructions that run for a call; only those that a tree of numbers is made of."""
    code = tuple(struct.iter_unpack("<HBBI", program))
    loaded, at = 0, 0
    for _ in itertools.count():
        operation, then, otherwise, value = code[at]
        yield at
        at += 1
        if operation == 0x06:
            return
        if operation == 0x20:
            loaded = (number, TOKEN)[value // 4]
        elif operation == 0x05:
            at += value
        else:
            at += then if {0x15: loaded == value, 0x35: loaded >= value, 0x25: loaded > value}[operation] else otherwise
