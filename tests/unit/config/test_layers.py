"""Which files speak, for whom and where; and that nothing else does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.location import ADMIN_DIR, Where
from agent_sandbox.config.settings import Rank
from tests.unit.config.conftest import World


def test_layers_speak_in_the_order_that_the_reference_gives(world: World) -> None:
    world.admin("[defaults]\nsandbox.quiet = true\n", "conf.d/b.toml")
    world.admin("")
    world.admin("", "conf.d/a.toml")
    world.user("")
    world.user("", "conf.d/20.toml")
    world.user("", "conf.d/10.toml")
    world.project("")
    admin, user = world.where.admin_dir, str(world.user_dir)
    assert [(layer.name, layer.rank) for layer in world.load().layers] == [
        ("default", Rank.DEFAULT),
        (f"{admin}/conf.d/b.toml", Rank.DEFAULT),
        (f"{admin}/config.toml", Rank.ADMIN),
        (f"{admin}/conf.d/a.toml", Rank.ADMIN),
        (f"{admin}/conf.d/b.toml", Rank.ADMIN),
        (f"{user}/config.toml", Rank.PERSON),
        (f"{user}/conf.d/10.toml", Rank.PERSON),
        (f"{user}/conf.d/20.toml", Rank.PERSON),
        (str(world.project_file), Rank.REPOSITORY),
        ("command line", Rank.PERSON),
    ]


def test_only_toml_files_of_conf_d_are_read(world: World) -> None:
    for name in ("a.toml~", "b.toml.bak", "c.conf", ".d.toml"):
        world.user("this is not TOML", f"conf.d/{name}")
    world.user("sandbox.quiet = true\n", "conf.d/e.toml")
    assert world.load().flag("sandbox.quiet") is True


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ("host = 'login1.cluster.example'", True),
        ("host = 'login1'", True),
        ("host = 'login*'", True),
        ("host = ['gpu*', 'login?']", True),
        ("host = 'gpu*'", False),
        ("host = 'login'", False),
        ("user = 'ada'", True),
        ("user = 'a*'", True),
        ("user = 'eve'", False),
        ("group = 'physics'", True),
        ("group = ['maths', 'phys*']", True),
        ("group = 'maths'", False),
        ("host = 'login1'\nuser = 'ada'\ngroup = 'staff'", True),
        ("host = 'login1'\nuser = 'eve'\ngroup = 'staff'", False),
        ("host = []", False),
    ],
)
@pytest.mark.parametrize("name", ["config.toml", "conf.d/a.toml"])
def test_an_admin_file_counts_where_all_of_its_match_fits(world: World, name: str, match: str, fits: bool) -> None:
    world.admin(f"[match]\n{match}\n[network]\nmode = 'isolated'\n[defaults]\nsandbox.quiet = true\n", name)
    settings = world.load()
    assert (settings.text("network.mode"), settings.flag("sandbox.quiet")) == (
        ("isolated", True) if fits else ("filtered", False)
    )


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("~/project", True),
        ("project", True),
        ("~/pro*", True),
        ("~", True),
        ("{home}/project", True),
        ("{home}/project/", True),
        ("~/projec", False),
        ("~/project/sub", False),
        ("/elsewhere", False),
        ("*/project", True),
        ("/*", True),
    ],
)
def test_a_file_of_conf_d_counts_in_the_project_that_it_matches(world: World, pattern: str, fits: bool) -> None:
    pattern = pattern.replace("{home}", world.where.home)
    pattern = pattern.replace("*/project", world.where.home.rpartition("/")[0] + "/*/project")
    world.user(f"[match]\nproject = '{pattern}'\n[network]\nmode = 'isolated'\n", "conf.d/a.toml")
    assert (world.load().text("network.mode") == "isolated") is fits
    below = world.at(project=f"{world.where.project}/below")
    assert (below.load().text("network.mode") == "isolated") is (fits or (pattern.endswith("/project/sub") and False))


def test_a_project_matches_below_a_symlinked_home_too(world: World) -> None:
    link = Path(world.where.home).parent / "link"
    link.symlink_to(world.where.home)
    linked = world.at(home=str(link))  # the project is known by its real path
    linked.user("[match]\nproject = '~/pro*'\n[network]\nmode = 'isolated'\n", "conf.d/a.toml")
    assert linked.load().text("network.mode") == "isolated"


def test_paths_are_relative_to_home_in_files_and_to_the_current_directory_on_the_command_line(world: World) -> None:
    home, project = world.where.home, world.where.project
    world.user("filesystem.hidden = ['a', '~/b', '/c//d/./e/', '~']\n")
    world.project("filesystem.hidden = ['in', '~/out']\n")
    settings = world.at(cwd=f"{home}/here").load(filesystem__hidden=["f", "../g", "~/h"])
    mine = [entry.value for entry in settings.entries("filesystem.hidden") if entry.layer != "default"]
    assert mine == [
        f"{home}/a", f"{home}/b", "/c/d/e", home, f"{project}/in", f"{home}/out",
        f"{home}/here/f", f"{home}/g", f"{home}/h",
    ]  # fmt: skip


def test_dotdot_on_the_command_line_is_the_kernels(world: World) -> None:
    deep = Path(world.where.home) / "deep" / "er"
    deep.mkdir(parents=True)
    (Path(world.where.cwd) / "link").symlink_to(deep)
    settings = world.load(filesystem__hidden=["link/../x"])
    assert settings.entries("filesystem.hidden")[-1].value == f"{deep.parent}/x"


def test_the_projects_file_cannot_name_what_is_outside_by_dotdot(world: World) -> None:
    world.project("filesystem.hidden = ['../x']\n")
    with pytest.raises(Exception, match=r"write the path without '\.\.'"):
        world.load()


def test_a_path_may_hold_any_other_character(world: World) -> None:
    odd = "sp ace/tab\t/ünï/\udcff[x]*"
    assert world.load(filesystem__writable=[odd]).entries("filesystem.writable")[-1].value == f"{world.where.cwd}/{odd}"


def test_a_link_is_no_way_around_what_an_admin_denies(world: World) -> None:
    data = Path(world.where.home) / "data"
    (data / "below").mkdir(parents=True)
    link = Path(world.where.home) / "link"
    link.symlink_to(data)
    assert str(data / "below") in world.load(filesystem__writable=[str(link / "below")]).names("filesystem.writable")
    admin = world.admin(f"filesystem.deny_writable = ['{data}']\n")
    for path in (data, data / "below", link, link / "below"):
        settings = world.load(filesystem__writable=[str(path)])
        assert [entry.layer for entry in settings.entries("filesystem.writable")] == ["default", "default"]
        assert [told.why for told in settings.clamps] == [f"filesystem.deny_writable holds {data} ({admin})"]
    world.admin(f"filesystem.deny_writable = ['{link}']\n")
    assert world.load(filesystem__writable=[str(data)]).clamps[0].wanted == str(data)


def test_a_link_is_no_way_around_the_places_for_projects(world: World) -> None:
    inside, outside = Path(world.where.home) / "in", Path(world.where.home) / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    world.admin(f"project.parents = ['{inside}']\n")
    assert world.load(project__parents=[str(inside / "sub")]).names("project.parents") == (str(inside / "sub"),)
    settings = world.load(project__parents=[str(inside / "link")])
    assert (settings.names("project.parents"), settings.clamps[0].kept) == ((), "none")


def test_every_entry_knows_the_line_it_was_written_on(world: World) -> None:
    user = world.user("[filesystem]\nhidden = [\n  'a',\n  '~/b', # why\n]\nhome = 'read'\n")
    admin = world.admin("[defaults.network]\nmode = 'isolated'\n[network]\nfallback = 'refuse'\n")
    settings = world.load(sandbox__quiet=True)
    assert [entry.origin() for entry in settings.entries("filesystem.hidden")[-2:]] == [f"{user}:3", f"{user}:4"]
    assert settings.origin("filesystem.home") == f"{user}:6"
    assert settings.origin("network.mode") == f"{admin}:2"
    assert settings.origin("network.fallback") == f"{admin}:4"
    assert settings.origin("sandbox.quiet") == "command line"
    assert settings.origin("audit.enabled") == settings.origin("slurm.network") == "default"
    assert settings.origin("filesystem.hidden") == f"default, {user}:3, {user}:4"


def test_an_unchanged_template_changes_nothing(world: World) -> None:
    """A sample installed as the admin's file once enforced every sample value on everybody."""
    from agent_sandbox.config.template import template

    before = world.load()
    world.admin(template())
    world.user(template())
    after = world.load()
    assert (after.values, after.clamps) == (before.values, ())


def test_an_admin_who_says_the_default_is_not_silent(world: World) -> None:
    assert world.load(network__mode="open").text("network.mode") == "open"
    world.admin("network.mode = 'filtered'\n")
    assert world.load(network__mode="open").text("network.mode") == "filtered"
    assert world.load().is_set("network.mode")


def test_a_persons_config_is_where_the_documents_say(world: World) -> None:
    """Tests that write to a path that nothing reads cannot fail."""
    assert world.user_file == Path(world.where.home) / ".config" / "agent-sandbox" / "config.toml"
    assert Where(user="u", uid=1, home="/h", groups=(), host="", project="", cwd="").admin_dir == ADMIN_DIR
    assert ADMIN_DIR == "/app/lib/agent-sandbox"
    world.user("network.mode = 'isolated'\n")
    assert world.load().origin("network.mode") == f"{world.where.home}/.config/agent-sandbox/config.toml:1"
    shutil.rmtree(world.user_dir)
    assert world.load().origin("network.mode") == "default"


PROGRAM = """
import sys
from agent_sandbox.config.layers import load
from agent_sandbox.config.location import Where
settings = load(Where(user="ada", uid={uid}, home={home!r}, groups=(), host="h", project={home!r}, cwd="/",
                      admin_dir={admin!r}), {{}})
print([(name, repr(value)) for name, value in sorted(settings.values.items())], settings.clamps)
"""


def test_no_environment_variable_has_a_say(world: World, tmp_path: Path) -> None:
    """A variable once dropped the admin's layer; another, of a key's name, beat it."""
    world.admin("network.mode = 'isolated'\nfilesystem.home = 'restricted'\n")
    world.user("filesystem.hidden = ['mine']\n")
    loose = tmp_path / "loose" / ".config" / "agent-sandbox"
    loose.mkdir(parents=True)
    (loose / "config.toml").write_text("network.mode = 'open'\nfilesystem.reveal = ['.ssh']\n")
    shutil.copytree(loose, tmp_path / "loose" / "agent-sandbox")
    names = {"SANDBOX_CONF", "AGENT_SANDBOX_CONFIG", "AGENT_SANDBOX_ADMIN_DIR", "ADMIN_DIR", "XDG_CONFIG_DIRS"}
    names |= {form for key in KEYS for form in spellings(key)}
    variables = dict.fromkeys(names, str(loose / "config.toml")) | {
        "HOME": str(tmp_path / "loose"), "XDG_CONFIG_HOME": str(tmp_path / "loose"), "USER": "root", "LOGNAME": "root",
        "HOME_ACCESS": "write", "NETWORK_MODE": "open", "AGENT_SANDBOX_NETWORK_MODE": "open",
    }  # fmt: skip
    program = PROGRAM.format(uid=world.where.uid, home=world.where.home, admin=world.where.admin_dir)

    def result(environment: dict[str, str]) -> str:
        python = subprocess.run((sys.executable, "-c", program), env=environment, capture_output=True, check=True)
        return python.stdout.decode()

    plain = result({"PATH": os.environ["PATH"]})
    assert "isolated" in plain and "mine" in plain
    assert result({"PATH": os.environ["PATH"], **variables}) == plain


def spellings(key: str) -> tuple[str, ...]:
    name = key.upper().replace(".", "_")
    return (name, f"AGENT_SANDBOX_{name}", f"SANDBOX_{name}", key)
