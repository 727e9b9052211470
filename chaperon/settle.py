"""All options that were found, from every channel → those that count, as Slurm has it. Pure.

Command line before variables, variables before directives; the last of equals wins, or all count where they add up. Of
options that set the same thing (`--exclusive`, `--oversubscribe`) the last one wins: in canonical order it would be another one.
"""

from __future__ import annotations

from agent_sandbox.chaperon.words import TRANSLATED, VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.chaperon.words import Found

MOST_REPEATED = 9  # -v
APART = ("memory", "reserved")  # groups of which Slurm refuses two: both are passed on, for it to say so


def settle(found: Iterable[Found]) -> tuple[Found, ...]:
    """What counts, one entry an option but for those that gather."""
    ordered = sorted([item for item in found if counts(item)], key=lambda item: item.channel.rank)
    kept: list[Found] = []
    for item in _without_lesser(ordered):
        kept = [other for other in kept if not _replaces(item, other)]
        if sum(other.option.name == item.option.name for other in kept) < MOST_REPEATED:
            kept.append(item)
    return tuple(kept)


def counts(item: Found) -> bool:
    """Some options are read before the script is: there they mean nothing."""
    return not item.option.early or item.channel.rank > TRANSLATED


def _without_lesser(found: list[Found]) -> list[Found]:
    """Slurm refuses two kinds of memory, unless one of them comes from a variable: then the other counts."""
    asked = {item.option.group for item in found if item.option.group in APART and item.channel.rank != VARIABLE}
    return [item for item in found if not (item.option.group in asked and item.channel.rank == VARIABLE)]


def _replaces(new: Found, old: Found) -> bool:
    if new.option.name == old.option.name:
        return not new.option.gathers
    return bool(new.option.group) and new.option.group == old.option.group and new.option.group not in APART
