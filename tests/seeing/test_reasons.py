"""The known reasons why a backend does not run, from the facts of a machine."""

from __future__ import annotations

import pytest

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.seeing.reasons import INSTALL, INSTALL_FIREJAIL, Facts, why_no_bwrap, why_no_firejail, why_no_landlock

WORKS = Facts(program="/usr/bin/bwrap", entry="/opt/x/bin/agent-sandbox", version=(0, 8, 0))
FAILS = replace(WORKS, problem="No permissions to create a new namespace")
FIREJAIL = Facts(program="/usr/bin/firejail", version=(0, 9, 72), setuid=True)
CLONE, COUNT, NET = ("kernel.unprivileged_userns_clone", "user"), ("user.max_user_namespaces", "user"), ("user.max_net_namespaces", "network")


def whats(facts: Facts) -> list[str]:
    return [reason.what for reason in why_no_bwrap(facts)]


def test_where_it_runs_there_is_no_reason() -> None:
    assert why_no_bwrap(WORKS) == ()
    assert why_no_bwrap(replace(WORKS, setuid=True, apparmor="1", filtered=True, container=True, switches=(COUNT,), version=(0, 3))) == ()
    assert why_no_firejail(replace(FIREJAIL, setuid=False, mapped=True)) == ()


def test_a_missing_program_has_a_line_for_each_packager() -> None:
    [reason] = why_no_bwrap(Facts())
    assert reason.what == "bwrap is not installed"
    assert [word in " ".join(reason.fix) for word in ("apt", "dnf", "zypper", "brew")] == [True] * 4
    assert reason.advice == "apt install bubblewrap, or dnf install bubblewrap; `agent-sandbox doctor` says more"
    [reason] = why_no_firejail(Facts())
    assert (reason.what, reason.fix) == ("firejail is not installed", INSTALL_FIREJAIL)


@pytest.mark.parametrize(("version", "old"), [((0, 4, 1), True), ((0, 3), True), ((0, 5, 0), False), ((0, 11), False), ((1, 0), False)])
def test_a_version_before_0_5_that_does_not_run_is_too_old(version: tuple[int, ...], old: bool) -> None:
    found = why_no_bwrap(replace(FAILS, version=version))
    assert [reason.fix == INSTALL for reason in found] == [old]
    assert not old or ".".join(map(str, version)) in found[0].what


@pytest.mark.parametrize("said", ["Unknown option --perms", "bwrap: unknown option --x"])
def test_an_option_that_it_does_not_know_means_too_old_whatever_the_version(said: str) -> None:
    assert whats(replace(WORKS, problem=said)) == ["bwrap 0.8.0 is too old: 0.5 or later is needed"]


@pytest.mark.parametrize(
    ("facts", "words", "fix"),
    [
        (replace(FAILS, switches=(CLONE,)), "kernel.unprivileged_userns_clone = 0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        (replace(FAILS, switches=(COUNT,)), "user.max_user_namespaces = 0", "sysctl -w user.max_user_namespaces=15000"),
        (replace(FAILS, switches=(NET,)), "network namespaces are switched off", "sysctl -w user.max_net_namespaces=15000"),
        (replace(FAILS, apparmor="1"), "AppArmor", 'profile agent-sandbox "/opt/x/bin/agent-sandbox" flags=(unconfined) { userns, }'),
        (replace(FAILS, container=True, filtered=True), "this container", "seccomp=unconfined"),
        (replace(FAILS, filtered=True), "a system-call filter on this session", "start outside it"),
        (replace(FAILS, setuid=True), "setuid root", "chmod u-s /usr/bin/bwrap"),
        (FAILS, "No permissions to create a new namespace", "admin"),
        (replace(FAILS, problem="execvp /bin/true: Input/output error", container=True), "Input/output error", "admin"),
    ],
    ids=["sysctl clone", "sysctl count", "sysctl net", "AppArmor", "container", "filter", "setuid", "unknown", "something else in a container"],
)
def test_each_known_reason_has_its_fix(facts: Facts, words: str, fix: str) -> None:
    [reason] = why_no_bwrap(facts)
    assert words in reason.what
    assert fix in "\n".join(reason.fix)
    assert "\n" not in reason.advice


def test_a_switch_that_is_off_is_named_before_a_container() -> None:
    assert ["max_user_namespaces" in what for what in whats(replace(FAILS, switches=(COUNT,), container=True))] == [True]


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"setuid": False}, "/usr/bin/firejail is not setuid root"),
        ({"mapped": True}, "firejail does not work inside a user namespace, and this session is in one (a container, or a jail)"),
        ({"no_new_privileges": True}, "firejail must become root, and this session may gain no privileges (no_new_privs)"),
        ({"version": (0, 9, 62)}, "firejail 0.9.62 is too old: 0.9.72 or later is needed"),
        ({}, "firejail does not run: Error: it failed"),
    ],
)
def test_firejail_has_reasons_of_its_own(changes: dict[str, object], what: str) -> None:
    [reason] = why_no_firejail(replace(FIREJAIL, problem="Error: it failed", **changes))
    assert reason.what == what


def test_a_kernel_without_landlock_is_named() -> None:
    [reason] = why_no_landlock()
    assert "5.13" in reason.advice
