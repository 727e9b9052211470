"""Generated config: what each layer of a launch says, as TOML would give it, and the Settings that come of it.

The values of a key follow from its kind in the table of keys, so a new key is covered without a word here. They are
drawn from few, so that layers meet: the same path, one below the other, a name and a pattern for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from agent_sandbox.config.content import Source, read_options, read_tables
from agent_sandbox.config.defaults import load_defaults
from agent_sandbox.config.keys import KEYS, Key
from agent_sandbox.config.merge import merge
from agent_sandbox.config.settings import COMMAND_LINE, Layer, Rank, Settings

HOME = "/home/nobody-here"
PATHS = ("/zz", "/zz/a", "/zz/a/b", "/zz/ab", "/yy", f"{HOME}/.ssh", f"{HOME}/.aws/config", "/dev/fuse", "/dev/dri")
PATTERNS = ("/zz/*", "/zz/a?", "/dev/sd*", f"{HOME}/.a*")
VARIABLES = ("A_KEY", "B_KEY", "C", "LANG", "A_*", "*_KEY", "*", "a_key/i", "?")
AMOUNTS = {
    "number": (0, 1, 5, 100, "unlimited"),
    "size": (0, 5, "1K", "4G", "unlimited"),
    "duration": (0, 5, "2m", "1-00:00:00", "unlimited"),
}

Said = dict[str, Any]  # key → value as TOML has it, of whatever kind


@dataclass(frozen=True, kw_only=True)
class Case:
    """What every layer says."""

    defaults: Said = field(default_factory=dict)  # [defaults] of the admin's first file
    admin: tuple[Said, ...] = ()
    locked: tuple[str, ...] = ()
    person: tuple[Said, ...] = ()
    repository: Said = field(default_factory=dict)
    command_line: Said = field(default_factory=dict)

    def settle(self) -> Settings:
        admin = list(self._admin_layers())
        person = [layer for n, said in enumerate(self.person) for layer in _file(f"/user/{n}", Rank.PERSON, said)]
        options = read_options(self.command_line, _source(COMMAND_LINE, Rank.PERSON))
        repository = _file("/project/file", Rank.REPOSITORY, self.repository)
        ordered = sorted(admin, key=lambda layer: layer.rank)
        return merge([shipped(), *ordered, *person, *repository, options])

    def without_repository(self) -> Case:
        return replace(self, repository={})

    def admin_alone(self) -> Case:
        return Case(defaults=self.defaults, admin=self.admin, locked=self.locked)

    def with_admin_file(self, said: Said) -> Case:
        return replace(self, admin=(*self.admin, said))

    def _admin_layers(self) -> Iterable[Layer]:
        for number, said in enumerate(self.admin or ({},)):
            first = {"defaults": nested(self.defaults), "locked": list(self.locked)} if number == 0 else {}
            yield from read_tables(nested(said) | first, _source(f"/admin/{number}", Rank.ADMIN))


@cache
def shipped() -> Layer:
    return load_defaults(HOME)


def nested(said: Said) -> dict[str, object]:
    """`{"network.mode": …}` as the tables of a TOML file."""
    tables: dict[str, dict[str, object]] = {}
    for name, value in said.items():
        section, _, rest = name.partition(".")
        tables.setdefault(section, {})[rest] = value
    return dict(tables)


def values(key: Key) -> st.SearchStrategy[object]:
    """All that may be written for a key."""
    if key.kind in AMOUNTS:
        return st.sampled_from(AMOUNTS[key.kind])
    if key.kind in ("flag", "choice"):
        return st.sampled_from(key.choices)
    if key.kind == "text":
        return st.sampled_from(("", "p", "q"))
    if key.kind == "upstream":
        return st.sampled_from(("", "p:1", "q:3128"))
    if key.kind == "table":
        return st.dictionaries(st.sampled_from(("A_KEY", "B_KEY", "C")), st.sampled_from(("1", "2")), max_size=2)
    if key.kind == "tables":
        entry = st.fixed_dictionaries({
            "name": st.sampled_from(("a", "b", "c")), "host": st.sampled_from(("h.test", "i.test:8443")), "header": st.just("x-api-key: {secret}"),
            "env": st.just("KEY"),
        })  # fmt: skip
        return st.lists(entry, max_size=2, unique_by=lambda table: table["name"])
    return st.lists(st.sampled_from(_entries(key)), max_size=3, unique=True)


def _entries(key: Key) -> tuple[str, ...]:
    if key.kind == "paths":
        return PATHS + PATTERNS if key.globs else PATHS
    if key.kind == "openings":
        return ("loopback", "10.0.0.0/8", "25")
    if key.kind == "within":
        return ("a", "a/b", "ab")
    return VARIABLES if key.kind == "variables" else tuple(map(str, key.choices)) or ("x", "y", "z")


def saying(keys: Iterable[Key]) -> st.SearchStrategy[Said]:
    """A layer that speaks of some of these keys."""
    return st.fixed_dictionaries({}, optional={key.name: values(key) for key in keys})


def keys_of(*rules: str) -> tuple[str, ...]:
    return tuple(key.name for key in KEYS.values() if key.rule in rules)


@st.composite
def cases(draw: st.DrawFn, names: tuple[str, ...] = tuple(KEYS)) -> Case:
    """A case about a few of these keys, with those that bear on them."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    related = {other for name in chosen for other in (name, KEYS[name].veto, KEYS[name].at_most) if other}
    related |= {"filesystem.hidden"} if "filesystem.reveal" in related else set()
    layer = saying(KEYS[name] for name in sorted(related))
    return Case(
        defaults=draw(layer),
        admin=tuple(draw(st.lists(layer, max_size=2))),
        locked=tuple(draw(st.lists(st.sampled_from(sorted(related)), max_size=1))),
        person=tuple(draw(st.lists(layer, max_size=2))),
        repository=draw(layer),
        command_line=draw(layer),
    )


def _file(path: str, rank: Rank, said: Said) -> list[Layer]:
    return read_tables(nested(said), _source(path, rank))


def _source(name: str, rank: Rank) -> Source:
    return Source(name=name, rank=rank, base="/base", home=HOME)
