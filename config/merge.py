"""Layers, in the order in which they speak → Settings. Pure.

After each layer the higher ranks' values are enforced again: what it tried to weaken is put back and named in a Clamp.
The repository's file speaks before the command line: it may only harden what stands so far, and a person can undo that.
"""

from __future__ import annotations

from agent_sandbox.config import kinds
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.record import replace
from agent_sandbox.config.rules import RULES, identity, outermost
from agent_sandbox.config.settings import Clamp, Entry, Layer, Rank, Settings, Value, denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_sandbox.config.keys import Key

MAY_ONLY_HARDEN = "a project's own file may only harden"


class Merge:
    """What the layers so far come to."""

    def __init__(self) -> None:
        self.held: dict[str, Value] = {}
        self.admin: dict[str, Value] = {}  # what the admin rank alone says
        self.defaults: dict[str, Value] = {}  # what stands where no rank speaks
        self.locked: dict[str, str] = {}  # key → the admin file that locks it
        self.clamps: list[Clamp] = []

    def add(self, layer: Layer) -> None:
        for name, said in layer.values.items():
            self._speak(KEYS[name], said, layer)
        for key in KEYS.values():
            if key.veto and (key.name in layer.values or key.veto in layer.values):
                self._veto(key)
        if layer.rank is Rank.DEFAULT:
            self.defaults = dict(self.held)
        self.locked.update(dict.fromkeys(layer.locked, layer.name))

    def _speak(self, key: Key, said: Value, layer: Layer) -> None:
        rule, held = RULES[key.rule], self.held.get(key.name)
        refusal = self._refusal(key, said, layer)
        if refusal:
            self._clamp(key, said, held, refusal)
            return
        value, reason = said if held is None else rule.join(key, held, said), "a higher rank sets it"
        for by, why in self._bounds(key, layer.rank, held):
            bounded = rule.bound(key, value, by)
            if (bounded.scalar, bounded.entries) != (value.scalar, value.entries):
                reason = why
            value = bounded
        if key.rule != "last":
            self._clamp(key, said, value, reason)
        self.held[key.name] = value
        if layer.rank is Rank.ADMIN:
            earlier = self.admin.get(key.name)
            self.admin[key.name] = said if earlier is None else rule.join(key, earlier, said)

    def _refusal(self, key: Key, said: Value, layer: Layer) -> str:
        """Why this layer may not speak of the key at all; empty when it may."""
        if layer.rank not in RULES[key.rule].ranks:
            return "only an admin may set it" if key.rule == "admin" else "a project's own file may not set it"
        if key.name in self.locked and layer.rank not in (Rank.ADMIN, Rank.DEFAULT):
            return f"{self.locked[key.name]} locks it"
        unset = key.follows and key.name not in self.held  # then it is what the other key will be in the end
        if unset and layer.rank is Rank.REPOSITORY and said.scalar != key.choices[0]:
            return MAY_ONLY_HARDEN
        return ""

    def _bounds(self, key: Key, rank: Rank, held: Value | None) -> Iterator[tuple[Value, str]]:
        """The values that this rank may not weaken, and why."""
        if key.rule == "vetoed" or rank in (Rank.DEFAULT, Rank.ADMIN):
            return
        by = self.admin.get(key.name) or self.admin.get(key.follows)
        if by is not None:
            yield by, f"{by.layer} sets it"
        elif key.admin_values and not self._admin_default(key):
            loosest = [choice for choice in key.choices if choice not in key.admin_values][-1]
            yield replace(self.defaults[key.name], scalar=loosest), "only an admin may choose that"
        if rank is Rank.REPOSITORY and held is not None:
            yield held, MAY_ONLY_HARDEN

    def _admin_default(self, key: Key) -> bool:
        """Did an admin file's [defaults] make a choice that only an admin may make?"""
        return key.name in self.defaults and self.defaults[key.name].scalar in key.admin_values

    def _veto(self, key: Key) -> None:
        held, by = self.held.get(key.name), self.held.get(key.veto)
        if held is None or by is None:
            return
        kept = RULES[key.rule].bound(key, held, by)
        for entry in held.entries:
            denied = denial(key, identity(key, entry), entry.rank, by.entries)
            if denied and entry.rank > Rank.DEFAULT:  # nobody asked for a shipped entry: no word about it
                why = f"{key.veto} holds {denied.value} ({denied.layer})"
                wanted = identity(key, entry)
                self.clamps.append(Clamp(layer=entry.layer, key=key.name, wanted=wanted, kept="", why=why))
        self.held[key.name] = kept

    def _clamp(self, key: Key, said: Value, kept: Value | None, why: str) -> None:
        for wanted, instead in _lost(key, said, kept):
            self.clamps.append(Clamp(layer=said.layer, key=key.name, wanted=wanted, kept=instead, why=why))


def merge(layers: Iterable[Layer]) -> Settings:
    """The shipped defaults come first; then admin, person, repository, command line."""
    layers = tuple(layers)
    state = Merge()
    for layer in layers:
        state.add(layer)
    _reveal(state.held)
    return Settings(values=state.held, clamps=tuple(dict.fromkeys(state.clamps)), layers=layers)


def _lost(key: Key, said: Value, kept: Value | None) -> Iterator[tuple[str, str]]:
    """What was asked for and does not hold, each with what holds instead."""
    if not key.listed:
        if kept is None or kept.scalar != said.scalar:
            yield kinds.shown(key, said.scalar), kinds.shown(key, kept.scalar) if kept else ""
    elif key.rule in ("narrow", "last"):
        if kept is None or _spanned(key, said) != _spanned(key, kept):
            yield _listed(said.entries), _listed(kept.entries) if kept else ""
    else:
        standing = set(_values(kept.entries)) if kept else set()
        yield from ((identity(key, entry), "") for entry in said.entries if entry.value not in standing)


def _spanned(key: Key, value: Value) -> set[str]:
    return {entry.value for entry in outermost(key, value.entries)}


def _values(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.value for entry in entries]


def _listed(entries: tuple[Entry, ...]) -> str:
    return ", ".join(_values(entries)) or "none"


def _reveal(held: dict[str, Value]) -> None:
    """filesystem.reveal takes entries off the shipped list; what a rank hides stays hidden."""
    revealed = set(_values(held["filesystem.reveal"].entries)) if "filesystem.reveal" in held else set()
    hidden = held.get("filesystem.hidden")
    if revealed and hidden:
        kept = [entry for entry in hidden.entries if entry.rank > Rank.DEFAULT or entry.value not in revealed]
        held["filesystem.hidden"] = replace(hidden, entries=tuple(kept))
