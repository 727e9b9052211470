"""Whatever is typed, written into a script or set as a variable: an answer; and what goes on to Slurm is of the table, within the
caps, printable, and reads the same again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from agent_sandbox.chaperon.rebuild import rebuild
from agent_sandbox.chaperon.registry import COMMANDS
from agent_sandbox.chaperon.validate import script_of
from agent_sandbox.chaperon.words import ALLOW, Approved, Refused
from tests.unit.chaperon.asking import ask, place_of
from tests.unit.chaperon.fuzz.cases import each
from tests.unit.chaperon.fuzz.lines import CAPPED, Line, any_line, any_script

PARTS = 2  # tests of one share, so that they run side by side
PASSED_ON = {name: {f"--{option.name}" for option in command.options if option.verdict == ALLOW} for name, command in COMMANDS.items()}
ENDS = ("help", "usage", "version")
NO_ENVIRONMENT: dict[str, str] = {}


def asked(line: Line) -> Approved | Refused:
    return ask(line.command, *line.words, script=line.script, env=line.environment or NO_ENVIRONMENT, rules=line.rules)


def check_refused(answer: Refused) -> None:
    assert 0 < len(answer.reasons) <= 20
    for one in answer.reasons:
        assert len(str(one)) < 4000 and str(one).isprintable()
    assert all(row.option.isprintable() and row.value.isprintable() for row in answer.rows)


def check_approved(line: Line, answer: Approved) -> None:
    rebuilt = rebuild(answer)
    end = rebuilt.index("--") if "--" in rebuilt else len(rebuilt)
    assert {word.partition("=")[0] for word in rebuilt[:end]} <= PASSED_ON[line.command]
    assert all(word.isprintable() and len(word) < 70_000 for word in rebuilt)
    again = ask(line.command, *rebuilt, rules=line.rules)
    assert isinstance(again, Approved), [str(one) for one in again.reasons]
    assert rebuild(again) == rebuilt
    assert (again.jobs, again.keys, again.sizes) == (answer.jobs, answer.keys, answer.sizes)
    assert all(one.meaning in (None, two.meaning) for one, two in zip(answer.options, again.options, strict=True))  # None: set by a rule
    if line.rules is CAPPED and answer.sizes:
        sizes = answer.sizes
        assert max(sizes.nodes, sizes.gpus) <= 4 and max(sizes.tasks, sizes.cpus) <= 64 and sizes.array <= 10 and (sizes.seconds or 3601) <= 3600
        assert set((answer.value("partition") or "").split(",")) <= {"a", "b"}


def check_script_is_known(line: Line, answer: Approved) -> None:
    ends = any(answer.has(name) for name in (*ENDS, "wrap"))
    typed = ask("sbatch", *line.words, rules=line.rules) if answer.operands else answer  # before a line of the script was read
    assert script_of(tuple(line.words)) == (None if ends else place_of(typed) if answer.operands and isinstance(typed, Approved) else ("", ""))


def run(share: str, make: Callable[..., Line], part: int) -> Counter[str]:
    seen = Counter[str]()

    def check(line: Line) -> None:
        answer = asked(line)
        seen[type(answer).__name__] += 1
        if isinstance(answer, Refused):
            check_refused(answer)
            return
        seen[line.command] += 1
        check_approved(line, answer)
        if line.command == "sbatch":
            check_script_is_known(line, answer)

    each(share, make, check, part, PARTS)
    assert min(seen["Approved"], seen["Refused"]) > (seen["Approved"] + seen["Refused"]) / 10, seen
    return seen


@pytest.mark.parametrize("part", range(PARTS))
def test_a_line_gets_an_answer_that_reads_the_same_again(part: int) -> None:
    seen = run("lines", any_line, part)
    assert {name for name, command in COMMANDS.items() if command.options and not command.reason} <= set(seen)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_script_gets_an_answer_that_reads_the_same_again(part: int) -> None:
    run("scripts", any_script, part)
