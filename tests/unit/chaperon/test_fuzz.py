"""Whatever is typed: an answer, never a crash; and what goes on to Slurm is of the table and reads the same again."""

from __future__ import annotations

import os

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_sandbox.chaperon.rebuild import rebuild
from agent_sandbox.chaperon.registry import COMMANDS, grammars, variables
from agent_sandbox.chaperon.validate import script_of
from agent_sandbox.chaperon.words import ALLOW, Approved, Option, Refused
from agent_sandbox.config.record import replace
from tests.unit.chaperon.asking import FREE, NEWEST, ask, place_of

CASES = 10_000 if os.environ.get("SANDBOX_SOAK") else 1500
CAPPED = replace(FREE, max_nodes=4, max_tasks=64, max_cpus=64, max_gpus=4, max_time=3600, max_array=10, partitions=("a", "b"), mail=False)
RULES = (FREE, NEWEST, CAPPED)
VALUES = sorted({value for grammar in grammars.GRAMMARS.values() for value in (*grammar.accepted, *grammar.refused)})
odd = st.text(st.sampled_from(" \t\f\v\r\"'\\#:=,-_[]*%+@/.~$`;|&()\0\n\x1b\u00a0\u0663aN1bj9éx\udc80"), max_size=12)
value = st.one_of(st.sampled_from(VALUES), odd, st.integers(-2, 10**12).map(str))


def spelled(option: Option) -> st.SearchStrategy[list[str]]:
    """The option in every spelling that getopt knows, and some that it does not."""
    names = [option.name, *option.aliases, option.name[:2], option.name[:4], option.name[:-1]]
    letter = option.short or option.name[:1]
    forms = [["--{name}={value}"], ["--{name}", "{value}"], ["--{name}"], ["-{letter}{value}"], ["-{letter}", "{value}"], ["-HQ{letter}", "{value}"]]

    def fill(form: list[str], name: str, held: str) -> list[str]:
        return [part.format(name=name, value=held, letter=letter) for part in form]

    return st.builds(fill, st.sampled_from(forms), st.sampled_from(names), value)


def lines(command: str) -> st.SearchStrategy[list[str]]:
    option = st.sampled_from(COMMANDS[command].options).flatmap(spelled)
    other = st.one_of(odd, st.sampled_from(["--", ":", "-", "--hold", "show", "update", "job", "jobid=5", "5_[1-3]"]))
    word = st.one_of(option, other.map(lambda one: [one]))
    return st.lists(word, max_size=6).map(lambda groups: [word for group in groups for word in group])


WITH_TABLES = [name for name, command in COMMANDS.items() if command.options]
any_line = st.sampled_from(WITH_TABLES).flatmap(lambda name: st.tuples(st.just(name), lines(name)))


def check(command: str, answer: Approved | Refused) -> None:
    if isinstance(answer, Refused):
        assert 0 < len(answer.reasons) <= 20
        assert all(len(str(one)) < 4000 and str(one).isprintable() for one in answer.reasons)
        return
    rebuilt = rebuild(answer)
    allowed = {option.name for option in COMMANDS[command].options if option.verdict == ALLOW}
    end = rebuilt.index("--") if "--" in rebuilt else len(rebuilt)
    assert {word.partition("=")[0] for word in rebuilt[:end]} <= {f"--{name}" for name in allowed}
    assert all(word.isprintable() and len(word) < 70_000 for word in rebuilt)


@settings(max_examples=CASES, deadline=None)
@given(any_line, st.sampled_from(RULES))
@example(("sbatch", ["-HQe", "--container"]), FREE)
def test_any_line_gets_an_answer_that_reads_the_same_again(line: tuple[str, list[str]], rules: object) -> None:
    command, typed = line
    chosen = next(one for one in RULES if one is rules)
    answer = ask(command, *typed, rules=chosen)
    check(command, answer)
    if isinstance(answer, Approved):
        rebuilt = rebuild(answer)
        again = ask(command, *rebuilt, rules=chosen)
        assert isinstance(again, Approved), again
        assert rebuild(again) == rebuilt
        assert (again.jobs, again.sizes) == (answer.jobs, answer.sizes)


MARKERS = ["#SBATCH ", "#SBATCH\t", "#SBATCH", "#SLURM ", "#PBS ", "#BSUB ", "#", "", " #SBATCH "]
native = st.builds(lambda marker, typed: marker + " ".join(typed), st.sampled_from(MARKERS), lines("sbatch"))
letters = st.sampled_from("aAceCehIjJklmMNopqrStuvVWznx")
foreign = st.builds(lambda marker, letter, held: f"{marker} -{letter} {held}", st.sampled_from(["#PBS", "#BSUB"]), letters, value)
directive = st.one_of(native, foreign, odd)


@settings(max_examples=CASES, deadline=None)
@given(st.lists(directive, max_size=5), st.lists(st.sampled_from(VALUES), max_size=3), st.sampled_from(RULES))
def test_any_script_and_variables_get_an_answer(script: list[str], held: list[str], rules: object) -> None:
    names = variables(COMMANDS["sbatch"])
    env = {names[sum(map(ord, value)) % len(names)]: value for value in held}
    check("sbatch", ask("sbatch", "s.sh", script="#!/bin/sh\n" + "\n".join(script), env=env, rules=next(one for one in RULES if one is rules)))


@settings(max_examples=CASES, deadline=None)
@given(lines("sbatch"))
def test_the_script_of_any_line_is_found_before_it_is_read(typed: list[str]) -> None:
    named = script_of(tuple(typed))
    answer = ask("sbatch", *typed)
    if isinstance(answer, Approved):
        ends = any(answer.has(name) for name in ("help", "usage", "version", "wrap"))
        assert named == (None if ends else place_of(answer) if answer.operands else ("", ""))
