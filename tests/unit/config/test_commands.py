"""`agent-sandbox config …`, as a person meets it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from agent_sandbox.config import commands
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.tables import layout
from tests.unit.config.conftest import World


def run(world: World, *args: str) -> int:
    return commands.run(args, world.where)


@pytest.fixture
def mine(world: World) -> World:
    """The commands write as whoever runs them: that is the person here."""
    here = world.at(uid=os.geteuid())
    os.chown(here.where.home, os.geteuid(), -1)
    return here


# show, keys, check


def test_show_prints_every_key_with_value_and_origin(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = world.user("network.mode = 'isolated'\nfilesystem.hidden = ['a']\n")
    assert run(world, "show") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {row[0] for row in rows if "." in row[0]} >= set(KEYS)
    assert ["network.mode", "isolated", f"{path}:1"] in rows
    assert [f"{world.where.home}/a", f"{path}:2"] in rows
    assert ["project.parents", "(unset)", "default"] in rows
    assert ["limits.core_size", "0", "default"] in rows


def test_show_names_clamps(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.user("seccomp.mode = 'off'\n")
    run(world, "show")
    assert capsys.readouterr().err == (
        f"{world.user_file}: seccomp.mode: off is not allowed, kept hpc: only an admin may choose that\n"
    )


def test_show_of_one_key_writes_the_shipped_entries_out(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run(world, "show", "filesystem.system")
    assert capsys.readouterr().out.splitlines()[1].split() == ["filesystem.system", "/usr", "default"]


def test_show_json_is_for_machines(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = world.user("network.mode = 'isolated'\nenvironment.set = { A = 'b' }\nseccomp.mode = 'off'\n")
    run(world, "show", "--json")
    data = json.loads(capsys.readouterr().out)
    assert data["settings"]["network.mode"] == {"value": "isolated", "origin": f"{path}:1", "set": True}
    assert data["settings"]["environment.set"] == {
        "value": {"A": "b"}, "origin": f"{path}:2", "set": True,
        "entries": [{"value": "A=b", "rank": "person", "origin": f"{path}:2"}],
    }  # fmt: skip
    assert data["settings"]["project.parents"] == {"value": None, "origin": "default", "set": False, "entries": []}
    assert list(data["settings"]) == list(KEYS)
    assert data["clamps"] == [
        {"layer": str(path), "key": "seccomp.mode", "wanted": "off", "kept": "hpc", "why": "only an admin may choose that"}
    ]
    assert data["layers"][1] == {"name": str(path), "rank": "person"}


def test_keys_lists_the_whole_table(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run(world, "keys")
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed[1:]] == list(KEYS)
    run(world, "keys", "--json")
    assert list(json.loads(capsys.readouterr().out)) == list(KEYS)


def test_check_names_the_files_that_were_understood(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    user, project = world.user(""), world.project("")
    assert run(world, "check") == 0
    assert capsys.readouterr().out == f"{user}: understood\n{project}: understood\n"


def test_check_names_a_file_once_that_has_defaults_too(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = world.admin("limits.wall_time = '24h'\n[defaults.network]\nmode = 'isolated'\n")
    assert run(world, "check") == 0
    assert capsys.readouterr().out == f"{path}: understood\n"


def test_check_says_so_where_there_is_no_file(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(world, "check") == 0
    assert capsys.readouterr().out == "there is no config file here: the shipped defaults hold\n"


def test_a_mistyped_word_gets_the_nearest_and_the_help_fits_a_terminal(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError) as caught:
        run(world, "sho")
    assert caught.value.hint.startswith("did you mean config show?")
    run(world, "--help")
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("draft.toml", "locked = ['network.mode']\n[match]\ngroup = 'x'\n", ""),
        ("draft.toml", "network.mod = 1\n", "draft.toml:1: network.mod is not a key"),
        (".agent-sandbox.toml", "locked = []\n", ".agent-sandbox.toml:1: locked is not a key"),
        (".config/agent-sandbox/config.toml", "locked = []\n", "config.toml:1: locked is not a key"),
        (".config/agent-sandbox/conf.d/a.toml", "[match]\nproject = '~/x'\n", ""),
        (".config/agent-sandbox/conf.d/a.toml", "[match]\nuser = 'x'\n", "a.toml:2: match.user is not known"),
    ],
)
def test_check_of_a_file_judges_it_by_its_place(
    world: World, name: str, text: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.own(Path(world.where.home) / name, text)
    here = world.at(cwd=world.where.home)
    if problem:
        with pytest.raises(UserError, match=problem.replace("[", r"\[")):
            run(here, "check", name)
    else:
        assert run(here, "check", f"./{name}") == 0
        assert capsys.readouterr().out == f"./{name}: understood\n"


def test_check_of_a_file_that_is_not_there_says_so(world: World) -> None:
    with pytest.raises(UserError, match="nowhere: does not exist"):
        run(world, "check", "nowhere")


# init


def test_init_writes_a_file_of_comments_that_only_the_person_can_read(
    mine: World, capsys: pytest.CaptureFixture[str]
) -> None:
    run(mine, "init")
    assert capsys.readouterr().out == f"wrote {mine.user_file}\n"
    text = mine.user_file.read_text()
    assert all(line.startswith("#") for line in text.splitlines() if line)
    assert (mine.user_file.stat().st_mode & 0o777, mine.user_dir.stat().st_mode & 0o777) == (0o600, 0o700)
    assert not any(mine.load().is_set(name) for name in KEYS)


def test_each_line_of_the_template_can_be_uncommented_by_itself_and_all_at_once(mine: World) -> None:
    run(mine, "init")
    lines = [line[2:] for line in mine.user_file.read_text().splitlines() if " = " in line and "." in line.split(" = ")[0]]
    assert {line.split(" = ")[0] for line in lines} == {key.name for key in KEYS.values() if key.rule != "admin"}
    for line in lines:
        mine.user_file.write_text(line + "\n")
        assert mine.load().clamps == ()
    mine.user_file.write_text("\n".join(lines))
    assert mine.load().clamps == ()


def test_a_copy_without_tomlkit_can_begin_a_file_and_says_what_it_cannot_do(mine: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy that a first use installs, without network, has none."""
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    monkeypatch.delitem(sys.modules, "agent_sandbox.config.write", raising=False)
    monkeypatch.delattr("agent_sandbox.config.write", raising=False)
    assert run(mine, "init") == 0
    with pytest.raises(UserError, match="tomlkit") as caught:
        run(mine, "set", "network.mode", "isolated")
    assert "make install" in caught.value.hint


@pytest.mark.parametrize("link", [False, True])
def test_init_never_writes_over_a_file_or_a_link(mine: World, link: bool) -> None:
    mine.user_dir.mkdir(parents=True)
    if link:
        mine.user_file.symlink_to("nowhere")
    else:
        mine.user_file.write_text("# mine\n")
    with pytest.raises(UserError, match="exists already"):
        run(mine, "init")
    assert link or mine.user_file.read_text() == "# mine\n"
    assert not (mine.user_dir / "nowhere").exists()


# set


def test_set_keeps_comments_and_order(mine: World) -> None:
    mine.user("# mine\n[network]\n# why\nmode = 'open'  # for now\n\n[limits]\nmemory = '1G'\n").chmod(0o640)
    run(mine, "set", "network.mode", "isolated")
    run(mine, "set", "network.fallback", "refuse")
    run(mine, "set", "sandbox.quiet", "true")
    assert mine.user_file.read_text() == (
        '# mine\n[network]\n# why\nmode = "isolated"  # for now\nfallback = "refuse"\n\n[limits]\nmemory = \'1G\'\n'
        "\n[sandbox]\nquiet = true\n"
    )
    assert mine.user_file.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in mine.user_dir.iterdir()) == ["config.toml"]


def test_set_keeps_the_comments_beside_other_entries(mine: World) -> None:
    mine.user("[filesystem]\nhidden = [\n  'a', # one\n  'b', # two\n]\n")
    run(mine, "set", "filesystem.hidden", "b,c")
    text = mine.user_file.read_text()
    assert "# two" in text and tomlkit.parse(text)["filesystem"]["hidden"] == ["b", "c"]


def test_set_goes_with_a_file_that_init_wrote(mine: World) -> None:
    """Lines that are uncommented later must not clash with what was set."""
    run(mine, "init")
    run(mine, "set", "network.mode", "isolated")
    run(mine, "set", "environment.set", "A=1,B=2")
    run(mine, "set", "environment.mode", "minimal")
    text = mine.user_file.read_text().replace("# network.fallback =", "network.fallback =")
    mine.user_file.write_text(text)
    settings = mine.load()
    assert (settings.text("network.mode"), settings.text("environment.mode")) == ("isolated", "minimal")
    assert settings.table("environment.set") == {"A": "1", "B": "2"}
    assert settings.is_set("network.fallback")


def test_set_makes_the_file_where_there_is_none(mine: World) -> None:
    run(mine, "set", "limits.memory", "4G")
    assert mine.user_file.read_text() == 'limits.memory = "4G"\n'
    assert (mine.user_file.stat().st_mode & 0o777, mine.user_dir.stat().st_mode & 0o777) == (0o600, 0o700)


def test_set_writes_through_a_link_of_a_dotfiles_manager(mine: World) -> None:
    target = mine.own(Path(mine.where.home) / "dotfiles" / "sandbox.toml", "# dots\n")
    mine.user_dir.mkdir(parents=True)
    mine.user_file.symlink_to(target)
    run(mine, "set", "sandbox.quiet", "true")
    assert mine.user_file.is_symlink()
    assert target.read_text() == "# dots\nsandbox.quiet = true\n"


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("network.mod", "open", "network.mod is not a key"),
        ("network.mode", "closed", "must be one of"),
        ("sandbox.quiet", "yes", "must be true or false"),
        ("filesystem.hidden", "[1]", "must be a list of texts"),
        ("filesystem.hidden", "[", "is not TOML"),
        ("environment.set", "A", "not of the form NAME=text"),
        ("filesystem.hidden", "a\udcff", "cannot be set"),
    ],
)
def test_set_changes_nothing_if_the_value_is_wrong(mine: World, key: str, value: str, problem: str) -> None:
    mine.user("# as it was\n")
    with pytest.raises(UserError, match=problem):
        run(mine, "set", key, value)
    assert mine.user_file.read_text() == "# as it was\n"
    assert list(mine.user_dir.iterdir()) == [mine.user_file]


def test_set_leaves_a_file_alone_that_is_wrong_already(mine: World) -> None:
    mine.user("network.mod = 1\n")
    with pytest.raises(UserError, match=r":1: network\.mod is not a key"):
        run(mine, "set", "network.mode", "open")
    assert mine.user_file.read_text() == "network.mod = 1\n"


def test_set_says_if_the_value_will_not_hold(mine: World, capsys: pytest.CaptureFixture[str]) -> None:
    mine.admin("network.mode = 'isolated'\n")
    run(mine, "set", "network.mode", "open")
    assert capsys.readouterr() == (
        f'{mine.user_file}: network.mode = "open"\n',
        f"{mine.user_file}: network.mode: open is not allowed, kept isolated: {mine.admin_file} sets it\n",
    )


def test_set_says_if_the_key_is_not_used_yet(mine: World, capsys: pytest.CaptureFixture[str]) -> None:
    run(mine, "set", "slurm.log_level", "info")
    assert capsys.readouterr().err == "slurm.log_level is not used yet\n"


# edit


def test_edit_opens_the_file_and_checks_it(mine: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "an editor"
    editor.write_text('#!/bin/sh\necho "$1" > "$2"\n')
    editor.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{editor}' 'sandbox.quiet = true'")
    assert run(mine, "edit") == 0
    assert mine.user_file.read_text() == "sandbox.quiet = true\n"
    monkeypatch.setenv("VISUAL", f"'{editor}' 'sandbox.quit = true'")
    with pytest.raises(UserError) as error:
        run(mine, "edit")
    assert str(error.value).startswith(f"{mine.user_file}:1: sandbox.quit is not a key\n")
    assert error.value.hint.endswith("your edit is kept; agent-sandbox config edit opens it again")
    assert mine.user_file.read_text() == "sandbox.quit = true\n"


@pytest.mark.parametrize(("editor", "problem"), [("/nonexistent/x", "no editor was found"), ("false", "ended with status 1")])
def test_edit_says_if_the_editor_does_not_work(
    mine: World, editor: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    with pytest.raises(UserError, match=problem):
        run(mine, "edit")


# the rest


@pytest.mark.parametrize("args", [("shw",), ("set",), ("set", "network.mode"), ("init", "x"), ("show", "no.key"), ("check", "a", "b")])
def test_words_that_are_not_understood_are_named(world: World, args: tuple[str, ...]) -> None:
    with pytest.raises(UserError):
        run(world, *args)


def test_help_lists_the_commands(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for args in ((), ("--help",), ("help",)):
        assert run(world, *args) == 0
        printed = capsys.readouterr().out
        assert all(f"\n  {word} " in printed for word in commands.COMMANDS)


@given(
    st.lists(st.tuples(*[st.text(alphabet="ab -", max_size=30)] * 3), min_size=1, max_size=5),
    st.integers(min_value=50, max_value=120),
)
def test_a_table_fits_its_width_and_loses_nothing(rows: list[tuple[str, ...]], width: int) -> None:
    lines = layout(rows, width)
    assert all(len(line) <= width for line in lines)
    letters = sorted("".join("".join(row) for row in rows).replace(" ", ""))
    assert sorted("".join(lines).replace(" ", "")) == letters


# add, unset, and what a person should know


def test_add_keeps_what_the_list_has(mine: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = mine.user("network.allow = [\n  'a.example.org',  # ours\n]\n")
    run(mine, "add", "network.allow", "b.example.org, a.example.org")
    assert mine.load().names("network.allow") == ("a.example.org", "b.example.org")
    assert "# ours" in path.read_text() and capsys.readouterr().err == ""


def test_set_says_which_entries_are_gone(mine: World, capsys: pytest.CaptureFixture[str]) -> None:
    mine.user("network.allow = ['a.example.org', 'b.example.org']\n")
    run(mine, "set", "network.allow", "b.example.org")
    assert capsys.readouterr().err == "no longer in it: a.example.org; `config add network.allow …` adds to a list\n"


@pytest.mark.parametrize("text", ["network.mode = 'open'\n", "[network]\nmode = 'open'\n", "[network]\nmode = 'open' # x\n[limits]\nprocesses = 5\n"])
def test_unset_takes_a_key_out_and_leaves_the_rest(mine: World, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = mine.user(text)
    for said in ("not set there any more", "not set there"):
        run(mine, "unset", "network.mode")
        assert capsys.readouterr().out == f"{path}: network.mode is {said}\n"
    assert not mine.load().is_set("network.mode") and ("processes = 5" in path.read_text()) == ("processes" in text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "network.floor_open", "private"), "network.floor_open is the admin's to set: in a file of yours it would not count"),
        (("add", "network.floor_open", "private"), "network.floor_open is the admin's to set: in a file of yours it would not count"),
        (("add", "network.mode", "open"), "network.mode is not a list of texts\n  agent-sandbox config set network.mode …"),
        (("add", "network.inject", "a"), "network.inject is not a list of texts\n  agent-sandbox config edit"),
        (("add", "network.allow"), "config add takes a key and a value"),
        (("unset", "network.alow"), "command line: network.alow is not a key\n  did you mean network.allow?"),
    ],
)  # fmt: skip
def test_what_cannot_be_changed_is_said_and_nothing_is_written(mine: World, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError) as error:
        run(mine, *words)
    assert str(error.value).startswith(said)
    assert not mine.user_file.exists()


def test_show_of_a_part_has_its_keys_alone(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run(world, "show", "network")
    keys = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert keys == [name for name in KEYS if name.startswith("network.")]


def test_keys_of_a_part_are_listed_alone(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    run(world, "keys", "--json", "network", "limits.memory")
    assert list(json.loads(capsys.readouterr().out)) == [*(name for name in KEYS if name.startswith("network.")), "limits.memory"]
