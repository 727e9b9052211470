"""Short ways to ask the validator."""

from __future__ import annotations

from collections.abc import Mapping

from agent_sandbox.chaperon.rebuild import rebuild
from agent_sandbox.chaperon.validate import validate
from agent_sandbox.chaperon.words import Approved, Refused, Request, Rules

PROJECT = "/home/alice/project"
FREE = Rules(project=PROJECT, user="alice", mail=True)
NEWEST = Rules(project=PROJECT, user="alice", mail=True, version=(25, 11))


def ask(
    command: str, *words: str, script: str | None = None, env: Mapping[str, str] | None = None, rules: Rules = FREE
) -> Approved | Refused:
    return validate(Request(command=command, words=words, environment=env or {}, cwd=PROJECT, script=script), rules)


def approved(command: str, *words: str, script: str | None = None, env: Mapping[str, str] | None = None, rules: Rules = FREE) -> Approved:
    answer = ask(command, *words, script=script, env=env, rules=rules)
    assert isinstance(answer, Approved), [str(one) for one in answer.reasons]
    return answer


def words(command: str, *typed: str, script: str | None = None, env: Mapping[str, str] | None = None, rules: Rules = FREE) -> list[str]:
    """What Slurm would get."""
    return list(rebuild(approved(command, *typed, script=script, env=env, rules=rules)))


def refusals(command: str, *typed: str, script: str | None = None, env: Mapping[str, str] | None = None, rules: Rules = FREE) -> list[str]:
    answer = ask(command, *typed, script=script, env=env, rules=rules)
    assert isinstance(answer, Refused), answer
    return [str(one) for one in answer.reasons]


def place_of(answer: Approved) -> tuple[str, str]:
    """Where sbatch looks for the script first: a bare name below --chdir."""
    name, there = answer.operands[0], answer.value("chdir")
    return (name, "") if not there or name[:1] in ("/", ".") else (f"{there.rstrip('/')}/{name}", name)
