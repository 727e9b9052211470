"""Control, without a Slurm: nothing is changed before the controller said that the job is still the one that was submitted from here."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.command import Command, Result
from agent_sandbox.chaperon.control import ENDED
from agent_sandbox.chaperon.views.scope import MOST_IDS, NOBODY
from agent_sandbox.chaperon.wire import Reply
from tests.unit.chaperon.test_views import plan, refusal, row, then

LOG = "/st%te/jobs/s1/x.log"
LINES = [
    "scancel 10", "scancel --signal=TERM 10.batch", "scancel 10_[1-2]", "scontrol hold 10", "scontrol release 10", "scontrol requeue 10",
    "scontrol update JobId=10 Nice=1",
]  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_the_controller_is_asked_first(line: str) -> None:
    asked = plan(line)
    assert isinstance(asked, Command) and (asked.program, asked.live) == ("squeue", False)
    assert {f"--jobs={NOBODY},10", "--user=me", "--states=all"} <= set(asked.words)
    done = then(asked, row(10, log=LOG))
    assert isinstance(done, Command) and (done.program, done.live) == (line.split()[0], False)
    assert "--user=me" not in done.words and "10" in done.words[-1] + done.words[-2]


@pytest.mark.parametrize("line", LINES)
def test_an_id_that_is_another_jobs_now_is_not_touched(line: str) -> None:
    assert "nothing was done" in refusal(then(plan(line), row(10, log="/home/me/slurm-10.out")))
    assert "nothing was done" in refusal(then(plan(line), row(11, 10, log="/home/me/slurm-11.out")))


def test_a_job_that_is_gone_is_slurms_to_tell() -> None:
    step = then(plan("scancel 10"), b"")
    assert isinstance(step, Command) and step.words == ("--", "10")


@pytest.mark.parametrize("line", ["scancel --me", "scancel -u me", "scancel --name=a", "scancel -t PENDING", "scancel -p debug"])
def test_options_choose_among_jobs_of_the_scope_alone(line: str) -> None:
    asked = plan(line)
    assert isinstance(asked, Command) and asked.program == "squeue" and not any(word.startswith("--states") for word in asked.words)
    done = then(asked, row(10, log=LOG) + row(31, 20, log=LOG) + row(55, log="/elsewhere"))
    assert isinstance(done, Command)
    assert done.words[-3:] == ("--", "10", "31") and "--user=me" in done.words
    assert then(plan(line), row(55, log="/elsewhere")) == Reply()


def test_too_many_jobs_at_once_are_refused_in_words() -> None:
    rows = b"".join([row(number, log=LOG) for number in range(1, MOST_IDS + 3)])
    assert "can be cancelled at once" in refusal(then(plan("scancel --me"), rows))


def test_without_ids_and_options_nothing_is_cancelled() -> None:
    for line, words in (("scancel", ()), ("scancel --quiet", ("--quiet",)), ("scancel --signal=KILL", ("--signal=KILL",))):
        step = plan(line)
        assert isinstance(step, Command) and (step.program, step.words) == ("scancel", words)


def test_what_was_done_is_a_fact_for_the_audit_log() -> None:
    done = then(plan("scancel 10,20"), row(10, log=LOG) + row(20, log=LOG))
    assert isinstance(done, Command) and done.finish
    assert done.finish(Result(code=1, err=b"x")) == Reply(code=1, err=b"x", facts=(("jobs", "10,20"),))


@pytest.mark.parametrize(("code", "err", "told"), [
    (1, ENDED % 10, (0, b"")), (1, ENDED % 10 + ENDED % 31, (0, b"")), (1, ENDED % 10 + b"scancel: error: x\n", (1, b"scancel: error: x\n")),
    (1, ENDED % 99, (1, ENDED % 99)), (1, b"", (1, b"")), (137, ENDED % 10, (137, b"")), (0, b"", (0, b"")),
])  # fmt: skip
def test_a_job_that_nobody_named_and_that_ended_meanwhile_is_no_error(code: int, err: bytes, told: tuple[int, bytes]) -> None:
    done = then(plan("scancel --name=a"), row(10, log=LOG) + row(31, log=LOG))
    assert isinstance(done, Command) and done.finish
    assert done.finish(Result(code=code, err=err)) == Reply(code=told[0], err=told[1], facts=(("jobs", "10,31"),))


def test_a_named_job_that_ended_is_slurms_to_tell() -> None:
    done = then(plan("scancel --name=a 10"), row(10, log=LOG))
    assert isinstance(done, Command) and done.finish
    assert done.finish(Result(code=1, err=ENDED % 10)) == Reply(code=1, err=ENDED % 10, facts=(("jobs", "10"),))
