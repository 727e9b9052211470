"""The merged config: each value with its rank and origin, each refused attempt as a Clamp. Pure but for `origin`.

`origin` reads the file again to find the line: only messages ask for it, and a launch has no time to keep positions.
"""

from __future__ import annotations

import enum

from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.patterns import below, names_variable, within
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.keys import Key
    from agent_sandbox.config.kinds import Scalar

DEFAULT_LAYER = "default"
COMMAND_LINE = "command line"
NAMED = ("table", "tables")  # kinds whose entries are NAME=text


class Rank(enum.IntEnum):  # ordered: the larger value is the higher rank
    DEFAULT, REPOSITORY, PERSON, ADMIN = range(4)


@record
class Entry:
    """One entry of a list. `written` is the text in the file, where the value was made of it (`~/x`, a link)."""

    value: str
    rank: Rank
    layer: str  # the file's path, "command line" or "default"
    key: str
    written: str = ""

    def origin(self) -> str:
        return _origin(self.layer, self.rank, self.key, self.written or self.value)


@record
class Value:
    """What one layer says of a key, or what all of them come to: a scalar, or entries."""

    rank: Rank
    layer: str
    scalar: Scalar = None
    entries: tuple[Entry, ...] = ()


@record
class Layer:
    """One source of config: a file, the command line, the shipped defaults."""

    name: str
    rank: Rank
    path: str = ""
    values: dict[str, Value]
    locked: tuple[str, ...] = ()


@record
class Clamp:
    """A weakening that was put back."""

    layer: str
    key: str
    wanted: str
    kept: str
    why: str

    def line(self) -> str:
        kept = f"kept {self.kept}" if self.kept else "left out"
        return printable(f"{self.layer}: {self.key}: {self.wanted} is not allowed, {kept}: {self.why}")


@record
class Settings:
    """The whole table of keys, each with the value that counts."""

    values: dict[str, Value]
    clamps: tuple[Clamp, ...]
    layers: tuple[Layer, ...]

    def flag(self, key: str) -> bool:
        return self._scalar(key, "flag") is True

    def text(self, key: str) -> str:
        """A text or a choice; empty where it is unset."""
        held = self._scalar(key, "text", "choice", "upstream")
        return held if isinstance(held, str) else ""

    def number(self, key: str) -> int | None:
        """A number, bytes or seconds; None where there is no limit."""
        held = self._scalar(key, "number", "size", "duration")
        return held if isinstance(held, int) else None

    def names(self, key: str) -> tuple[str, ...]:
        """The entries of a list. Empty where it is unset, too: `is_set` tells none from any."""
        return tuple([entry.value for entry in self.entries(key)])

    def entries(self, key: str) -> tuple[Entry, ...]:
        assert KEYS[key].listed, f"{key} is no list"
        return self.values[key].entries if key in self.values else ()

    def table(self, key: str) -> dict[str, str]:
        assert KEYS[key].kind in NAMED, f"{key} is no table"
        return dict(entry.value.split("=", 1) for entry in self.entries(key))

    def as_data(self) -> dict[str, object]:
        """Key → scalar, or a list of [entry, rank], for another machine (session.py). Shipped defaults are left out: it has them."""
        data = {name: _plain(KEYS[name], value) for name, value in self.values.items() if self.is_set(name)}
        return dict(sorted(data.items()))

    def is_set(self, key: str) -> bool:
        """Did any layer but the shipped defaults speak of it?"""
        held = self.values.get(key)
        if held is None:
            return False
        return held.layer != DEFAULT_LAYER or any(entry.layer != DEFAULT_LAYER for entry in held.entries)

    def origin(self, key: str) -> str:
        held = self.values.get(key)
        if held is None:
            return DEFAULT_LAYER
        places = [entry.origin() for entry in held.entries] or [_origin(held.layer, held.rank, key, "")]
        return ", ".join(dict.fromkeys(places))

    def denied_by(self, key: str, subject: str, rank: Rank) -> Entry | None:
        """The entry that keeps `subject` (one path, one variable) from what an entry of `rank` in `key` would grant.

        An entry such as `*` is wider than what denies a part of it: ask here for each thing that it comes to.
        """
        veto = KEYS[key].veto
        return denial(KEYS[key], subject, rank, self.entries(veto)) if veto else None

    def unready(self) -> tuple[str, ...]:
        """Keys that ask for a part that is not built: a launch that needs it must stop."""
        return tuple([key.name for key in KEYS.values() if key.unready == "refuses" and self._asks(key)])

    def _asks(self, key: Key) -> bool:
        held = self.values.get(key.name)
        if held is None:
            return False
        if key.rule == "narrow":
            return self.is_set(key.name)
        if key.listed:
            return any(entry.layer != DEFAULT_LAYER for entry in held.entries)  # a shipped list asks for nothing
        return held.scalar not in (key.default, ())

    def _scalar(self, key: str, *kinds: str) -> Scalar:
        assert KEYS[key].kind in kinds, f"{key} is a {KEYS[key].kind}"
        return self.values[key].scalar if key in self.values else None


def denial(key: Key, subject: str, rank: Rank, denied: tuple[Entry, ...]) -> Entry | None:
    """The entry of the veto key that denies `subject` to an entry of this rank."""
    admin_only = KEYS[key.veto].rule == "admin"
    for entry in denied:
        # A shipped list that only an admin may change speaks against everybody but an admin.
        speaks = entry.rank > rank or entry.rank is Rank.ADMIN or (admin_only and rank < Rank.ADMIN)
        if speaks and stands_for(key, entry.value, subject):
            return entry
    return None


def stands_for(key: Key, entry: str, subject: str) -> bool:
    """Is `subject` what this entry of the veto key names, or below it?"""
    if key.kind == "paths":
        return within(subject, entry) if KEYS[key.veto].globs else below(subject, entry)
    if key.kind in ("variables", "table"):
        return names_variable(entry, subject)
    return entry == subject


def _origin(layer: str, rank: Rank, key: str, written: str) -> str:
    if not layer.startswith("/"):
        return layer
    from agent_sandbox.config.positions import line_in_file

    line = line_in_file(layer, f"defaults.{key}" if rank is Rank.DEFAULT else key, written)
    return f"{layer}:{line}" if line else layer


def printable(text: str) -> str:
    """One line, and nothing that a terminal would act on: names come from files that an agent can write."""
    return "".join([char if char.isprintable() else ascii(char)[1:-1] for char in text])


def _plain(key: Key, value: Value) -> object:
    if not key.listed:
        return value.scalar
    return [[entry.value, int(entry.rank)] for entry in value.entries if entry.layer != DEFAULT_LAYER]
