"""The known reasons why bwrap does not run, from the facts of a machine."""

from __future__ import annotations

import pytest

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.seeing.reasons import INSTALL, Facts, find_reasons

WORKS = Facts(bwrap="/usr/bin/bwrap", entry="/opt/x/bin/agent-sandbox", version=(0, 8, 0), runs=True, userns_clone="1", most_namespaces="9")
FAILS = replace(WORKS, runs=False, error="No permissions to create a new namespace")


def whats(facts: Facts) -> list[str]:
    return [reason.what for reason in find_reasons(facts)]


def test_where_it_runs_there_is_no_reason() -> None:
    assert find_reasons(WORKS) == ()
    assert find_reasons(replace(WORKS, setuid=True, apparmor="1", filtered=True, container=True)) == ()


def test_a_missing_program_has_a_line_for_each_packager() -> None:
    [reason] = find_reasons(Facts())
    assert reason.what == "bwrap is not installed"
    assert [word in " ".join(reason.fix) for word in ("apt", "dnf", "zypper", "brew")] == [True] * 4


@pytest.mark.parametrize(("version", "old"), [((0, 4, 1), True), ((0, 3), True), ((0, 5, 0), False), ((0, 11), False), ((1, 0), False)])
def test_a_version_before_0_5_is_too_old(version: tuple[int, ...], old: bool) -> None:
    found = find_reasons(replace(WORKS, version=version))
    assert [reason.fix for reason in found] == ([INSTALL] if old else [])
    assert not old or ".".join(map(str, version)) in found[0].what


@pytest.mark.parametrize(
    ("facts", "words", "fix"),
    [
        (replace(FAILS, userns_clone="0"), "kernel.unprivileged_userns_clone = 0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        (replace(FAILS, most_namespaces="0"), "user.max_user_namespaces = 0", "sysctl -w user.max_user_namespaces=15000"),
        (replace(FAILS, apparmor="1"), "AppArmor", 'profile agent-sandbox "/opt/x/bin/agent-sandbox" flags=(unconfined) { userns, }'),
        (replace(FAILS, container=True, filtered=True), "this container", "seccomp=unconfined"),
        (replace(FAILS, filtered=True), "a system-call filter on this session", "start outside it"),
        (replace(FAILS, setuid=True), "setuid root", "chmod u-s /usr/bin/bwrap"),
        (FAILS, "No permissions to create a new namespace", "admin"),
    ],
    ids=["sysctl clone", "sysctl count", "AppArmor", "container", "filter", "setuid", "unknown"],
)
def test_each_known_reason_has_its_fix(facts: Facts, words: str, fix: str) -> None:
    [reason] = find_reasons(facts)
    assert words in reason.what
    assert fix in "\n".join(reason.fix)


def test_a_switch_that_is_off_is_named_before_a_container() -> None:
    assert ["max_user_namespaces" in what for what in whats(replace(FAILS, most_namespaces="0", container=True))] == [True]
