"""The same words, read by the C library's getopt_long over the same table and by us: both find a mistake, or the same options."""

from __future__ import annotations

import random
from collections import Counter

from agent_sandbox.chaperon.parse import parse
from agent_sandbox.chaperon.registry import COMMANDS
from agent_sandbox.chaperon.words import FLAG, MAYBE, VALUE, Command
from tests.unit.chaperon.fuzz.cases import each
from tests.unit.chaperon.fuzz.getopt import Table
from tests.unit.chaperon.fuzz.lines import WITH_TABLES, operands, options

TAKES = {FLAG: 0, VALUE: 1, MAYBE: 2}


def table_of(command: Command) -> Table:
    letters = "".join([option.short + ":" * TAKES[option.takes] for option in command.options if option.short])
    names = [(name, TAKES[option.takes], option.name) for option in command.options for name in (option.name, *option.aliases)]
    return Table(("" if command.permutes else "+") + letters, names)


TABLES = {name: table_of(COMMANDS[name]) for name in WITH_TABLES}
LETTERS = {name: {option.short: option.name for option in COMMANDS[name].options if option.short} for name in WITH_TABLES}


def typed_line(chance: random.Random) -> tuple[str, list[str]]:
    """Without the lone `:` that Slurm looks for before it calls getopt, and without what no argument can hold."""
    name = chance.choice(WITH_TABLES)
    parts = [options(chance, name, 6), operands(chance, name), options(chance, name, 2)]
    chance.shuffle(parts)
    words = [word.replace("\0", "") for part in parts for word in part]
    return name, [word for word in words if word != ":"]


def test_words_are_read_as_the_c_library_reads_them() -> None:
    seen = Counter[bool]()

    def check(case: tuple[str, list[str]]) -> None:
        name, words = case
        ours, theirs = parse(COMMANDS[name], words), TABLES[name].read(words)
        assert (theirs is None) == bool(ours.refusals), (ours.refusals, theirs)
        if theirs is not None:
            meant = [(LETTERS[name].get(option, option), value) for option, value in theirs[0]]
            assert ([(item.option.name, item.value) for item in ours.found], list(ours.operands)) == (meant, theirs[1])
        seen[theirs is None] += 1

    each("getopt", typed_line, check)
    assert min(seen[True], seen[False]) > seen.total() / 20
