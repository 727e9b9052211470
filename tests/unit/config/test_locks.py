"""Who may speak at all: keys for admins, preferences, locks, [defaults], the repository; and parts not built yet."""

from __future__ import annotations

import pytest

from agent_sandbox.config.settings import Rank
from tests.unit.config.cases import HOME, Case, Said
from tests.unit.config.examples import ADMIN, REPOSITORY, USER, clamp, own


def test_only_the_admin_speaks_of_an_admin_key() -> None:
    settings = Case(person=({"slurm.partitions": ["gpu"], "slurm.prefix": "/mine"},)).settle()
    assert (settings.names("slurm.partitions"), settings.text("slurm.prefix")) == ((), "")
    assert settings.clamps == (
        clamp(USER, "slurm.partitions", "gpu", "", "only an admin may set it"),
        clamp(USER, "slurm.prefix", "/mine", "", "only an admin may set it"),
    )
    assert Case(admin=({"slurm.partitions": ["gpu"]},)).settle().names("slurm.partitions") == ("gpu",)


def test_the_lower_rank_wins_a_preference_unless_it_is_locked() -> None:
    case = Case(admin=({"sandbox.backend": "bwrap"},), person=({"sandbox.backend": "landlock"},))
    assert case.settle().text("sandbox.backend") == "landlock"
    locked = Case(admin=case.admin, person=case.person, locked=("sandbox.backend",)).settle()
    assert locked.text("sandbox.backend") == "bwrap"
    assert locked.clamps == (clamp(USER, "sandbox.backend", "landlock", "bwrap", f"{ADMIN} locks sandbox.backend"),)


@pytest.mark.parametrize(
    ("defaults", "admin", "held"),
    [
        ({}, {}, "auto"),
        ({"sandbox.backend": "firejail"}, {}, "firejail"),
        ({"sandbox.backend": "firejail"}, {"sandbox.backend": "bwrap"}, "bwrap"),
    ],
)
def test_a_locked_key_stays_at_the_admins_value_or_default(
    defaults: dict[str, object], admin: dict[str, object], held: str
) -> None:
    case = Case(
        defaults=defaults, admin=(admin,), locked=("sandbox.backend",), command_line={"sandbox.backend": "landlock"}
    )
    assert case.settle().text("sandbox.backend") == held


def test_a_lock_refuses_hardening_too() -> None:
    case = Case(
        locked=("network.mode", "filesystem.hidden", "project.parents"), repository={"network.mode": "isolated"},
        person=({"filesystem.hidden": ["/x"], "project.parents": []},),
    )  # fmt: skip
    settings = case.settle()
    assert settings.text("network.mode") == "filtered"
    assert settings.clamps == (
        clamp(USER, "filesystem.hidden", "/x", "", f"{ADMIN} locks filesystem.hidden"),
        clamp(USER, "project.parents", "none", "", f"{ADMIN} locks project.parents"),
        clamp(REPOSITORY, "network.mode", "isolated", "filtered", f"{ADMIN} locks network.mode"),
    )


def test_a_locked_list_of_hidden_paths_cannot_be_revealed() -> None:
    settings = Case(locked=("filesystem.hidden",), person=({"filesystem.reveal": [f"{HOME}/.aws"]},)).settle()
    assert f"{HOME}/.aws" in settings.names("filesystem.hidden")
    why = f"{ADMIN} locks filesystem.hidden"
    assert settings.clamps == (clamp(USER, "filesystem.reveal", f"{HOME}/.aws", "", why),)


def test_what_a_lock_refuses_and_holds_anyway_needs_no_word() -> None:
    assert Case(locked=("network.mode",), person=({"network.mode": "filtered"},)).settle().clamps == ()


def test_an_admins_defaults_are_for_everybody_to_change() -> None:
    defaults: Said = {"network.mode": "isolated", "limits.memory": "1G", "filesystem.hidden": ["/d"]}
    settings = Case(defaults=defaults, person=({"network.mode": "open", "limits.memory": "8G"},)).settle()
    assert (settings.text("network.mode"), settings.number("limits.memory"), settings.clamps) == ("open", 8 << 30, ())
    assert own(settings, "filesystem.hidden") == [("/d", Rank.DEFAULT, ADMIN)]
    kept = Case(defaults=defaults, repository={"network.mode": "open"}).settle()
    assert (kept.text("network.mode"), kept.is_set("network.mode")) == ("isolated", True)


@pytest.mark.parametrize(
    ("key", "value"),
    [("sandbox.quiet", True), ("filesystem.writable", ["/x"]), ("environment.set", {"A": "b"}), ("modules.load", ["m"])],
)
def test_a_repository_may_not_set_what_can_weaken(key: str, value: object) -> None:
    settings = Case(repository={key: value}).settle()
    assert settings.values == Case().settle().values
    assert [(told.layer, told.key, told.why) for told in settings.clamps] == [
        (REPOSITORY, key, "a project's own file may not set it")
    ]


def test_a_repository_cannot_flood_the_terminal() -> None:
    entries = [f"/x{number}" for number in range(5000)]
    (told,) = Case(repository={"filesystem.writable": entries}).settle().clamps
    assert told.wanted == "/x0, /x1, /x2, /x3, /x4 and 4995 more"


def test_a_clamp_is_one_line_that_no_terminal_acts_on() -> None:
    told = clamp("/x", "k", "\x1b[2Jä\udcff\u2028", "", "w")
    assert told.line() == "/x: k: \\x1b[2Jä\\udcff\\u2028 is not allowed, left out: w"


# what is not built yet


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ({"network.block": ["a"]}, False),
        ({"mail.stubs": "on"}, False),
        ({"slurm.max_nodes": 1}, False),
        ({"modules.load": ["gcc"]}, True),
    ],
)
def test_a_launch_learns_which_keys_ask_for_what_is_not_built(said: dict[str, object], asks: bool) -> None:
    assert Case(person=(said,)).settle().unready() == (tuple(said) if asks else ())
    assert Case().settle().unready() == ()
