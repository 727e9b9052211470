"""The same command lines and job scripts, directly and through the chaperon, against one Slurm: what differs is in `justified`, with its reason."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence

import pytest

from tests.machines import users
from tests.machines.slurm.keeper import wait_for
from tests.slurm.differential import compare, justified, lines
from tests.slurm.differential.scripts import LONG, SCRIPTS
from tests.slurm.differential.sides import DIRECT, JAILED, Case, Ended, Sides

SOAK = os.environ.get("SANDBOX_SOAK") == "1"
HOST = socket.gethostname().partition(".")[0]
JOBS, REASONS = ([*SCRIPTS, *LONG], (*justified.SCRIPTS, *justified.TIMED)) if SOAK else (SCRIPTS, justified.SCRIPTS)
LOOKED_AT = {
    "held": "-H --comment='a b' --wrap=true", "array": "-H -a 1-3 --wrap=true", "running": "--wrap='sleep 600'", "done": "--wrap=true",
    "failed": "--wrap='exit 3'",
}  # fmt: skip


def assert_all_justified(found: list[compare.Difference], table: Sequence[justified.Justified]) -> None:
    left, unused = justified.unjustified(found, table)
    assert not left, f"{len(left)} differences without a reason:\n" + "\n".join(map(str, left))
    assert not unused, f"reasons without a difference: {unused}"


def differences(sides: Sides, cases: Sequence[Case], ended: tuple[list[Ended], list[Ended]]) -> Iterator[compare.Difference]:
    for case, direct, jailed in zip(cases, *ended, strict=True):
        ids = (direct.ids, jailed.ids)
        yield from compare.of_answers(case.label, direct, jailed)
        for one, other in zip(*ids, strict=False):
            yield from compare.of_jobs(case.label, sides.attributes(one), sides.attributes(other), ids)
        yield from compare.of_files(case.label, sides.files(DIRECT, case), sides.files(JAILED, case), ids)


def run_both(sides: Sides, cases: Sequence[Case]) -> tuple[list[Ended], list[Ended]]:
    return sides.run(DIRECT, cases), sides.run(JAILED, cases)


@pytest.fixture(scope="module")
def submitted(sides: Sides) -> tuple[list[Ended], list[Ended]]:
    """The job scripts, which run while the command lines are tried."""
    return run_both(sides, JOBS)


def test_views_differ_only_for_a_reason(sides: Sides) -> None:
    """First, while there is no job but those that are looked at: all of them were submitted from inside."""
    before = [Case(label=name, name=name, line=f"sbatch -J {name} {words}") for name, words in LOOKED_AT.items()]
    ids = {case.name: ended.ids[0] for case, ended in zip(before, sides.run(JAILED, before), strict=True)}
    shown = ("sacct", "-n", "-X", "-P", "-o", "state", "-j", ",".join(ids.values()))
    ready = ["COMPLETED", "FAILED", "PENDING", "PENDING", "RUNNING"]
    wait_for(lambda: sorted(sides.slurm.run(users.current_user(), *shown).stdout.split()) == ready, "the jobs' states")
    user = sides.jail.user
    cases = lines.read("v", lines.VIEWS + lines.REFUSED.lstrip(), user=user.name, uid=str(user.uid), host=HOST, **ids)
    assert len(cases) > 150
    looks = zip(cases, sides.run(DIRECT, cases), sides.run(JAILED, cases), strict=True)
    found = [one for case, direct, jailed in looks for one in compare.of_views(case.label, direct, jailed)]
    sides.slurm.run(user, "scancel", ids["running"])
    assert_all_justified(found, justified.VIEWS)


def test_submissions_and_controls_differ_only_for_a_reason(sides: Sides, submitted: object) -> None:
    words = {"user": sides.jail.user.name, "host": HOST}
    cases = [*lines.read("s", lines.SUBMISSIONS, **words), *lines.read("c", lines.CONTROLS, **words)]
    assert len(cases) > 170
    ended = run_both(sides, cases)
    sides.settle(180)
    assert_all_justified(list(differences(sides, cases, ended)), justified.LINES)


def test_job_scripts_differ_only_for_a_reason(sides: Sides, submitted: tuple[list[Ended], list[Ended]]) -> None:
    assert len(JOBS) > 90
    sides.settle(180)
    assert_all_justified(list(differences(sides, JOBS, submitted)), REASONS)


def test_a_difference_that_nobody_argues_for_is_found() -> None:
    """The comparison itself: one word of output, one attribute, one file more, one entry too many."""
    same = Ended(code=0, out="Submitted batch job 10001\n", err="", ids=("10001",))
    other = Ended(code=0, out="Submitted batch job 10002!\n", err="", ids=("10002",))
    found = list(compare.of_answers("x", same, other))
    assert [one.where for one in found] == ["out"]
    ids = (same.ids, other.ids)
    found += compare.of_jobs("x", [{"JobName": "a", "RunTime": "1"}], [{"JobName": "b", "RunTime": "2"}], ids)
    found += compare.of_files("x", {"slurm-10001.out": ("0o644", "x")}, {"slurm-10002.out": ("0o644", "x"), "more": ("0o644", "")}, ids)
    assert [one.where for one in found] == ["out", "job.JobName", "files"]
    entry = justified.Justified(reason="the name", where=r"job\.JobName")
    assert justified.unjustified(found, [entry]) == ([found[0], found[2]], [])
    assert justified.unjustified(found[:1], [entry])[1] == ["the name"]
