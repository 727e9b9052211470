"""The law of the ranks, said a second time: from what was written in the layers, by code that merging has no part in.

`is_weaker_than_admin` compares Settings with the words of the admin's files; `is_wider` two Settings with each other.
Each answers with the first key that breaks the law, or with nothing.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from agent_sandbox.config import inject
from agent_sandbox.config.keys import KEYS, Key
from agent_sandbox.config.settings import Settings
from tests.unit.config.cases import Case, shipped

SIZES = {"1K": 1024, "4G": 4 * 1024**3, "2m": 120, "1-00:00:00": 86400, "unlimited": float("inf")}
Held = Any  # a set, a number, a choice, a table: what a value is follows from the kind of its key
DENYING = ("filesystem.deny_writable", "filesystem.deny_devices", "sockets.deny")
OPENING = ("network.floor_open",)


def is_weaker_than_admin(settings: Settings, case: Case) -> str:
    """effective ⊒ admin, in every key the admin speaks of."""
    for key in KEYS.values():
        said = [layer[key.name] for layer in case.admin if key.name in layer]
        if not ADMIN_LAW[key.rule](key, said, settings, case):
            return f"{key.name}: {said} came to {held(settings, key)}"
        if key.name in case.locked and not holds_as_locked(key, settings, case):
            return f"{key.name} is locked, and came to {held(settings, key)}"
    return ""


def is_wider(settings: Settings, than: Settings) -> str:
    """Does any key permit what it did not permit before?"""
    for key in KEYS.values():
        mine, theirs = held(settings, key), held(than, key)
        if not NOT_WIDER[key.rule](key, mine, theirs):
            return f"{key.name}: {mine} is wider than {theirs}"
    return ""


def held(settings: Settings, key: Key) -> Held:
    """The effective value by the public accessors; None for an unset narrow list."""
    if key.rule == "narrow" and not settings.is_set(key.name):
        return None
    if key.kind in ("table", "tables"):
        return settings.table(key.name)
    if key.kind in ("names", "variables", "paths", "within", "hosts", "openings"):
        return set(settings.names(key.name))
    if key.kind == "flag":
        return settings.flag(key.name)
    if key.kind in ("text", "choice", "upstream"):
        return settings.text(key.name) or settings.text(key.at_most or key.name)
    number = settings.number(key.name)
    return float("inf") if number is None else number


def shipped_entries(name: str) -> set[str]:
    return {entry.value for entry in shipped().values[name].entries} if name in shipped().values else set()


def amount(said: Held) -> float:
    return SIZES[said] if isinstance(said, str) else float(said)


# effective ⊒ what the admin's layers said, rule by rule


def union_law(key: Key, said: list[Held], settings: Settings, case: Case) -> bool:
    return all(set(entries) <= held(settings, key) for entries in said)


def strictest_law(key: Key, said: list[Held], settings: Settings, case: Case) -> bool:
    bound = (said or [key.choices[-1]])[-1]
    permitted = {case.defaults.get(key.name), *(said or [])}
    if held(settings, key) in key.admin_values and held(settings, key) not in permitted:
        return False
    other = held(settings, KEYS[key.at_most]) if key.at_most else bound
    return stricter(key, held(settings, key), bound) and stricter(key, held(settings, key), other)


def least_law(key: Key, said: list[Held], settings: Settings, case: Case) -> bool:
    return not said or held(settings, key) <= amount(said[-1])


def narrow_law(key: Key, said: list[Held], settings: Settings, case: Case) -> bool:
    return not said or spans_no_more(key, held(settings, key), set(said[-1]))


def vetoed_law(key: Key, said: list[Held], settings: Settings, case: Case) -> bool:
    """Nothing holds that the admin denies; nor, but by the admin's word, what a shipped list for admins denies."""
    own = {entry for entries in said for entry in entries}
    denied = {entry for layer in case.admin for entry in layer.get(key.veto, [])}
    listed = shipped_entries(key.veto) if KEYS[key.veto].rule == "admin" else set()
    for entry in held(settings, key):
        if any(is_named(key, veto, entry) for veto in (denied if entry in own else denied | listed)):
            return False
    return key.kind != "table" or table_law(key, said, settings, denied)


def table_law(key: Key, said: list[Held], settings: Settings, denied: set[str]) -> bool:
    """What the admin set, stays as set."""
    wanted = {name: text for table in said for name, text in table.items()}
    free = {name: text for name, text in wanted.items() if not any(is_named(key, veto, name) for veto in denied)}
    return bool(free.items() <= held(settings, key).items())


def added_law(key: Key, said: list[Held], settings: Settings, case: Case) -> bool:
    """What the admin's files say of a name, stays as said; and only the admin and the person have a word."""
    person = [layer[key.name] for layer in (*case.person, case.command_line) if key.name in layer]
    default = [case.defaults[key.name]] if key.name in case.defaults else []
    wanted: Held = {}
    for layer in (*default, *([] if key.name in case.locked else person), *said):  # the last one wins
        wanted.update({table["name"]: table for table in layer})
    return {name: inject.as_table(f"{name}={text}") for name, text in held(settings, key).items()} == wanted


def admin_law(key: Key, said: list[Held], settings: Settings, case: Case) -> bool:
    default = case.defaults.get(key.name)
    if key.kind == "text":
        return bool(held(settings, key) == [default or "", *said][-1])
    words = {entry for entries in (default or (), *said) for entry in entries}
    return bool(held(settings, key) == shipped_entries(key.name) | words)


def last_law(key: Key, said: list[Held], settings: Settings, case: Case) -> bool:
    """A preference: whoever speaks last, person before admin before default; lists add up within the rank."""
    if key.name in case.locked:
        return True
    person = [layer[key.name] for layer in (*case.person, case.command_line) if key.name in layer]
    default = [case.defaults[key.name]] if key.name in case.defaults else []
    words = person or said or default
    return not words or same(key, words, held(settings, key))


ADMIN_LAW: dict[str, Callable[[Key, list[Held], Settings, Case], bool]] = {
    "union": union_law, "strictest": strictest_law, "narrow": narrow_law, "vetoed": vetoed_law, "least": least_law,
    "admin": admin_law, "last": last_law, "added": added_law,
}  # fmt: skip


def holds_as_locked(key: Key, settings: Settings, case: Case) -> bool:
    """Nobody below the admin changed it."""
    alone = case.admin_alone().settle()
    if key.rule == "vetoed":  # what others hide or block still goes
        return set(held(settings, key)) <= set(held(alone, key))
    if key.at_most:  # locked is what is said of it; the key that bounds it goes its own way
        said = [layer[key.name] for layer in (case.defaults, *case.admin) if key.name in layer]
        bounds = [*said[-1:], held(settings, KEYS[key.at_most])]
        return bool(held(settings, key) == min(bounds, key=key.choices.index))
    return bool(held(settings, key) == held(alone, key))


def same(key: Key, words: list[Held], value: Held) -> bool:
    if key.kind in ("names", "hosts"):
        return bool(value == {entry for entries in words for entry in entries})
    return bool(value == (amount(words[-1]) if key.kind in ("number", "size", "duration") else words[-1]))


# one effective value permits no more than another


def more_entries(key: Key, mine: Held, theirs: Held) -> bool:
    return bool(mine >= theirs)


def fewer_entries(key: Key, mine: Held, theirs: Held) -> bool:
    return bool(mine.items() <= theirs.items()) if key.kind in ("table", "tables") else set(mine) <= set(theirs)


def stricter(key: Key, mine: Held, theirs: Held) -> bool:
    return key.choices.index(mine) <= key.choices.index(theirs)


def less(key: Key, mine: Held, theirs: Held) -> bool:
    return bool(mine <= theirs)


def spans_no_more(key: Key, mine: Held, theirs: Held) -> bool:
    if theirs is None:
        return True
    if mine is None:
        return False
    if key.kind != "paths":
        return set(mine) <= set(theirs)
    return all(any(PurePosixPath(path).is_relative_to(top) for top in theirs) for path in mine)


def denies_as_much(key: Key, mine: Held, theirs: Held) -> bool:
    if key.name in OPENING:
        return bool(mine <= theirs)
    return bool(mine >= theirs if key.name in DENYING else mine == theirs)


def is_same(key: Key, mine: Held, theirs: Held) -> bool:
    return bool(mine == theirs)


NOT_WIDER: dict[str, Callable[[Key, Held, Held], bool]] = {
    "union": more_entries, "strictest": stricter, "narrow": spans_no_more, "vetoed": fewer_entries, "least": less,
    "admin": denies_as_much, "last": is_same, "added": fewer_entries,
}  # fmt: skip


def is_named(key: Key, veto: str, entry: str) -> bool:
    """Does the veto key's entry stand for this one?"""
    if key.kind in ("variables", "table"):
        if veto.endswith("/i"):
            return fnmatch.fnmatchcase(entry.removesuffix("/i").lower(), veto[:-2].lower())
        return fnmatch.fnmatchcase(entry.removesuffix("/i"), veto)
    if key.kind == "paths":
        steps, wanted = PurePosixPath(entry).parts, PurePosixPath(veto).parts
        fits = fnmatch.fnmatchcase if KEYS[key.veto].globs else str.__eq__
        return len(steps) >= len(wanted) and all(map(fits, steps, wanted))
    return entry == veto
