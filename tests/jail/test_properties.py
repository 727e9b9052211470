"""What a jail is, for every backend: each fact of the table holds, or the backend says by itself that it does not."""

from __future__ import annotations

import fcntl
import os

import pytest

from agent_sandbox.launcher.policy import Property
from agent_sandbox.launcher.syscalls import landlock_abi
from tests.jail import page
from tests.jail.properties import FACTS, Fact
from tests.jail.seen import BACKENDS, HOLDS, OPEN, Seen, from_text, look, to_text
from tests.machines.needs import need, need_root

EXPECTED_ABI = 6  # of Landlock: what the table expects is what such a kernel gives, or a newer one


@pytest.fixture(scope="session", params=BACKENDS)
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Looked at once in a run: the workers of one share what the first of them saw."""
    need_root()
    for tool in ("git", "script", *((request.param,) if request.param != "landlock" else ())):
        need(tool)
    base = tmp_path_factory.getbasetemp()
    kept = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / f"seen-{request.param}"
    with kept.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        if not text:
            text = to_text(look(request.param))
            file.write(text)
    return from_text(request.param, text)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name().replace("…", "..."))
def test_the_fact_holds_or_the_backend_names_it(seen: Seen, fact: Fact) -> None:
    answer = seen.answers[fact]
    assert seen.ran(fact), answer
    assert seen.control_works(fact), answer
    assert seen.verdict(fact) != OPEN, f"it does not hold, and no gap in {fact.property} is named: {answer}"
    if landlock_abi() >= EXPECTED_ABI:
        assert (seen.verdict(fact) == HOLDS) == (seen.backend not in fact.lacking), answer


def test_every_gap_is_one_that_a_fact_shows(seen: Seen) -> None:
    """A weakness that nobody can see is said to frighten."""
    named = {property for gaps in seen.gaps.values() for property in gaps}
    shown = {fact.property for fact in FACTS if not seen.is_held(fact)}
    assert named == shown


def test_every_property_has_facts() -> None:
    assert {fact.property for fact in FACTS} == set(Property)


def test_the_page_says_what_this_run_saw(seen: Seen) -> None:
    """`make docs` writes it anew."""
    if landlock_abi() >= EXPECTED_ABI:
        assert page.column_of(seen.backend) == page.column(seen)
