"""Lines and scripts by chance, against the real Slurm: nothing is rebuilt that it reads otherwise than what was typed.

Its reading is told by Slurm itself: the options in order by the C library over the table that each program hands to it, the
job that sbatch makes of a line by `scontrol show job`.
"""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_sandbox.chaperon.parse import parse
from agent_sandbox.chaperon.rebuild import rebuild
from agent_sandbox.chaperon.registry import COMMANDS
from agent_sandbox.chaperon.validate import validate
from agent_sandbox.chaperon.words import OLDEST, Approved, Request
from tests.machines import users
from tests.machines.slurm.cluster import FIELD, Slurm
from tests.slurm.test_registry import HEAD, LATER_VALUES, NOT_IN_THIS_ONE, RULES, UNLIKE, WITH_TABLES, approve, dump, known, unnumbered
from tests.unit.chaperon.fuzz.cases import each
from tests.unit.chaperon.fuzz.getopt import Table
from tests.unit.chaperon.fuzz.lines import environment, operands, options, script_text

__all__ = ["dump"]  # a fixture of another module's


def real_table(slurm: Slurm, dump: Path, name: str) -> Table:
    letters, real = known(slurm, dump, name)
    ours = {one: option.name for option in COMMANDS[name].options for one in (option.name, *option.aliases)}
    takes = {"flag": 0, "value": 1, "maybe": 2}
    return Table(letters, [(one, takes[what], ours[one]) for one, (what, _) in real.items()])


@pytest.mark.parametrize("name", [name for name in WITH_TABLES if not COMMANDS[name].reason])
def test_what_is_accepted_is_read_alike_over_the_table_of_the_real_program(slurm: Slurm, dump: Path, name: str) -> None:
    table = real_table(slurm, dump, name)
    by_letter = {option.short: option.name for option in COMMANDS[name].options if option.short}
    unlike = LATER_VALUES | NOT_IN_THIS_ONE.get(name, set())
    seen = Counter[bool]()

    def typed(chance: random.Random) -> list[str]:
        parts = [options(chance, name, 6), operands(chance, name), options(chance, name, 2)]
        chance.shuffle(parts)
        return [word.replace("\0", "") for part in parts for word in part if word != ":"]

    def check(words: list[str]) -> None:
        ours = parse(COMMANDS[name], words)
        is_known = all(item.option.since == OLDEST and item.option.name not in unlike for item in ours.found)
        seen[bool(ours.refusals or not is_known)] += 1
        if ours.refusals or not is_known:
            return
        theirs = table.read(words)
        assert theirs is not None, "it is a mistake to the real program"
        meant = [(by_letter.get(option, option), value) for option, value in theirs[0]]
        assert ([(item.option.name, item.value) for item in ours.found], list(ours.operands)) == (meant, theirs[1])

    each("getopt over real tables", typed, check)
    assert seen[False] > seen.total() / 5


@dataclass(frozen=True, slots=True)
class Case:
    words: list[str]
    script: str
    environment: dict[str, str]


WITHOUT = {
    "--begin", "--deadline", "--dependency", "--test-only", "--help", "--usage", "--version", "--wait", "--parsable", "--quiet", "--verbose",
    "--export", "--wrap", "--chdir", "--output", "--error", "--input", "--open-mode",
}  # fmt: skip


def accepted(chance: random.Random) -> Case:
    """A line and a script that are approved, and ask for nothing that ends sbatch or depends on the moment."""
    while True:
        script = script_text(chance) if chance.randrange(2) else HEAD + "true\n"
        case = Case(options(chance, "sbatch", 4), script, environment(chance, "sbatch") if chance.randrange(4) == 0 else {})
        if any("\0" in word or "\udc80" in word for word in (*case.words, script, *case.environment.values())):
            continue
        request = Request(command="sbatch", words=(*case.words, "job.sh"), environment=case.environment, cwd="/", script=script)
        answer = validate(request, RULES)
        if isinstance(answer, Approved) and answer.operands == ("job.sh",) and not {f"--{row.option.lstrip('-')}" for row in answer.rows} & WITHOUT:
            asked = {f"--{one.name}" for one in (*answer.options, *answer.wanted)}
            if asked and not asked & WITHOUT:
                return case


def submitted(slurm: Slurm, user: users.TestUser, folder: Path, words: Sequence[str], script: str, env: dict[str, str]) -> str:
    """The id of the job, held; or why there is none."""
    (folder / "job.sh").write_text(script)
    argv = ["/usr/bin/sbatch", "--hold", "--parsable", *words, "job.sh"]
    done = users.run_as(user, argv, env={**slurm.environment, **env}, cwd=folder)
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    return done.stdout.partition(";")[0].strip() if done.stdout.strip() else "refused: " + "; ".join(lines[-1:])


def shown(slurm: Slurm, user: users.TestUser) -> dict[str, dict[str, str]]:
    """All jobs of the user's by their ids, without what differs between any two."""
    text = slurm.run(user, "/usr/bin/scontrol", "show", "job").stdout
    jobs = {}
    for block in text.split("\n\n"):
        parts = FIELD.split(block)
        fields = dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))
        if "JobId" in fields:
            number = fields["JobId"].split()[0]
            jobs[number] = {key: unnumbered(held, number) if key.startswith("Std") else held for key, held in fields.items() if key not in UNLIKE}
    return jobs


def test_sbatch_takes_what_was_rebuilt_for_what_was_typed(slurm: Slurm, member: users.TestUser, project: Path) -> None:
    pairs: list[tuple[Case, str, str]] = []

    def check(case: Case) -> None:
        rebuilt = rebuild(approve([*case.words, "job.sh"], project, case.script, case.environment))
        typed = submitted(slurm, member, project, case.words, case.script, case.environment)
        pairs.append((case, typed, submitted(slurm, member, project, ["--ignore-pbs", *rebuilt], HEAD + "true\n", {})))

    try:
        each("sbatch", accepted, check)
        jobs = shown(slurm, member)
    finally:
        subprocess.run(["/usr/bin/scancel", f"--user={member.name}"], env=slurm.environment, check=True)
    differing = [(case, one, two) for case, one, two in pairs if jobs.get(one, one.partition(":")[0]) != jobs.get(two, two.partition(":")[0])]
    assert [(*found, set(jobs.get(found[1], {}).items()) ^ set(jobs.get(found[2], {}).items())) for found in differing] == []
    assert sum(one in jobs for _, one, _ in pairs) > len(pairs) / 4
