"""How ranks combine what adds up, hardens or narrows, by example: what holds, and what every refused attempt is told."""

from __future__ import annotations

import pytest

from agent_sandbox.config.settings import Entry, Rank
from tests.unit.config.cases import HOME, Case
from tests.unit.config.examples import ADMIN, HARDEN, LINE, REPOSITORY, USER, clamp, own

# strictest


def test_a_person_may_harden_what_the_admin_set_and_not_weaken_it() -> None:
    case = Case(admin=({"network.mode": "filtered"},), person=({"network.mode": "open"},))
    assert case.settle().text("network.mode") == "filtered"
    assert case.settle().clamps == (clamp(USER, "network.mode", "open", "filtered", f"{ADMIN} sets it"),)
    harder = Case(admin=({"network.mode": "filtered"},), person=({"network.mode": "isolated"},)).settle()
    assert (harder.text("network.mode"), harder.clamps) == ("isolated", ())


def test_a_person_is_free_where_the_admin_is_silent() -> None:
    settings = Case(person=({"network.mode": "open", "filesystem.private_tmp": False},)).settle()
    assert (settings.text("network.mode"), settings.flag("filesystem.private_tmp")) == ("open", False)
    assert settings.clamps == ()


def test_the_value_is_put_back_to_what_is_allowed_not_to_what_the_person_said_before() -> None:
    case = Case(
        admin=({"network.mode": "filtered"},), person=({"network.mode": "isolated"},),
        command_line={"network.mode": "open"},
    )  # fmt: skip
    assert case.settle().text("network.mode") == "filtered"
    assert case.settle().clamps == (clamp(LINE, "network.mode", "open", "filtered", f"{ADMIN} sets it"),)


@pytest.mark.parametrize(
    ("key", "value", "kept"), [("network.fallback", "weaker", "stricter"), ("seccomp.mode", "off", "hpc")]
)
def test_some_choices_are_for_admins_only(key: str, value: str, kept: str) -> None:
    settings = Case(person=({key: value},)).settle()
    assert settings.text(key) == kept
    assert settings.clamps == (clamp(USER, key, value, kept, "only an admin may choose that"),)
    assert Case(admin=({key: value},)).settle().text(key) == value
    assert Case(admin=({key: value},), person=({key: value},)).settle().clamps == ()
    assert Case(defaults={key: value}).settle().text(key) == value
    assert Case(defaults={key: value}, command_line={key: value}).settle().clamps == ()


def test_a_repository_may_harden_and_the_command_line_may_undo_it() -> None:
    case = Case(person=({"network.mode": "filtered"},), repository={"network.mode": "isolated"})
    assert (case.settle().text("network.mode"), case.settle().origin("network.mode")) == ("isolated", REPOSITORY)
    undone = Case(repository={"network.mode": "isolated"}, command_line={"network.mode": "filtered"}).settle()
    assert (undone.text("network.mode"), undone.clamps) == ("filtered", ())


@pytest.mark.parametrize("person", [{}, {"network.mode": "proxied"}])
def test_a_repository_may_not_loosen_what_a_person_or_the_default_says(person: dict[str, object]) -> None:
    kept = str(person.get("network.mode", "filtered"))
    settings = Case(person=(person,), repository={"network.mode": "open"}).settle()
    assert settings.text("network.mode") == kept
    assert settings.clamps == (clamp(REPOSITORY, "network.mode", "open", kept, HARDEN),)


def test_jobs_have_no_more_network_than_the_session() -> None:
    settings = Case(person=({"slurm.network": "open"},)).settle()
    assert settings.text("slurm.network") == "filtered"
    assert settings.clamps == (clamp(USER, "slurm.network", "open", "filtered", "network.mode is filtered"),)
    assert Case(person=({"slurm.network": "isolated"},)).settle().text("slurm.network") == "isolated"
    assert Case().settle().text("slurm.network") == ""


# least


def test_the_smaller_number_counts() -> None:
    settings = Case(admin=({"limits.memory": "4G"},), person=({"limits.memory": "8G"},)).settle()
    assert settings.number("limits.memory") == 4 << 30
    assert settings.clamps == (clamp(USER, "limits.memory", "8G", "4G", f"{ADMIN} sets it"),)
    less = Case(admin=({"limits.memory": "4G"},), person=({"limits.memory": "1G"},)).settle()
    assert (less.number("limits.memory"), less.clamps) == (1 << 30, ())


def test_unlimited_is_no_way_around_a_cap() -> None:
    settings = Case(admin=({"limits.wall_time": "2h"},), command_line={"limits.wall_time": "unlimited"}).settle()
    assert settings.number("limits.wall_time") == 7200
    assert settings.clamps == (clamp(LINE, "limits.wall_time", "unlimited", "2h", f"{ADMIN} sets it"),)


def test_a_person_may_raise_a_default_and_a_repository_may_not() -> None:
    assert Case().settle().number("limits.core_size") == 0
    assert Case(person=({"limits.core_size": "unlimited"},)).settle().number("limits.core_size") is None
    settings = Case(repository={"limits.core_size": "1G"}).settle()
    assert settings.number("limits.core_size") == 0
    assert settings.clamps == (clamp(REPOSITORY, "limits.core_size", "1G", "0", HARDEN),)


def test_a_repository_may_set_a_limit_where_there_is_none() -> None:
    settings = Case(repository={"limits.processes": 100}).settle()
    assert (settings.number("limits.processes"), settings.clamps) == (100, ())


# union


def test_lists_add_up_in_order_without_doubles_and_the_shipped_list_stays() -> None:
    settings = Case(
        admin=({"agents.deny": ["a"]}, {"agents.deny": ["b", "a"]}), person=({"agents.deny": ["c", "b"]},),
        repository={"agents.deny": ["d"]},
    ).settle()  # fmt: skip
    assert settings.names("agents.deny") == ("a", "b", "c", "d")
    assert own(settings, "agents.deny") == [
        ("a", Rank.ADMIN, "/admin/1"), ("b", Rank.ADMIN, "/admin/1"), ("c", Rank.PERSON, USER),
        ("d", Rank.REPOSITORY, REPOSITORY),
    ]  # fmt: skip
    hidden = Case(person=({"filesystem.hidden": ["mine"]},)).settle().names("filesystem.hidden")
    assert {f"{HOME}/.ssh", "/base/mine"} <= set(hidden)


def test_of_two_alike_the_higher_rank_stays() -> None:
    settings = Case(admin=({"filesystem.hidden": [f"{HOME}/.ssh"]},), person=({"filesystem.hidden": [f"{HOME}/.ssh"]},))
    ssh = [entry for entry in settings.settle().entries("filesystem.hidden") if entry.value == f"{HOME}/.ssh"]
    assert ssh == [Entry(value=f"{HOME}/.ssh", rank=Rank.ADMIN, layer=ADMIN, key="filesystem.hidden")]


# narrow


@pytest.mark.parametrize(
    ("admin", "person", "held"),
    [
        (["/a"], ["/a/b", "/a/c"], ["/a/b", "/a/c"]),
        (["/a", "/c"], ["/"], ["/a", "/c"]),
        (["/a/b"], ["/a"], ["/a/b"]),
        (["/foo"], ["/foobar"], []),
        (["/foo"], ["/foo/bar", "/foobar"], ["/foo/bar"]),
        (["/a"], [], []),
        ([], ["/a"], []),
        (["/a", "/a/b"], ["/a"], ["/a"]),
    ],
)
def test_project_parents_are_the_deeper_of_each_nested_pair(
    admin: list[str], person: list[str], held: list[str]
) -> None:
    settings = Case(admin=({"project.parents": admin},), person=({"project.parents": person},)).settle()
    assert sorted(settings.names("project.parents")) == held
    assert settings.is_set("project.parents")
    assert bool(settings.clamps) is (sorted(person) != held)


def test_unset_parents_are_no_empty_list() -> None:
    assert not Case().settle().is_set("project.parents")
    empty = Case(person=({"project.parents": []},)).settle()
    assert (empty.names("project.parents"), empty.is_set("project.parents")) == ((), True)


def test_the_later_list_of_a_rank_replaces_the_earlier() -> None:
    settings = Case(admin=({"project.parents": ["/a", "/b"]}, {"project.parents": ["/c"]})).settle()
    assert settings.names("project.parents") == ("/c",)


def test_a_repository_narrows_and_the_command_line_undoes_it() -> None:
    case = Case(person=({"project.parents": ["/a"]},), repository={"project.parents": ["/a/b", "/c"]})
    assert case.settle().names("project.parents") == ("/a/b",)
    assert case.settle().clamps == (clamp(REPOSITORY, "project.parents", "/a/b, /c", "/a/b", HARDEN),)
    undone = Case(repository={"project.parents": []}, command_line={"project.parents": ["/c"]}).settle()
    assert (undone.names("project.parents"), undone.clamps) == (("/c",), ())
