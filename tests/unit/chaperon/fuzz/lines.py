"""Command lines, scripts and variables, made from the tables' own examples and then spoiled."""

from __future__ import annotations

import random
from dataclasses import dataclass

from agent_sandbox.chaperon.registry import COMMANDS, grammars, variables
from agent_sandbox.chaperon.words import FLAG, REFUSE, Option, Rules
from agent_sandbox.config.record import replace
from tests.unit.chaperon.asking import FREE, NEWEST
from tests.unit.chaperon.fuzz.cases import changed_text, odd_text

CAPPED = replace(FREE, max_nodes=4, max_tasks=64, max_cpus=64, max_gpus=4, max_time=3600, max_array=10, partitions=("a", "b"), mail=False)
RULES = (FREE, NEWEST, CAPPED)
WITH_TABLES = [name for name, command in COMMANDS.items() if command.options and not command.reason]
VALUES = sorted({value for grammar in grammars.GRAMMARS.values() for value in (*grammar.accepted, *grammar.refused)})
GOOD = {
    name: [option for option in COMMANDS[name].options if option.verdict != REFUSE] for name in WITH_TABLES
}  # fmt: skip
EXAMPLES = {id(option): grammars.examples(option) for name in WITH_TABLES for option in COMMANDS[name].options}
OPERANDS = {
    "jobs": ["5", "5_1", "5_[1-3]", "6+1", "7.batch", "0x5"],
    "list": ["5", "1,2"],
    "script": ["job.sh", "a b", "-", "job.sh", "./x", ":"],
    "scontrol": ["show", "job", "5", "update", "JobId=5", "TimeLimit=5", "hold", "release", "Comment=x", "hostnames", "n[1-3]", "config", "node"],
    "sacctmgr": ["show", "list", "qos", "cluster", "format=name", "where", "name=x", "tres", "user"],
}
MARKERS = ["#SBATCH ", "#SBATCH ", "#SBATCH ", "#SBATCH\t", "#SBATCH", "#SLURM ", "#PBS ", "#BSUB ", "#", "", " #SBATCH ", "\n#SBATCH  "]
PBS = [
    "-N pp", "-l nodes=1:ppn=4,walltime=0:10:00,mem=100mb", "-o none", "-e err", "-l select=1:ncpus=4:mpiprocs=2", "-h", "-q short", "-A physics",
    "-m abe", "-M a@b.org", "-v A,B=2", "-V", "-t 1-3", "-p 5", "-W depend=afterok:1", "-l nice=3,ncpus=2", "--err=x", "-j oe", "-l pmem=4mb",
]  # fmt: skip
BSUB = ["-J bs", "-n 2,4", "-W 5", "-M 100000", "-x", "-q short", "-o x", "-e none", "-cwd /tmp", "-m 'a b'"]


@dataclass(frozen=True, slots=True)
class Line:
    command: str
    words: list[str]
    rules: Rules
    script: str | None = None
    environment: dict[str, str] | None = None


def value_of(chance: random.Random, option: Option) -> str:
    good, bad = EXAMPLES[id(option)]
    match chance.randrange(12):
        case 0:
            return chance.choice(bad or ("",))
        case 1:
            return changed_text(chance, chance.choice(good or ("x",)))
        case 2:
            return chance.choice(VALUES)
        case 3:
            return odd_text(chance)
        case _:
            return chance.choice(good or ("x",))


def name_of(chance: random.Random, option: Option) -> str:
    names = (option.name, *option.aliases)
    name = names[0] if len(names) == 1 else chance.choice(names)
    kind = chance.randrange(8)
    return name[: chance.randrange(1, len(name) + 1)] if kind == 0 else changed_text(chance, name) if kind == 1 and chance.randrange(4) == 0 else name


def spelled(chance: random.Random, option: Option) -> list[str]:
    """An option with its value, in any spelling that getopt knows, and some that it does not."""
    if option.short and chance.randrange(2):
        before = chance.choice(["", "", "", "v", "HQ", "h"])
        if option.takes == FLAG:
            return [f"-{before}{option.short}"]
        held = value_of(chance, option)
        return [f"-{before}{option.short}{held}"] if chance.randrange(2) else [f"-{before}{option.short}", held]
    name = name_of(chance, option)
    if option.takes == FLAG:
        return [f"--{name}"] if chance.randrange(20) else [f"--{name}={value_of(chance, option)}"]
    form = chance.randrange(10)
    if form == 0:
        return [f"--{name}"]
    held = value_of(chance, option)
    return [f"--{name}", held] if form < 4 else [f"--{name}={held}"]


def options(chance: random.Random, command: str, most: int = 5) -> list[str]:
    words: list[str] = []
    for _ in range(chance.randrange(most)):
        kind = chance.randrange(40)
        if kind == 0:
            words.append(odd_text(chance))
        elif kind == 1:
            words.append(chance.choice(["--", ":", "-", "--hold", "--no-such"]))
        else:
            words += spelled(chance, chance.choice(GOOD[command] if kind < 37 else COMMANDS[command].options))
    return words


def operands(chance: random.Random, command: str) -> list[str]:
    known = OPERANDS.get(COMMANDS[command].operands, [])
    if not known:
        return [] if chance.randrange(20) else [odd_text(chance)]
    if known[0] == "show" and chance.randrange(3):
        return chance.choice([["show", "job", "5"], ["hold", "5"], ["update", "JobId=5", "TimeLimit=5"], ["show", "qos"], ["show", "config"]])
    chosen = chance.sample(known, chance.randrange(min(4, len(known))))
    return [changed_text(chance, word) if chance.randrange(9) == 0 else word for word in chosen]


def any_line(chance: random.Random) -> Line:
    command = "sbatch" if chance.randrange(3) == 0 else chance.choice(WITH_TABLES)
    words = options(chance, command)
    last = operands(chance, command)
    words = [*words, *last] if chance.randrange(3) else [*last, *words]
    script = "#!/bin/sh\ntrue\n" if command == "sbatch" else None
    return Line(command, words, chance.choice(RULES), script, environment(chance, command) if chance.randrange(5) == 0 else None)


def environment(chance: random.Random, command: str) -> dict[str, str]:
    known = variables(COMMANDS[command]) or ("TZ",)
    return {chance.choice(known): chance.choice(VALUES) if chance.randrange(3) else odd_text(chance) for _ in range(chance.randrange(4))}


def quoted(chance: random.Random, word: str) -> str:
    match chance.randrange(8):
        case 0:
            return f'"{word}"'
        case 1:
            return f"'{word}'"
        case 2:
            return word[:1] + "\\" + word[1:]
        case _:
            return word if " " not in word else f'"{word}"'


def directive(chance: random.Random) -> str:
    kind = chance.randrange(10)
    if kind == 0:
        return chance.choice(["#PBS ", "#PBS", "#PBS\t"]) + " ".join(chance.sample(PBS, chance.randrange(4)))
    if kind == 1:
        return "#BSUB " + " ".join(chance.sample(BSUB, chance.randrange(4)))
    if kind == 2:
        return chance.choice(["true", "", "  ", "# x", "##SBATCH -n 3", "#SBATCH hetjob", "\t#SBATCH -n 2", "#BB x", odd_text(chance)])
    words = options(chance, "sbatch", 4)
    return chance.choice(MARKERS) + chance.choice([" ", " ", "\t", "\f", "  "]).join([quoted(chance, word) for word in words])


def script_text(chance: random.Random) -> str:
    lines = [directive(chance) for _ in range(chance.randrange(5))]
    text = "#!/bin/sh\n" + "\n".join(lines) + chance.choice(["\n", "", "\ntrue\n"])
    return changed_text(chance, text) if chance.randrange(6) == 0 else text


def any_script(chance: random.Random) -> Line:
    held = environment(chance, "sbatch") if chance.randrange(4) == 0 else None
    return Line("sbatch", [*options(chance, "sbatch", 2), "job.sh"], chance.choice(RULES), script_text(chance), held)
