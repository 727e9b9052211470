"""`agent-sandbox network log` outside: which session it speaks of, and what it says where there is nothing."""

from __future__ import annotations

import json

from tests.machines.jail import Jail


def test_nothing_to_show_is_said_with_the_session_and_the_way_to_another(jail: Jail) -> None:
    assert "the audit log is empty" in jail.ask("network", "log").out
    assert jail.run("true").code == 0
    session = json.loads(jail.ask("audit", "show", "--json", "-n", "1").out)["session"]
    said = jail.ask("network", "log")
    assert (said.code, said.out.startswith(f"session {session}, the latest here, asked for nothing on the network")) == (0, True)
    assert jail.ask("network", "log", "--session", session).out.startswith(f"session {session} asked for nothing")


def test_a_session_that_is_not_known_and_a_count_that_is_none_are_named(jail: Jail) -> None:
    assert jail.run("true").code == 0
    unknown = jail.ask("network", "log", "--session", "nope")
    assert (unknown.code, "knows no session nope" in unknown.err, "audit show" in unknown.err) == (125, True, True)
    wrong = jail.ask("network", "log", "-n", "x")
    assert (wrong.code, wrong.err.splitlines()[0]) == (125, "agent-sandbox: -n x: not a number")
