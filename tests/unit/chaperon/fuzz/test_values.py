"""Values by themselves: job ids, amounts, export lists, file patterns. Read, or refused in words; what was read says what it said."""

from __future__ import annotations

import random
import re
from collections import Counter

from agent_sandbox.chaperon.export import choose, tokens
from agent_sandbox.chaperon.outputs import WIDEST, Names, expand, locate
from agent_sandbox.chaperon.registry import amounts, grammars, jobids
from agent_sandbox.chaperon.registry.make import allow
from tests.unit.chaperon.fuzz.cases import changed_text, each, odd_text

OPTIONS = {name: allow(name, "", name) for name, grammar in grammars.GRAMMARS.items() if grammar.accepted}
NAMES = Names(job="77", array_job="70", task="7", node="n1", node_number="0", user="alice", name="a/b")
ENVIRONMENT = {"A": "1", "PATH": "/bin", "SLURM_X": "2", "B C": "3"}
EXPORTS = ["ALL", "NONE", "nil", "A", "A,B=2", "ALL,X=1", "A='x,y',PATH", 'B="1,2', "SLURM_X=9", "all,A=,=x", "A==,,"]
PATTERNS = ["slurm-%j.out", "%A_%a.txt", "%5j%%", "out/%x-%N.%t", "%u/%s%J", "a\\%j", "%999999999999j", "%", "%5", "%05q", "/abs/%j"]


def value(chance: random.Random) -> tuple[str, str]:
    name = chance.choice(list(OPTIONS))
    grammar = grammars.GRAMMARS[name]
    text = chance.choice(grammar.accepted)
    match chance.randrange(6):
        case 0:
            text = odd_text(chance)
        case 1:
            text = chance.choice(grammar.refused or ("",))
        case 2:
            text = chance.choice([",", ":", "-", " "]).join([text] * chance.randrange(1, 5))
        case 3 | 4:
            text = changed_text(chance, text)
    return name, text * 50 if chance.randrange(50) == 0 else text


def check_amount(name: str, text: str, meaning: object) -> None:
    """What an independent reading of the same text says."""
    numbers = [int(number) for number in re.findall("[0-9]+", text)]
    if name in ("count", "positive"):
        assert isinstance(meaning, int) and meaning == int(text) >= (name == "positive")
    elif name == "nodes":
        assert isinstance(meaning, tuple) and 0 < meaning[0] <= meaning[1] <= max(numbers)
    elif name == "array":
        assert isinstance(meaning, int) and 0 < meaning == counted(text)
    elif name == "time" and meaning is not None:
        assert isinstance(meaning, int) and meaning % 60 == 0 and amounts.duration(amounts.clock(meaning)) == meaning
    elif name == "jobs":
        assert isinstance(meaning, tuple)
        assert jobids.read(",".join(map(str, meaning))) == meaning
        assert {job.job for job in meaning} <= set(numbers)


def counted(text: str) -> int:
    body = text.strip("[]").partition("%")[0]
    ends = [(part.partition(":")[0].split("-"), int(part.partition(":")[2] or 1)) for part in body.split(",")]
    return sum(len(range(int(span[0]), int(span[-1]) + 1, step)) for span, step in ends)


def test_a_value_is_read_for_what_it_says_or_refused_in_words() -> None:
    seen = Counter[bool]()

    def check(case: tuple[str, str]) -> None:
        name, text = case
        try:
            meaning = grammars.read(OPTIONS[name], text)
        except ValueError as wrong:
            assert 0 < len(str(wrong)) < 600 and str(wrong).isprintable()
            seen[False] += 1
            return
        assert "\0" not in text
        check_amount(name, text, meaning)
        seen[True] += 1

    each("values", value, check)
    assert min(seen[True], seen[False]) > seen.total() / 5


def mangled(chance: random.Random) -> tuple[str, str]:
    export, pattern = chance.choice(EXPORTS), chance.choice(PATTERNS)
    for _ in range(chance.randrange(4)):
        export, pattern = changed_text(chance, export), changed_text(chance, pattern)
    return export, pattern


def test_export_lists_and_file_patterns_name_nothing_that_is_not_there() -> None:
    def check(case: tuple[str, str]) -> None:
        export, pattern = case
        given = choose(export, ENVIRONMENT).values
        listed = list(tokens(export))
        assert sum(map(len, listed)) <= len(export)
        said = {token.partition("=")[::2] for token in listed}
        assert all(pair in ENVIRONMENT.items() or pair in said for pair in given.items())
        assert given.get("SLURM_X") == "2"
        path = locate(pattern, NAMES, "/here")
        assert path.startswith("/") and (pattern.startswith("/") or pattern[:1] in "%\\" or path.startswith("/here/"))
        assert len(expand(pattern, NAMES)) <= (1 + len(pattern)) * WIDEST

    each("patterns", mangled, check)
