"""What is wrong in a file stops the launch with file, line, key and the nearest right name; none of it takes long."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_sandbox.config.errors import UserError
from tests.unit.config.conftest import World

LIST = "agent-sandbox config keys lists them all"


def message(world: World, text: str) -> str:
    """The error about the person's file, without its path."""
    path = world.user(text)
    with pytest.raises(UserError) as error:
        world.load()
    return str(error.value).replace(str(path), "FILE")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[network]\n\n[filesystem]\nhom = 'read'\n",
         f"FILE:4: filesystem.hom is not a key\n  did you mean filesystem.home? ({LIST})"),
        ("# a\nfilesystem.hom = 'read'\n",
         f"FILE:2: filesystem.hom is not a key\n  did you mean filesystem.home? ({LIST})"),
        ("\n[filesytem]\nhome = 'read'\n", f"FILE:2: filesytem is not a key\n  did you mean filesystem? ({LIST})"),
        ("mode = 'open'\n",
         f"FILE:1: mode is not a key\n  did you mean environment.mode or network.mode or seccomp.mode? ({LIST})"),
        ("qwertz = 1\n", f"FILE:1: qwertz is not a key\n  {LIST}"),
        ("'network.mode' = 'open'\n", "FILE:1: network.mode is not a key\n  write it without quotes"),
        ("network = 3\n", "FILE:1: network is a table of keys\n  write it as [network]"),
        ("[defaults]\nnetwork.mode = 'open'\n", "FILE:1: defaults is not a key\n  only an admin's file may hold it"),
        ("locked = ['network.mode']\n", "FILE:1: locked is not a key\n  only an admin's file may hold it"),
        ("[match]\nhost = 'x'\n",
         "FILE:1: match is not a key\n  [match] belongs in a file of conf.d, or in an admin's file"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_named_with_its_line_and_the_nearest_one(world: World, text: str, expected: str) -> None:
    assert message(world, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("network.mode = 'closed'", "network.mode must be one of isolated, proxied, filtered, open, not 'closed'"),
        ("network.mode = true", "network.mode must be one of isolated, proxied, filtered, open, not True"),
        ("network.mode = ['open']", "network.mode must be one of isolated, proxied, filtered, open, not ['open']"),
        ("sandbox.quiet = 1", "sandbox.quiet must be true or false, not 1"),
        ("limits.processes = true", 'limits.processes must be a whole number or "unlimited", not True'),
        ("limits.processes = -1", 'limits.processes must be a whole number or "unlimited", not -1'),
        ("limits.processes = 1.5", 'limits.processes must be a whole number or "unlimited", not 1.5'),
        ("limits.memory = '4X'", 'limits.memory must be bytes, "512M", "4G" or "unlimited", not \'4X\''),
        ("limits.wall_time = '2w'",
         'limits.wall_time must be seconds, "90s", "15m", "2h", "1-12:00:00" or "unlimited", not \'2w\''),
        ("filesystem.hidden = 'x'", 'filesystem.hidden must be a list of texts, such as ["a", "b"], not \'x\''),
        ("filesystem.hidden = [1]", 'filesystem.hidden must be a list of texts, such as ["a", "b"], not [1]'),
        ("filesystem.hidden = ['']", "filesystem.hidden holds a path that is empty"),
        ('filesystem.hidden = ["a\\u0000b"]', "filesystem.hidden holds 'a\\x00b': a path here is one line of text"),
        ('filesystem.hidden = ["a\\nb"]', "filesystem.hidden holds 'a\\nb': a path here is one line of text"),
        ("filesystem.hidden = ['a/../b']", "filesystem.hidden holds '{home}/a/../b': write the path without '..'"),
        ("filesystem.hidden = ['~eve/x']",
         "filesystem.hidden holds '~eve/x': only your own home can be written as ~; write the other one out"),
        ("filesystem.hidden = ['a[b']",
         "filesystem.hidden holds 'a[b': a [ without its ] (a plain [ is written [[])"),
        ("filesystem.hidden = ['[z-a]']", "filesystem.hidden holds '[z-a]': a range that runs backwards"),
        (f"filesystem.hidden = ['{'a' * 5000}']", "filesystem.hidden holds a path of 5000 characters"),
        ("project.protect = ['/etc']", "project.protect holds '/etc', which must be relative to the project"),
        ("project.protect = ['../x']", "project.protect holds '../x': write the path without '..'"),
        ("project.protect = ['.']", "project.protect holds '.', which is the project itself"),
        ("environment.block = ['A=B']", "environment.block holds 'A=B', which is not the name of a variable"),
        ("environment.set = { 'A*' = 'x' }",
         "environment.set holds 'A*': write the name of one variable, not a pattern"),
        ("environment.set = { A = 1 }", "environment.set A must be text, not 1"),
        ("environment.set = 'A=1'", "environment.set must be a table of texts, not 'A=1'"),
        ("network.block = ['.example.org']",
         "network.block holds '.example.org': each part of a name has 1 to 63 characters; did you mean '*.example.org'?"),
        ("network.block = ['https://example.org/x']",
         "network.block holds 'https://example.org/x': a host is named, not a URL; did you mean 'example.org'?"),
        ("network.allow = ['10.1.2.3/8']",
         "network.allow holds '10.1.2.3/8': the address has bits beyond the length of the network; did you mean '10.0.0.0/8'?"),
        ("network.allow = ['example.org:ssh']",
         "network.allow holds 'example.org:ssh': a port is a number from 1 to 65535; did you mean 'example.org:22'?"),
        ("network.allow = ['git@example.org:me/x.git']",
         "network.allow holds 'git@example.org:me/x.git': a port is a number from 1 to 65535; did you mean 'example.org'?"),
        ("network.upstream_proxy = 'me:pw@proxy.example.org:3128'",
         "network.upstream_proxy must be a proxy's host:port, without a user or a password: settings are no place for one"),
        ("network.inject = [{ name = 'a', host = 'https://api.example.org/v1', header = 'x-key: {secret}', env = 'K' }]",
         "network.inject holds 'a', whose host 'https://api.example.org/v1' is not one: a host is named, not a URL; did you mean 'api.example.org'?"),
        ("network.presets = ['gti']", "network.presets holds 'gti', which is none of agents, packages, git, science"),
        ("agents.deny = [' x']", "agents.deny holds ' x', which is not a name"),
        ("network.upstream_proxy = \"a\\nb\"", "network.upstream_proxy must be text on one line, not 'a\\nb'"),
        ("network.inject = [1]", "network.inject must be a list of tables, such as [[network.inject]], not [1]"),
        ("network.inject = 1", "network.inject must be a list of tables, such as [[network.inject]], not 1"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_its_line_and_what_would_be_right(world: World, text: str, expected: str) -> None:
    assert message(world, f"# first\n{text}\n") == "FILE:2: " + expected.replace("{home}", world.where.home.lstrip("/"))


def test_only_names_of_properties_can_be_required(world: World) -> None:
    told = message(world, "sandbox.require = ['netwrok']\n")
    assert told.startswith("FILE:1: sandbox.require holds 'netwrok', which is none of fs-read, fs-write, hidden,")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("network.mode = 'open'\n\nnetwork.mode = 'open'\n", "FILE:3: is not TOML: Cannot overwrite a value"),
        ("[network]\nmode = open\n", "FILE:2: is not TOML: Invalid value\n  texts stand in quotes: \"pypi.org\""),
        ("a = \"\x00\"\n", "FILE:1: is not TOML: Illegal character '\\x00'"),
        (f"limits.memory = {'9' * 5000}\n", "FILE: is not TOML: Exceeds the limit"),
        (f"a = {'[' * 50000}", "FILE: is nested too deeply"),
        (f"a = {'{a=' * 50000}", "FILE: is nested too deeply"),
        ("\n" + "a." * 200_000 + "a = 1\n", "FILE:2: holds a key of too many parts"),
        ("[" + "a." * 200_000 + "a]\n", "FILE:1: holds a key of too many parts"),
        ("[" + "'a'." * 200_000 + "a]\n", "FILE:1: holds a key of too many parts"),
        ("a.'\"'." + "a." * 200_000 + "a = 1\n", "FILE:1: holds a key of too many parts"),
        ('a."\\"".' + "a." * 200_000 + "a = 1\n", "FILE:1: holds a key of too many parts"),
    ],
)  # fmt: skip
def test_what_is_not_toml_is_refused_quickly(world: World, text: str, expected: str) -> None:
    assert message(world, text).startswith(expected)


def test_what_is_not_utf8_is_refused_with_its_line(world: World) -> None:
    path = world.user("")
    path.write_bytes(b"# one\n# two \xff\n")
    with pytest.raises(UserError, match=r"config\.toml:2: is not UTF-8"):
        world.load()


def test_dots_in_quotes_are_not_parts_of_a_key(world: World) -> None:
    hosts = ", ".join(f"'{number}.example.org'" for number in range(500))
    world.user(f"network.allow = [{hosts}]\n")
    assert len(world.load().names("network.allow")) == 500


def test_a_list_of_more_entries_than_anybody_needs_is_refused(world: World) -> None:
    entries = ", ".join(f"'{number}'" for number in range(10_001))
    assert message(world, f"filesystem.hidden = [{entries}]") == (
        "FILE:1: filesystem.hidden holds 10001 entries; 10000 are enough"
    )


def test_a_file_that_does_not_match_is_checked_all_the_same(world: World) -> None:
    path = world.user("[match]\nhost = 'elsewhere'\n[network]\nmod = 'open'\n", "conf.d/a.toml")
    with pytest.raises(UserError) as error:
        world.load()
    assert str(error.value).startswith(f"{path}:4: network.mod is not a key")


def test_a_key_that_is_locked_must_be_a_key(world: World) -> None:
    path = world.admin("# x\nlocked = ['sandbox.backnd']\n")
    with pytest.raises(UserError) as error:
        world.load()
    assert str(error.value) == f"{path}:2: sandbox.backnd is not a key\n  did you mean sandbox.backend? ({LIST})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("locked = 'x'", ":1: locked must be a list of keys"),
        ("defaults = 1", ":1: defaults must be a table"),
        ("match = 1", ":1: match must be a table"),
        ("[match]\nhost = 1", ":2: match.host must be a text or a list of texts"),
        ("[match]\nproject = 'x'", ":2: match.project is not known\n  a [match] here may hold host, user, group"),
        ("[match]\nhost = '[z-a]'", ":2: match.host holds '[z-a]': a range that runs backwards"),
        ("[defaults.network]\nmode = 'x'", ":2: defaults.network.mode must be one of isolated, proxied, filtered, open"),
        ("[defaults]\n[defaults.network]\nmod = 'x'", ":3: network.mod is not a key"),
    ],
)
def test_mistakes_in_what_only_an_admin_writes_are_named(world: World, text: str, expected: str) -> None:
    path = world.admin(text + "\n")
    with pytest.raises(UserError) as error:
        world.load()
    assert str(error.value).startswith(f"{path}{expected}")


def test_a_mistake_on_the_command_line_is_named(world: World) -> None:
    with pytest.raises(UserError) as error:
        world.load(network__mode="closed")
    assert str(error.value) == (
        "command line: network.mode must be one of isolated, proxied, filtered, open, not 'closed'"
    )


def test_a_mistake_in_the_projects_file_says_how_to_start_without_it(world: World) -> None:
    path = world.project("network.mod = 'open'\n")
    with pytest.raises(UserError) as error:
        world.load()
    assert str(error.value) == (
        f"{path}:1: network.mod is not a key\n  did you mean network.mode? ({LIST}); "
        "agent-sandbox --ignore-project-file … starts without it"
    )


@settings(max_examples=150, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300) | st.text(alphabet="[]{}=.,'\"\\#\n aknetwork1", max_size=200).map(str.encode))
def test_no_bytes_in_a_file_make_anything_but_settings_or_an_error(world: World, data: bytes) -> None:
    world.project_file.write_bytes(data)
    try:
        world.load()
    except UserError as error:
        assert str(error).startswith(str(world.project_file))
