"""The law of the ranks over generated layers for every key; and its check goes red for each rule that is broken."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_sandbox.config import rules
from agent_sandbox.config.keys import KEYS, Key
from agent_sandbox.config.merge import Merge
from agent_sandbox.config.record import replace
from agent_sandbox.config.rules import RULES
from agent_sandbox.config.settings import Rank, Value
from tests.unit.config import oracle
from tests.unit.config.cases import Case, Said, cases, keys_of, values
from tests.unit.config.oracle import Held, held, is_weaker_than_admin, is_wider, last_law

EXAMPLES = 2000 if os.environ.get("SANDBOX_SOAK") else 120
ALL_RULES = tuple(RULES)
TOO = [HealthCheck.too_slow, HealthCheck.filter_too_much]
QUICK = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=TOO)


def admin_holds(case: Case) -> None:
    assert not is_weaker_than_admin(case.settle(), case)


def repository_widens_nothing(case: Case) -> None:
    assert not is_wider(case.settle(), case.without_repository().settle())


def hardening_widens_nothing(case: Case, data: st.DataObject) -> None:
    assert not is_wider(case.with_admin_file(data.draw(hardenings(case))).settle(), case.settle())


@st.composite
def hardenings(draw: st.DrawFn, case: Case) -> Said:
    """A further admin file that denies, caps or hardens what the admin's files and the defaults come to."""
    alone = case.admin_alone().settle()
    names = {name for layer in (*case.admin, *case.person, case.repository, case.command_line) for name in layer}
    said: Said = {}
    for key in (KEYS[name] for name in sorted(names)):
        if key.rule in ("union", "strictest", "least", "narrow") or key.name in oracle.DENYING:
            said[key.name] = draw(values(key).filter(partial(is_harder, key, held(alone, key))))
    return said


def is_harder(key: Key, standing: Held, value: Held) -> bool:
    if key.rule == "strictest":
        return oracle.stricter(key, value, standing)
    if key.rule == "least":
        return bool(oracle.amount(value) <= standing)
    return key.rule != "narrow" or oracle.spans_no_more(key, set(value), standing)


def law_over(names: tuple[str, ...], options: settings) -> Callable[[], None]:
    @options
    @given(cases(names), st.data())
    def law(case: Case, data: st.DataObject) -> None:
        admin_holds(case)
        repository_widens_nothing(case)
        hardening_widens_nothing(case, data)

    return law


def see_the_law_broken(names: tuple[str, ...]) -> None:
    """The same cases each time: whether a broken rule is noticed is no matter of luck."""
    options = settings(QUICK, max_examples=2000, derandomize=True, phases=(Phase.generate,))
    with pytest.raises(AssertionError):
        law_over(names, options)()


@pytest.mark.parametrize("rule", ALL_RULES)
def test_no_layers_make_a_key_of_this_rule_weaker_than_the_admin_wants(rule: str) -> None:
    law_over(keys_of(rule), QUICK)()


@pytest.mark.parametrize("rule", ALL_RULES)
def test_every_rule_has_keys(rule: str) -> None:
    assert any(key.rule == rule for key in KEYS.values())


def looser_wins(key: Key, value: Value, by: Value) -> Value:
    return by if rules.take_stricter(key, value, by) is value else value


def larger_wins(key: Key, value: Value, by: Value) -> Value:
    return by if rules.take_less(key, value, by) is value else value


def later_wins(key: Key, held: Value, said: Value) -> Value:
    low = replace(held, entries=tuple(replace(entry, rank=Rank.DEFAULT) for entry in held.entries))
    return rules.add_up(key, low, said)


def keep_held(key: Key, held: Value, said: Value) -> Value:
    return held


BROKEN: dict[str, tuple[str, dict[str, object]]] = {
    "union: the lower rank's list replaces": ("union", {"join": rules.take_said, "bound": rules.keep_value}),
    "strictest: the lower rank wins": ("strictest", {"bound": rules.keep_value}),
    "strictest: the looser wins": ("strictest", {"bound": looser_wins}),
    "narrow: the lower rank wins": ("narrow", {"bound": rules.keep_value}),
    "narrow: lists add up": ("narrow", {"bound": rules.add_up}),
    "vetoed: nothing is denied": ("vetoed", {"bound": rules.keep_value}),
    "vetoed: a lower rank's entry replaces": ("vetoed", {"join": later_wins}),
    "vetoed: the repository may speak": ("vetoed", {"ranks": rules.ALL}),
    "least: the lower rank wins": ("least", {"bound": rules.keep_value}),
    "least: the larger wins": ("least", {"bound": larger_wins}),
    "added: a lower rank's entry replaces": ("added", {"join": later_wins}),
    "added: the lower rank's list replaces": ("added", {"join": rules.take_said}),
    "added: the repository may speak": ("added", {"ranks": rules.ALL}),
    "admin: everybody may speak": ("admin", {"ranks": rules.ALL}),
    "last: the repository may speak": ("last", {"ranks": rules.ALL}),
    "last: the higher rank wins": ("last", {"join": keep_held}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_law_goes_red_when_a_rule_is_broken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, changes = BROKEN[name]
    monkeypatch.setitem(RULES, rule, replace(RULES[rule], **changes))
    see_the_law_broken(("environment.set",) if name == "vetoed: a lower rank's entry replaces" else keys_of(rule))


@pytest.mark.parametrize(
    ("part", "instead", "rule"),
    [
        ("_bounds", lambda *_: (), "strictest"),
        ("_bounds", lambda *_: (), "least"),
        ("_bounds", lambda *_: (), "narrow"),
        ("_refusal", lambda *_: "", "last"),
        ("_refusal", lambda *_: "", "admin"),
        ("_veto", lambda *_: None, "vetoed"),
    ],
)
def test_the_law_goes_red_when_enforcement_is_left_out(
    part: str, instead: object, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Merge, part, instead)
    see_the_law_broken(keys_of(rule))


def test_every_rule_is_broken_once() -> None:
    assert {rule for rule, _ in BROKEN.values()} == set(ALL_RULES)


@QUICK
@given(cases())
def test_keys_of_all_rules_together_obey_the_law(case: Case) -> None:
    admin_holds(case)
    repository_widens_nothing(case)


LOOSE = [key for key in KEYS.values() if key.rule in ("strictest", "least", "narrow", "last")]


@QUICK
@given(st.sampled_from(LOOSE).flatmap(lambda key: st.tuples(st.just(key), values(key), values(key))))
def test_a_person_may_loosen_their_own_file_on_the_command_line(pair: tuple[Key, object, object]) -> None:
    key, first, second = pair
    case = Case(person=({key.name: first},), command_line={key.name: second})
    alone = Case(command_line={key.name: second})
    if key.rule == "last":
        assert last_law(key, [], case.settle(), case)
    else:
        assert held(case.settle(), key) == held(alone.settle(), key)
    if not key.at_most and first not in key.admin_values and second not in key.admin_values:
        assert case.settle().clamps == ()
