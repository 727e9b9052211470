"""The eight ways in which ranks combine a key. Pure.

A rule is who may speak, how a further layer joins what is held, and how the result is brought back within what a
higher rank said. `bound` is the law itself: what it returns is never weaker than `by`.
"""

from __future__ import annotations

from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.patterns import below
from agent_sandbox.config.record import record, replace
from agent_sandbox.config.settings import NAMED, Entry, Rank, Value, denial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent_sandbox.config.keys import Key

    Combine = Callable[[Key, Value, Value], Value]

ALL = frozenset(Rank)
TRUSTED = ALL - {Rank.REPOSITORY}  # the agent can write the repository's file: it may harden, and nothing else
ADMIN = frozenset({Rank.DEFAULT, Rank.ADMIN})


@record
class Rule:
    ranks: frozenset[Rank]  # who may speak
    join: Combine  # (key, held, said) → what a further layer makes of it
    bound: Combine  # (key, value, by) → the value, brought back within what a higher rank said


def take_said(key: Key, held: Value, said: Value) -> Value:
    return said


def keep_value(key: Key, value: Value, by: Value) -> Value:
    return value


def add_up(key: Key, held: Value, said: Value) -> Value:
    """Entries add up, in order; of two alike the higher rank's stays, or the later one of the same rank."""
    if not key.listed:
        return said
    found = {_slot(key, entry): entry for entry in held.entries}
    for entry in said.entries:
        known = found.get(_slot(key, entry))
        if known is None or known.rank <= entry.rank:
            found[_slot(key, entry)] = entry
    return replace(said, entries=tuple(found.values()))


def _slot(key: Key, entry: Entry) -> tuple[str, int]:
    """Each rank's own word on a host counts: an admin's block, beside an admin's more specific allow, must not take a person's away."""
    return identity(key, entry), entry.rank if key.kind == "hosts" and key.rule == "union" else 0


def add_up_within_a_rank(key: Key, held: Value, said: Value) -> Value:
    return add_up(key, held, said) if held.rank is said.rank else said


def keep_every_entry(key: Key, value: Value, by: Value) -> Value:
    return replace(value, entries=add_up(key, value, by).entries)


def take_stricter(key: Key, value: Value, by: Value) -> Value:
    return value if _place(key, value) < _place(key, by) else by


def take_less(key: Key, value: Value, by: Value) -> Value:
    return value if _amount(value) < _amount(by) else by


def intersect(key: Key, value: Value, by: Value) -> Value:
    """The deeper of each nested pair; for names: those in both."""
    met = [_deeper(key, mine, theirs) for mine in value.entries for theirs in by.entries]
    return replace(value, entries=outermost(key, [entry for entry in met if entry]))


def drop_denied(key: Key, value: Value, by: Value) -> Value:
    """Leave out what the veto key's entries deny; here `by` is the veto key's value."""
    denied = tuple([entry for entry in by.entries if entry.rank > Rank.DEFAULT or KEYS[key.veto].rule == "admin"])
    kept = [entry for entry in value.entries if not denial(key, identity(key, entry), entry.rank, denied)]
    return replace(value, entries=tuple(kept)) if denied else value


RULES: dict[str, Rule] = {
    "union": Rule(ranks=ALL, join=add_up, bound=keep_every_entry),
    "strictest": Rule(ranks=ALL, join=take_said, bound=take_stricter),
    "narrow": Rule(ranks=ALL, join=take_said, bound=intersect),
    "vetoed": Rule(ranks=TRUSTED, join=add_up, bound=drop_denied),
    "added": Rule(ranks=TRUSTED, join=add_up, bound=keep_value),
    "least": Rule(ranks=ALL, join=take_said, bound=take_less),
    "admin": Rule(ranks=ADMIN, join=add_up, bound=keep_value),
    "last": Rule(ranks=TRUSTED, join=add_up_within_a_rank, bound=keep_value),
}


def identity(key: Key, entry: Entry) -> str:
    """What makes two entries the same one: of a table, the name."""
    return entry.value.partition("=")[0] if key.kind in NAMED else entry.value


def outermost(key: Key, entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Without doubles, and without paths that lie below another one."""
    found = {entry.value: entry for entry in entries}
    if not key.paths:
        return tuple(found.values())
    return tuple(entry for path, entry in found.items() if not any(above in found for above in _above(path)))


def _above(path: str) -> Iterator[str]:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def _deeper(key: Key, mine: Entry, theirs: Entry) -> Entry | None:
    if mine.value == theirs.value or (key.paths and below(mine.value, theirs.value)):
        return mine
    return theirs if key.paths and below(theirs.value, mine.value) else None


def _place(key: Key, value: Value) -> int:
    return key.choices.index(value.scalar)


def _amount(value: Value) -> float:
    return value.scalar if isinstance(value.scalar, int) else float("inf")
