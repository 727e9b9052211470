"""What a higher rank denies cannot be granted, by any spelling; by example, with what the attempt is told."""

from __future__ import annotations

import pytest

from agent_sandbox.config.settings import Entry, Rank
from tests.unit.config.cases import HOME, Case, Said
from tests.unit.config.examples import ADMIN, LINE, USER, clamp, own


@pytest.mark.parametrize(
    ("denied", "wanted", "kept"),
    [
        ("/a", "/a", False),
        ("/a", "/a/b", False),
        ("/a", "/ab", True),
        ("/a/b", "/a", True),
        ("/a", "//a/./b/", False),
    ],
)
def test_what_an_admin_denies_cannot_be_made_writable(denied: str, wanted: str, kept: bool) -> None:
    settings = Case(
        admin=({"filesystem.deny_writable": [denied]},), command_line={"filesystem.writable": [wanted]}
    ).settle()
    assert (settings.entries("filesystem.writable")[-1].layer == LINE) is kept
    path = "/" + "/".join(part for part in wanted.split("/") if part not in ("", "."))
    why = f"filesystem.deny_writable holds {denied} ({ADMIN})"
    assert settings.clamps == (() if kept else (clamp(LINE, "filesystem.writable", path, "", why),))


@pytest.mark.parametrize(
    ("block", "allow", "kept"),
    [
        ("AWS_*", "AWS_PROFILE", False),
        ("AWS_PROFILE", "AWS_PROFILE", False),
        ("AWS_?", "AWS_PROFILE", True),
        ("aws_*", "AWS_PROFILE", True),
        ("aws_*/i", "AWS_PROFILE", False),
        ("*_KEY", "my_key/i", True),
        ("*_KEY", "MY_KEY/i", False),
        ("AWS_*", "AWS_*", False),
        ("AWS_*", "*", True),
    ],
)
def test_a_persons_allow_does_not_beat_an_admins_block(block: str, allow: str, kept: bool) -> None:
    settings = Case(admin=({"environment.block": [block]},), person=({"environment.allow": [allow]},)).settle()
    assert (settings.names("environment.allow") == (allow,)) is kept
    assert len(settings.clamps) == (0 if kept else 1)


def test_a_wide_entry_is_denied_thing_by_thing() -> None:
    settings = Case(admin=({"environment.block": ["AWS_*"]},), person=({"environment.allow": ["*"]},)).settle()
    (entry,) = settings.entries("environment.allow")
    denied = settings.denied_by("environment.allow", "AWS_PROFILE", entry.rank)
    assert denied == Entry(value="AWS_*", rank=Rank.ADMIN, layer=ADMIN, key="environment.block")
    assert settings.denied_by("environment.allow", "GITHUB_TOKEN", entry.rank) is None  # a shipped pattern


def test_a_persons_own_allow_beats_their_own_block_and_the_shipped_one() -> None:
    settings = Case(person=({"environment.block": ["A"], "environment.allow": ["A", "GITHUB_TOKEN"]},)).settle()
    assert (settings.names("environment.allow"), settings.clamps) == (("A", "GITHUB_TOKEN"), ())


def test_an_admins_denial_counts_against_the_admin_too() -> None:
    settings = Case(admin=({"filesystem.writable": ["/a"]}, {"filesystem.deny_writable": ["/a"]})).settle()
    assert own(settings, "filesystem.writable") == []
    why = "filesystem.deny_writable holds /a (/admin/1)"
    assert settings.clamps == (clamp(ADMIN, "filesystem.writable", "/a", "", why),)


def test_a_shipped_entry_that_is_denied_goes_without_a_word() -> None:
    settings = Case(admin=({"filesystem.deny_writable": [f"{HOME}/.cache"]},)).settle()
    assert (settings.names("filesystem.writable"), settings.clamps) == ((), ())


def test_what_a_person_hides_goes_from_the_shipped_grants() -> None:
    settings = Case(person=({"filesystem.hidden": [f"{HOME}/.vimrc"]},)).settle()
    assert f"{HOME}/.vimrc" not in settings.names("filesystem.readonly")


def test_only_an_admin_passes_a_dangerous_device_through() -> None:
    person = Case(person=({"filesystem.devices": ["/dev/fuse"]},)).settle()
    assert "/dev/fuse" not in person.names("filesystem.devices")
    why = "filesystem.deny_devices holds /dev/fuse (default)"
    assert person.clamps == (clamp(USER, "filesystem.devices", "/dev/fuse", "", why),)
    admin = Case(admin=({"filesystem.devices": ["/dev/fuse"]},)).settle()
    assert ("/dev/fuse", admin.clamps) == (admin.names("filesystem.devices")[-1], ())
    assert "/dev/mem" in admin.names("filesystem.deny_devices")


def test_a_plain_path_with_signs_of_a_pattern_is_taken_literally() -> None:
    settings = Case(
        admin=({"filesystem.deny_writable": ["/a/*"]},), person=({"filesystem.writable": ["/a/b", "/a/*/c"]},)
    ).settle()
    assert [value for value, _, _ in own(settings, "filesystem.writable")] == ["/a/b"]


def test_reveal_takes_an_entry_off_the_shipped_list() -> None:
    settings = Case(person=({"filesystem.reveal": [f"{HOME}/.aws"]},)).settle()
    assert f"{HOME}/.aws" not in settings.names("filesystem.hidden")
    assert f"{HOME}/.ssh" in settings.names("filesystem.hidden")


@pytest.mark.parametrize("admin", [{"filesystem.hidden": [f"{HOME}/.aws"]}, {"filesystem.hidden": [f"{HOME}/.a*"]}])
def test_what_an_admin_hides_cannot_be_revealed(admin: dict[str, object]) -> None:
    settings = Case(admin=(admin,), person=({"filesystem.reveal": [f"{HOME}/.aws", f"{HOME}/.aws/x"]},)).settle()
    assert f"{HOME}/.aws" in settings.names("filesystem.hidden")
    assert [c.wanted for c in settings.clamps] == [f"{HOME}/.aws", f"{HOME}/.aws/x"]


def test_what_a_repository_hides_stays_hidden() -> None:
    settings = Case(
        person=({"filesystem.reveal": [f"{HOME}/.aws"]},), repository={"filesystem.hidden": [f"{HOME}/.aws"]}
    ).settle()
    assert f"{HOME}/.aws" in settings.names("filesystem.hidden")


def test_a_required_property_can_be_done_without_unless_the_admin_requires_it() -> None:
    gaps: Said = {"sandbox.accept_gaps": ["network", "slurm"]}
    assert Case(person=(gaps,)).settle().names("sandbox.accept_gaps") == ("network", "slurm")
    settings = Case(admin=({"sandbox.require": ["network"]},), person=(gaps,)).settle()
    assert settings.names("sandbox.accept_gaps") == ("slurm",)


def test_variables_are_set_name_by_name_and_the_higher_rank_keeps_its_own() -> None:
    settings = Case(
        admin=({"environment.set": {"A": "admin"}},),
        person=({"environment.set": {"A": "mine", "B": "1"}}, {"environment.set": {"B": "2"}}),
        command_line={"environment.set": {"C": "x=y"}},
    ).settle()
    assert settings.table("environment.set") == {"A": "admin", "B": "2", "C": "x=y"}
    assert settings.clamps == (clamp(USER, "environment.set", "A", "", "a higher rank sets it"),)


def test_a_variable_that_the_admin_blocks_cannot_be_set() -> None:
    settings = Case(admin=({"environment.block": ["LD_*"]},), person=({"environment.set": {"LD_PRELOAD": "s3cret"}},))
    assert settings.settle().table("environment.set") == {}
    (told,) = settings.settle().clamps
    assert told.line() == (
        f"{USER}: environment.set: LD_PRELOAD is not allowed, left out: environment.block holds LD_* ({ADMIN})"
    )
