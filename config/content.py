"""The tables of one TOML file, or the options of a command line → Layers. Follows symbolic links of paths, else pure.

Unknown keys, wrong types and values out of range stop here, with the line and the nearest right name.
"""

from __future__ import annotations

import os

from agent_sandbox.config import kinds, paths
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS, SECTIONS, Key
from agent_sandbox.config.record import record, replace
from agent_sandbox.config.settings import Entry, Layer, Rank, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_sandbox.config.kinds import Checked

MATCH, DEFAULTS, LOCKED = "match", "defaults", "locked"


@record
class Source:
    """Who speaks, and what their relative paths are relative to."""

    name: str  # a file's path, or "command line"
    rank: Rank
    base: str
    home: str
    matches: tuple[str, ...] = ()  # what its [match] may hold
    text: str = ""  # the file, for finding lines in it

    def with_text(self, text: str) -> Source:
        return replace(self, text=text)

    def error(self, key: str, problem: str, hint: str = "") -> UserError:
        return UserError(f"{key} {problem}", where=self.place(key), hint=hint)

    def place(self, key: str) -> str:
        """The file and, where it can be found, the line of a key in it."""
        from agent_sandbox.config.positions import find_line

        line = find_line(self.text, key) if self.text else None
        return f"{self.name}:{line}" if line else self.name


def read_tables(tables: Mapping[str, object], source: Source) -> list[Layer]:
    """The file's layers: what it says, and before that, in an admin's file, what it says by default."""
    special = (DEFAULTS, LOCKED) if source.rank is Rank.ADMIN else ()
    apart = (*special, MATCH) if source.matches else special
    named = {name: body for name, body in tables.items() if name not in apart}
    layers = [_layer(_flatten(named, "", source), source, source.rank, _locked(tables, source) if special else ())]
    if DEFAULTS in tables and special:
        body = tables[DEFAULTS]
        if not isinstance(body, dict):
            raise source.error(DEFAULTS, "must be a table")
        layers.insert(0, _layer(_flatten(body, "defaults.", source), source, Rank.DEFAULT, ()))
    return layers


def read_options(options: Mapping[str, object], source: Source) -> Layer:
    """The command line's layer, from keys with values as TOML would have them."""
    for name in options:
        if name not in KEYS:
            raise unknown(name, name, source)
    return _layer(options, source, source.rank, ())


def read_match(tables: Mapping[str, object], source: Source) -> dict[str, tuple[str, ...]]:
    """The [match] of a file: for each kind of thing the patterns of which one must fit."""
    match = tables.get(MATCH, {}) if source.matches else {}
    if not isinstance(match, dict):
        raise source.error(MATCH, "must be a table")
    return {name: _patterns(name, said, source) for name, said in match.items()}


def unknown(name: str, place: str, source: Source) -> UserError:
    """The error for a name that is no key, written at `place`."""
    import difflib

    near = [key for key in KEYS if key.endswith(f".{name}")] or difflib.get_close_matches(name, [*KEYS, *SECTIONS], 1)
    hint = "agent-sandbox config keys lists them all"
    if name == MATCH:
        hint = "[match] belongs in a file of conf.d, or in an admin's file"
    elif name in (DEFAULTS, LOCKED):
        hint = "only an admin's file may hold it"
    elif name in KEYS:
        hint = "write it without quotes"
    elif near:
        hint = f"did you mean {' or '.join(near)}? ({hint})"
    return UserError(f"{name} is not a key", where=source.place(place), hint=hint)


def _flatten(tables: Mapping[str, object], prefix: str, source: Source) -> dict[str, object]:
    """`{"network": {"mode": …}}` → `{"network.mode": …}`, known keys only."""
    flat: dict[str, object] = {}
    for section, body in tables.items():
        if section not in SECTIONS:
            raise unknown(section, prefix + section, source)
        if not isinstance(body, dict):
            raise source.error(prefix + section, "is a table of keys", f"write it as [{prefix}{section}]")
        for name, value in body.items():
            if f"{section}.{name}" not in KEYS:
                raise unknown(f"{section}.{name}", f"{prefix}{section}.{name}", source)
            flat[f"{section}.{name}"] = value
    return flat


def _layer(said: Mapping[str, object], source: Source, rank: Rank, locked: tuple[str, ...]) -> Layer:
    values = {name: _value(KEYS[name], value, source, rank) for name, value in said.items()}
    path = source.name if source.name.startswith("/") else ""
    return Layer(name=source.name, rank=rank, path=path, values=values, locked=locked)


def _value(key: Key, said: object, source: Source, rank: Rank) -> Value:
    try:
        checked = kinds.check(key, said)
        if not key.listed:
            return Value(rank=rank, layer=source.name, scalar=checked)  # type: ignore[arg-type]
        pairs = list(_entries(key, checked, said, source))
    except ValueError as error:
        where = f"defaults.{key.name}" if source.rank is not rank else key.name
        raise source.error(where, str(error)) from None
    entries = [Entry(value=v, rank=rank, layer=source.name, key=key.name, written=w) for v, w in pairs]
    return Value(rank=rank, layer=source.name, entries=tuple(entries))


def _entries(key: Key, checked: Checked, said: object, source: Source) -> Iterator[tuple[str, str]]:
    """Each entry's value, and what was written for it where that is something else."""
    if key.kind == "tables" and isinstance(checked, tuple) and checked:
        from agent_sandbox.config.inject import below_home

        yield from ((below_home(str(text), source.home), str(text).partition("=")[0]) for text in checked)
    elif isinstance(checked, dict):
        yield from ((f"{name}={text}", name) for name, text in checked.items())
    elif isinstance(checked, tuple) and isinstance(said, list | tuple):
        for entry, written in zip(checked, said, strict=True):
            value = _path(key, str(entry), source) if key.paths else str(entry)
            yield value, "" if value == written else str(written)


def _path(key: Key, written: str, source: Source) -> str:
    on_command_line = not source.name.startswith("/")
    if on_command_line and paths.has_dotdot(written):  # the kernel's `..`, not the word's: the caller sees it like that
        written = os.path.realpath(os.path.join(source.base, written))
    path = paths.absolute(written, base=source.base, home=source.home)
    return os.path.realpath(path) if key.real else path


def _locked(tables: Mapping[str, object], source: Source) -> tuple[str, ...]:
    names = tables.get(LOCKED, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise source.error(LOCKED, "must be a list of keys")
    for name in names:
        if name not in KEYS:
            raise unknown(name, LOCKED, source)
    return tuple(names)


def _patterns(name: str, said: object, source: Source) -> tuple[str, ...]:
    from agent_sandbox.config.patterns import check_glob

    if name not in source.matches:
        elsewhere = "; project: in a file of ~/.config/agent-sandbox/conf.d" if name == "project" else ""
        raise source.error(f"match.{name}", "is not known", f"a [match] here may hold {', '.join(source.matches)}{elsewhere}")
    listed = [said] if isinstance(said, str) else said
    if not isinstance(listed, list) or not all(isinstance(text, str) and text for text in listed):
        raise source.error(f"match.{name}", "must be a text or a list of texts")
    try:
        for text in listed:
            check_glob(text)
    except ValueError as error:
        raise source.error(f"match.{name}", str(error)) from None
    return tuple(listed)
