"""The decision table holds, whole; and docs/network.md shows it as it is."""

from __future__ import annotations

import pytest

from agent_sandbox.config.record import replace
from tests.unit.launcher.network import page
from tests.unit.launcher.network.table import Decisions, answer, read_table

CASES = read_table()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_each_question_gets_the_answer_of_the_table(case: Decisions) -> None:
    rules = case.rules()
    assert [(row.question, answer(rules, row.question)) for row in case.rows] == [(row.question, row.answer) for row in case.rows]


def test_the_table_is_long_enough_to_mean_something() -> None:
    rows = [row for case in CASES for row in case.rows]
    assert len(rows) >= 150
    assert {row.answer[0] for row in rows} == {"+", "-"}
    assert all(len({row.question for row in case.rows}) == len(case.rows) for case in CASES)


def test_the_page_shows_the_table_as_it_is() -> None:
    assert page.written() == page.tables(CASES), "`make docs` writes it"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.says)
def test_the_order_of_entries_decides_nothing(case: Decisions) -> None:
    rules = case.rules()
    turned = replace(rules, lists=rules.lists[::-1])
    assert [answer(turned, row.question)[0] for row in case.rows] == [row.answer[0] for row in case.rows]
