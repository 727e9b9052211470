"""How ranks combine, by example: what holds, whose word it is, and what every refused attempt is told."""

from __future__ import annotations

import pytest

from agent_sandbox.config.settings import Clamp, Entry, Rank, Settings
from tests.unit.config.cases import HOME, Case, Said

ADMIN, USER, REPOSITORY, LINE = "/admin/0", "/user/0", "/project/file", "command line"
HARDEN = "a project's own file may only harden"


def clamp(layer: str, key: str, wanted: str, kept: str, why: str) -> Clamp:
    return Clamp(layer=layer, key=key, wanted=wanted, kept=kept, why=why)


def own(settings: Settings, key: str) -> list[tuple[str, Rank, str]]:
    """Entries that are not shipped."""
    return [(e.value, e.rank, e.layer) for e in settings.entries(key) if e.layer != "default"]


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


# vetoed


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


# admin, last, locked, defaults


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
        ({"network.block": ["a"]}, True),
        ({"network.block": []}, False),
        ({"network.default": "deny"}, True),
        ({"network.default": "allow"}, False),
        ({"network.presets": []}, True),
        ({"network.max_bytes": "1G"}, True),
        ({"network.max_bytes": "unlimited"}, False),
        ({"network.inject": [{"host": "h"}]}, True),
        ({"network.inject": []}, False),
        ({"mail.stubs": "on"}, True),
        ({"mail.stubs": "off"}, False),
        ({"slurm.enabled": "on"}, True),
        ({"slurm.enabled": "off"}, False),
        ({"slurm.max_nodes": 1}, False),
        ({"modules.load": ["gcc"]}, True),
        ({"sockets.allow": ["/run/x"]}, True),
    ],
)
def test_a_launch_learns_which_keys_ask_for_what_is_not_built(said: dict[str, object], asks: bool) -> None:
    assert Case(person=(said,)).settle().unready() == (tuple(said) if asks else ())
    assert Case().settle().unready() == ()
