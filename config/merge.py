"""Layers, in the order in which they speak → Settings. Pure.

After each layer the higher ranks' values are enforced again: what it tried to weaken is put back and named in a Clamp.
The repository's file speaks before the command line: it may only harden what stands so far, and a person can undo that.
"""

from __future__ import annotations

from agent_sandbox.config import kinds
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.record import replace
from agent_sandbox.config.rules import RULES, identity, outermost
from agent_sandbox.config.settings import Clamp, Layer, Rank, Settings, Value, denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_sandbox.config.keys import Key

MAY_ONLY_HARDEN = "a project's own file may only harden"
MOST_SHOWN = 5


def merge(layers: Iterable[Layer]) -> Settings:
    """The shipped defaults come first; then admin, person, repository, command line."""
    state, layers = Merge(), tuple(layers)
    for layer in layers:
        state.add(layer)
    state.tighten()
    _take_off(state.held)
    return Settings(values=state.held, clamps=tuple(state.clamps), layers=layers)


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
            self._hear(KEYS[name], said, layer)
        for key in KEYS.values():
            if key.veto and (key.name in layer.values or key.veto in layer.values):
                self._veto(key)
        if layer.rank is Rank.DEFAULT:
            self.defaults = dict(self.held)
        self.locked.update(dict.fromkeys(layer.locked, layer.name))

    def _hear(self, key: Key, said: Value, layer: Layer) -> None:
        held, refusal = self.held.get(key.name), self._refusal(key, layer)
        if refusal:
            self._clamp(key, said, _refused(key, said, held), refusal)
            return
        self.held[key.name] = self._join(key, held, said, layer.rank)
        if layer.rank is Rank.ADMIN:
            earlier = self.admin.get(key.name)
            self.admin[key.name] = said if earlier is None else RULES[key.rule].join(key, earlier, said)

    def _refusal(self, key: Key, layer: Layer) -> str:
        """Why this layer may not speak of the key at all; empty when it may."""
        if layer.rank not in RULES[key.rule].ranks:
            return "only an admin may set it" if key.rule == "admin" else "a project's own file may not set it"
        lock = self.locked.get(key.name) or self.locked.get(key.takes_off)
        if lock and layer.rank not in (Rank.ADMIN, Rank.DEFAULT):
            return f"{lock} locks {key.name if key.name in self.locked else key.takes_off}"
        return ""

    def _join(self, key: Key, held: Value | None, said: Value, rank: Rank) -> Value:
        rule, reason = RULES[key.rule], "a higher rank sets it"
        value = said if held is None else rule.join(key, held, said)
        for by, why in self._bounds(key, said, rank, held):
            bounded = rule.bound(key, value, by)
            if (bounded.scalar, bounded.entries) != (value.scalar, value.entries):
                reason = why
            value = bounded
        self._clamp(key, said, _lost(key, said, value), reason)
        return value

    def _bounds(self, key: Key, said: Value, rank: Rank, held: Value | None) -> Iterator[tuple[Value, str]]:
        """The values that this rank may not weaken, and why."""
        if key.rule == "vetoed" or rank in (Rank.DEFAULT, Rank.ADMIN):
            return
        by = self.admin.get(key.name)
        if by is not None:
            yield by, f"{by.layer} sets it"
        elif said.scalar in key.admin_values and self.defaults[key.name].scalar not in key.admin_values:
            loosest = [choice for choice in key.choices if choice not in key.admin_values][-1]
            yield replace(self.defaults[key.name], scalar=loosest), "only an admin may choose that"
        if rank is Rank.REPOSITORY and held is not None:
            yield held, MAY_ONLY_HARDEN

    def _veto(self, key: Key) -> None:
        held, by = self.held.get(key.name), self.held.get(key.veto)
        if held is None or by is None:
            return
        kept = RULES[key.rule].bound(key, held, by)
        asked = [entry for entry in held.entries if entry.rank > Rank.DEFAULT]  # nobody asked for a shipped one
        standing = set(kept.entries) if asked else set()
        for entry in asked:
            if entry not in standing:
                denied = denial(key, identity(key, entry), entry.rank, by.entries)
                why = f"{key.veto} holds {denied.value} ({denied.layer})" if denied else key.veto
                self.clamps.append(_clamp_of(key, entry.layer, (identity(key, entry), ""), why))
        self.held[key.name] = kept

    def tighten(self) -> None:
        """A key that another one bounds is no looser than that one has become."""
        for key in KEYS.values():
            if key.at_most and key.name in self.held:
                said = self.held[key.name]
                kept = RULES[key.rule].bound(key, said, self.held[key.at_most])
                if kept.scalar != said.scalar:
                    self.held[key.name] = kept
                    self._clamp(key, said, _lost(key, said, kept), f"{key.at_most} is {kept.scalar}")

    def _clamp(self, key: Key, said: Value, lost: Iterable[tuple[str, str]], why: str) -> None:
        self.clamps += [_clamp_of(key, said.layer, pair, why) for pair in lost]


def _clamp_of(key: Key, layer: str, wanted_and_kept: tuple[str, str], why: str) -> Clamp:
    wanted, kept = wanted_and_kept
    return Clamp(layer=layer, key=key.name, wanted=wanted, kept=kept, why=why)


def _refused(key: Key, said: Value, held: Value | None) -> Iterator[tuple[str, str]]:
    """What a layer that may not speak wanted, unless it is what holds already."""
    if held is None or said.scalar != held.scalar or _entries_differ(key, said, held):
        yield _summary(key, said), _summary(key, held) if held and not key.listed else ""


def _lost(key: Key, said: Value, kept: Value) -> Iterator[tuple[str, str]]:
    """What was asked for and does not hold, each with what holds instead."""
    if not key.listed:
        if kept.scalar != said.scalar:
            yield _summary(key, said), _summary(key, kept)
    elif key.rule == "narrow":
        if _spanned(key, said) != _spanned(key, kept):
            yield _summary(key, said), _summary(key, kept)
    else:
        standing = {entry.value for entry in kept.entries}
        yield from ((identity(key, entry), "") for entry in said.entries if entry.value not in standing)


def _entries_differ(key: Key, said: Value, held: Value) -> bool:
    wanted, standing = {entry.value for entry in said.entries}, {entry.value for entry in held.entries}
    return wanted != standing if key.rule in ("narrow", "last") else not wanted <= standing


def _spanned(key: Key, value: Value) -> set[str]:
    return {entry.value for entry in outermost(key, value.entries)}


def _summary(key: Key, value: Value) -> str:
    """In words for one line; of a table the names alone, since values may be secret."""
    if not key.listed:
        return kinds.shown(key, value.scalar)
    names = [identity(key, entry) for entry in value.entries]
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more or "none"


def _take_off(held: dict[str, Value]) -> None:
    """What is revealed goes from the shipped list; what a rank hides stays hidden."""
    for key in KEYS.values():
        if key.takes_off and key.name in held and key.takes_off in held:
            named = {entry.value for entry in held[key.name].entries}
            shipped = held[key.takes_off]
            kept = [entry for entry in shipped.entries if entry.rank > Rank.DEFAULT or entry.value not in named]
            held[key.takes_off] = replace(shipped, entries=tuple(kept))
