"""An entry of `network.inject` says where a secret lives, and in no other way than is understood."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_sandbox.config import inject
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.inject import Injection
from agent_sandbox.config.session import from_data
from tests.unit.config.conftest import World

Table = dict[str, object]
GOOD: Table = {"name": "api", "host": "api.example.org", "header": "x-api-key: {secret}", "env": "KEY"}


def but(*left_out: str, **more: object) -> Table:
    return {name: value for name, value in {**GOOD, **more}.items() if name not in left_out}


def test_an_entry_is_read() -> None:
    assert inject.parse(GOOD) == Injection(
        name="api", host="api.example.org", port=443, path="", field="x-api-key", before="", after="", source="env", place="KEY", command=(),
        base_url_variable="", placeholder_variable="", placeholder="placeholder-set-by-agent-sandbox",
    )  # fmt: skip
    more = but(
        "env", host="API.Example.org:8443", header="Authorization: Bearer {secret}!", command=["/bin/cat", "a b", ""], path="/v1/",
        base_url_variable="API_URL", placeholder_variable="API_KEY", placeholder="sk-x",
    )  # fmt: skip
    assert inject.parse(more) == Injection(
        name="api", host="api.example.org", port=8443, path="/v1", field="Authorization", before="Bearer ", after="!", source="command", place="",
        command=("/bin/cat", "a b", ""), base_url_variable="API_URL", placeholder_variable="API_KEY", placeholder="sk-x",
    )  # fmt: skip


KEPT = (GOOD, but("env", file="~/k"), but("env", command=["/bin/cat", "a  b", "", "c"]), but(path="/v1", placeholder="x y"))


@pytest.mark.parametrize("table", KEPT)
def test_what_settings_keep_is_the_same_entry(table: Table) -> None:
    (text,) = inject.texts([table])
    assert inject.read(text) == inject.parse(table)
    assert inject.texts([inject.as_table(text)]) == (text,)
    assert "\n" not in inject.shown(text) and inject.shown(text).startswith("api: host api.example.org, header x-api-key: {secret}")


WRONG: dict[str, Table] = {
    "holds an entry whose name is None: a name is small letters, digits and -": but("name"),
    "holds an entry whose name is 'A b'": but(name="A b"),
    "holds an entry whose name is 'a/b'": but(name="a/b"),
    "holds 'agent-sandbox': that name is the proxy's own": but(name="agent-sandbox"),
    "holds 'api', which has no host": but("host"),
    "holds 'api', which has no header": but("header"),
    "whose field 'heder' is not known: did you mean header?": but(heder="x"),
    "whose field 'zzz' is not known: it has name, host, header, env,": but(zzz="x"),
    "which must say by exactly one of env, file and command": but("env"),
    "must say by exactly one of env, file and command where": but(file="/k"),
    "whose header must be written like \"x-api-key: {secret}\", not 'x-api-key'": but(header="x-api-key"),
    "whose header must be written like": but(header="x api: {secret}"),
    "whose header must have {secret} in it once": but(header="x-api-key: secret"),
    "must have {secret} in it once, and ASCII around it": but(header="x-api-key: {secret}{secret}"),
    "must have {secret} in it once, and ASCII": but(header="x-api-key: ä{secret}"),
    "whose header must be text on one line": but(header="x-api-key: {secret}\r\nHost: evil"),
    "whose header Host is not one that carries a credential": but(header="Host: {secret}"),
    "whose header content-length is not one": but(header="content-length: {secret}"),
    "whose header Transfer-Encoding is not one": but(header="Transfer-Encoding: {secret}"),
    "whose header Connection is not one": but(header="Connection: {secret}"),
    "whose host 'https://x.org/' is not one": but(host="https://x.org/"),
    "whose host '*.example.org' is not one": but(host="*.example.org"),
    "whose host 'u@example.org' is not one": but(host="u@example.org"),
    "whose host '0x7f.1' is not one": but(host="0x7f.1"),
    "whose host must be text on one line": but(host="a\0b"),
    "whose path must be written like \"/v1\"": but(path="v1"),
    "whose path must be written like": but(path="/v1/../x"),
    "whose path must be written": but(path="/v1?x"),
    "whose path must be": but(path="/v1%2f"),
    "whose file must be an absolute path without '..'": but("env", file="k"),
    "whose file must be an absolute path": but("env", file="/a/../k"),
    "whose command must be a list of words that begins with the path of a program, not 'cat k'": but("env", command="cat k"),
    "whose command must be a list of words that begins with": but("env", command=["cat", "k"]),
    "whose command must be a list of words": but("env", command=[]),
    "whose command must be a list": but("env", command=["/bin/cat", 1]),
    "whose env must be the name of a variable, not 'A-B'": but(env="A-B"),
    "whose env must be text on one line": but(env=""),
    "whose base_url_variable must be the name of a variable": but(base_url_variable="1A"),
    "whose two variables are one": but(base_url_variable="A", placeholder_variable="A"),
}


@pytest.mark.parametrize("problem", WRONG)
def test_an_entry_that_is_not_understood_says_why(problem: str) -> None:
    with pytest.raises(ValueError) as error:
        inject.texts([WRONG[problem]])
    assert problem in str(error.value)


GIVEN = st.sampled_from(("/v1", "x: {secret}", "a.org:443", "[::1]:1", "~/k", "api"))
VALUES = st.one_of(st.text(max_size=6), st.lists(st.text(max_size=4), max_size=2), st.integers(), GIVEN)


@given(st.lists(st.dictionaries(st.sampled_from((*inject.FIELDS, "x")), VALUES), max_size=2))
def test_nothing_else_is_ever_raised_and_what_passes_is_kept_whole(tables: list[Table]) -> None:
    try:
        kept = inject.texts(tables)
    except ValueError:
        return
    assert [inject.read(text) for text in kept] == [inject.parse(table) for table in tables]


def test_no_two_entries_have_one_name_or_one_variable() -> None:
    with pytest.raises(ValueError, match="holds two entries whose name is 'api'"):
        inject.texts([GOOD, but(host="b.org")])
    with pytest.raises(ValueError, match="holds two entries whose base_url_variable is 'A'"):
        inject.texts([but(base_url_variable="A"), but(name="b", base_url_variable="A")])


FILE = """
[network]
mode = "proxied"

[[network.inject]]
name = "first"
host = "a.org"
header = "x-a: {secret}"
env = "A"

[[network.inject]]
name = "second"
host = "b.org"
header = "x-b: {secret}"
file = "~/keys/b"
"""


def test_each_entry_knows_its_line_and_the_home_of_its_file(world: World) -> None:
    world.user(FILE)
    settings = world.load()
    assert [entry.origin().rpartition(":")[2] for entry in settings.entries("network.inject")] == ["6", "12"]
    assert inject.read(settings.names("network.inject")[1]).place == f"{world.where.home}/keys/b"


def test_a_mistake_is_named_with_its_file_and_line(world: World) -> None:
    path = world.user(FILE.replace("header = \"x-b", "heeder = \"x-b"))
    with pytest.raises(UserError) as error:
        world.load()
    assert str(error.value).startswith(f"{path}:5: network.inject holds 'second', whose field 'heeder' is not known: did you mean header?")


def test_a_job_is_told_where_secrets_live_and_no_secret(world: World) -> None:
    world.user(FILE)
    settings = world.load()
    _, person = from_data(settings.as_data())
    assert [entry.value for entry in person.values["network.inject"].entries] == list(settings.names("network.inject"))


def test_the_example_of_the_docs_is_understood() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "network.md").read_text()
    example = page.partition("```toml\n")[2].partition("```")[0]
    (text,) = inject.texts(tomllib.loads(example)["network"]["inject"])
    assert inject.read(text) == Injection(
        name="anthropic", host="api.anthropic.com", port=443, path="", field="x-api-key", before="", after="", source="env",
        place="ANTHROPIC_API_KEY", command=(), base_url_variable="ANTHROPIC_BASE_URL", placeholder_variable="ANTHROPIC_API_KEY",
        placeholder=inject.PLACEHOLDER,
    )  # fmt: skip
    fields = page.partition("| field | |")[2].partition("\n\n")[0]
    assert all(f"`{name}`" in fields for name in inject.FIELDS)
