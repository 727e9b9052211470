"""Two sides of a case → where they differ, after what must differ (ids, times, the side's own directory) is made alike. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.slurm.differential.sides import DIRECT, JAILED, Ended

Rules = tuple[tuple[re.Pattern[str], str], ...]
Ids = tuple[Sequence[str], Sequence[str]]
# What is never the same twice, whoever asks.
ALWAYS = (
    (re.compile(r"\b\d{4,5}-\d\d-\d\dT\d\d:\d\d:\d\d\b"), "<time>"),
    (re.compile(rf"/({DIRECT}|{JAILED})(?=[/\s'\"]|$)"), "/<side>"),
    (re.compile(r"\bJob \d+ to start at\b"), "Job <job> to start at"),
    (re.compile(r"\b365-00:00:00\b"), "UNLIMITED"),  # what the backfill scheduler writes there when it is the one that starts a job
)
# What goes on while somebody looks twice.
MOVING = (
    (re.compile(r"\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\b"), "<time>"),
    (re.compile(r"\b(\d\d:\d\d:\d\d|\d?\d:\d\d)\b"), "<elapsed>"),
    (re.compile(r"\b(NEXT_JOB_ID +|CPULoad|FreeMem)=( ?)\S+"), r"\1=\2<number>"),
    (re.compile(r'"(cpu_load|free_memory|last_backfill|last_update)": \d+'), r'"\1": <number>'),
)
# Of a job: when things happened, and a number that falls with every submission.
FLEETING = {
    "JobId", "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "EndTime", "RunTime", "LastSchedEval", "SuspendTime", "Deadline", "Priority",
    "ArrayJobId", "AllocNode:Sid", "CPU_IDs", "Scheduler", "JOB_GRES",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`where`: out, err, code, job.Command, file.NAME, mode.NAME, files, env.PATH"""

    case: str
    where: str
    direct: str
    jailed: str

    def __str__(self) -> str:
        return f"{self.case} {self.where}\n    direct: {self.direct!r}\n    jailed: {self.jailed!r}"


def alike(text: str, ids: Sequence[str], more: Rules = ()) -> str:
    for pattern, name in (*ALWAYS, *more):
        text = pattern.sub(name, text)
    for place, number in enumerate(ids):
        text = re.sub(rf"(?<![0-9.])(0*){number}(?![0-9])", rf"\1<job{place}>", text)
    return re.sub(r"\bslurm-\d+(_\d+)?\.out", r"slurm-<quiet>\1.out", text)


def hunks(case: str, where: str, direct: str, jailed: str) -> Iterator[Difference]:
    """One difference for each run of lines that differ."""
    one, other = direct.splitlines(keepends=True), jailed.splitlines(keepends=True)
    for kind, a, b, c, d in difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind != "equal":
            yield Difference(case=case, where=where, direct="".join(one[a:b]), jailed="".join(other[c:d]))


def of_views(case: str, direct: Ended, jailed: Ended) -> Iterator[Difference]:
    """Of two looks at the same jobs: their ids are the same, too."""
    texts = [(alike(ended.out, (), MOVING), alike(ended.err, (), MOVING)) for ended in (direct, jailed)]
    (out, err), (other_out, other_err) = texts
    yield from of_answers(
        case, Ended(code=direct.code, out=out, err=err, ids=()), Ended(code=jailed.code, out=other_out, err=other_err, ids=())
    )  # fmt: skip


def of_answers(case: str, direct: Ended, jailed: Ended) -> Iterator[Difference]:
    if direct.code != jailed.code:
        yield Difference(case=case, where="code", direct=str(direct.code), jailed=str(jailed.code))
    yield from hunks(case, "out", alike(direct.out, direct.ids), alike(jailed.out, jailed.ids))
    yield from hunks(case, "err", alike(direct.err, direct.ids), alike(jailed.err, jailed.ids))


def of_jobs(case: str, direct: Sequence[Mapping[str, str]], jailed: Sequence[Mapping[str, str]], ids: Ids) -> Iterator[Difference]:
    """Task by task, attribute by attribute."""
    if len(direct) != len(jailed):
        yield Difference(case=case, where="jobs", direct=str(len(direct)), jailed=str(len(jailed)))
    for one, other in zip(direct, jailed, strict=False):
        yield from of_mappings(case, "job", without(one, FLEETING), without(other, FLEETING), ids)


def without(mapping: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: value for name, value in mapping.items() if name not in names}


def of_mappings(case: str, what: str, direct: Mapping[str, str], jailed: Mapping[str, str], ids: Ids) -> Iterator[Difference]:
    for name in sorted({*direct, *jailed}):
        one, other = alike(direct.get(name, "-"), ids[0]), alike(jailed.get(name, "-"), ids[1])
        if one != other:
            yield Difference(case=case, where=f"{what}.{name}", direct=one, jailed=other)


Tree = Mapping[str, tuple[str, str]]


def of_files(case: str, direct: Tree, jailed: Tree, ids: Ids) -> Iterator[Difference]:
    """The same names, the same modes, the same contents."""
    one = {alike(name, ids[0]): entry for name, entry in direct.items()}
    other = {alike(name, ids[1]): entry for name, entry in jailed.items()}
    yield from hunks(case, "files", "\n".join(sorted(one)), "\n".join(sorted(other)))
    for name in sorted(one.keys() & other.keys()):
        if one[name][0] != other[name][0]:
            yield Difference(case=case, where=f"mode.{name}", direct=one[name][0], jailed=other[name][0])
        if name.endswith(".env"):
            yield from of_mappings(case, "env", variables(one[name][1]), variables(other[name][1]), ids)
        else:
            yield from hunks(case, f"file.{name}", alike(one[name][1], ids[0]), alike(other[name][1], ids[1]))


def variables(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (entry.partition("=") for entry in text.split("\0") if entry)}
