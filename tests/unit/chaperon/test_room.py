"""Jobs in flight and the rate of submissions count for the user, and those on their way count too."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from agent_sandbox.chaperon.command import Command, Result
from agent_sandbox.chaperon.ledger import Ledger
from agent_sandbox.chaperon.orders import Caps
from agent_sandbox.chaperon.room import with_room
from agent_sandbox.chaperon.version import ask_version, known_version, read_version
from agent_sandbox.chaperon.views.lookup import WIDE, Live
from agent_sandbox.chaperon.wire import Reply
from agent_sandbox.config.record import replace
from tests.unit.chaperon.serving import orders_for

if TYPE_CHECKING:
    from agent_sandbox.chaperon.command import Step

DONE = Reply(out=b"in")


def book(top: Path, session: str = "s1", project: str = "p1") -> Ledger:
    """Of a process of its own."""
    ledger = Ledger(replace(orders_for(top), session=session, project_id=project))
    ledger._file = f"here-{session}-1"
    return ledger


def ask(caps: Caps, ledger: Ledger, tasks: int = 1) -> tuple[Step, list[str]]:
    tokens: list[str] = []

    def then(token: str) -> Step:
        tokens.append(token)
        return DONE

    return with_room("sbatch", tasks, caps, ledger, then), tokens


def answered(step: Step, *jobs: int) -> Step:
    """What follows when squeue shows these."""
    assert isinstance(step, Command) and step.finish
    assert {"--array", "--all"} <= set(step.words)
    rows = "".join(f"{job:<{WIDE}}{job:<{WIDE}}{0:<{WIDE}}/elsewhere\n" for job in jobs)
    return step.finish(Result(code=0, out=rows.encode()))


def test_of_many_at_once_the_first_get_in_and_no_more(tmp_path: Path) -> None:
    ledger = book(tmp_path)
    waiting = [ask(Caps(max_jobs=5), ledger) for _ in range(20)]
    said = [answered(step) for step, _ in waiting]
    assert said[:5] == [DONE] * 5
    assert [isinstance(one, Reply) and one.code for one in said[5:]] == [1] * 15
    assert isinstance(said[5], Reply)
    assert b"you have 5 jobs in the queue or on their way, and this would be 1 more: slurm.max_jobs is 5" in said[5].err


def test_a_job_that_is_in_the_queue_and_not_recorded_yet_counts_once(tmp_path: Path) -> None:
    ledger = book(tmp_path)
    first = ledger.intend(3)
    last = ledger.intend()
    own = Live(id=7, base=7, session="s1")
    assert ledger.in_flight((own, own, own), last, time.time()) == 3
    assert ledger.in_flight((own,), last, time.time()) == 3
    assert ledger.in_flight((own, Live(id=8, base=8, session="")), last, time.time()) == 4
    begun = time.time()
    ledger.record(first, 7, 3, "array")
    assert ledger.in_flight((), last, begun) == 3  # submitted after the queue was looked at
    assert ledger.in_flight((), last, begun + 60) == 0  # it has ended since


def test_sessions_of_other_projects_count(tmp_path: Path) -> None:
    one, other = book(tmp_path), book(tmp_path, "s2", "p2")
    step, _ = ask(Caps(max_jobs=1), one)
    late, _ = ask(Caps(max_jobs=1), other)
    said = answered(late)
    assert isinstance(said, Reply) and said.code == 1
    assert answered(step) == DONE  # what was refused is not in the way


def test_the_rate_counts_what_is_on_its_way_and_the_tasks_of_arrays(tmp_path: Path) -> None:
    one, other, caps = book(tmp_path), book(tmp_path, "s2", "p2"), Caps(max_submit_rate=4)
    assert ask(caps, one, 3)[0] == DONE
    refused, tokens = ask(caps, other, 2)
    assert isinstance(refused, Reply)
    assert b"3 jobs were submitted within a minute, and this would be 2 more: slurm.max_submit_rate is 4" in refused.err
    assert tokens == []
    assert ask(caps, other)[0] == DONE
    assert ask(caps, one)[0] != DONE
    assert ask(caps, one, 0)[0] == DONE  # --test-only


def test_a_queue_that_cannot_be_read_lets_nobody_in_and_is_not_counted(tmp_path: Path) -> None:
    ledger = book(tmp_path)
    step, tokens = ask(Caps(max_jobs=1), ledger)
    assert isinstance(step, Command) and step.finish
    failed = step.finish(Result(code=1, err=b"no controller"))
    assert isinstance(failed, Reply) and (failed.code, failed.err, tokens) == (1, b"no controller", [])
    assert answered(ask(Caps(max_jobs=1), ledger)[0]) == DONE


def test_the_version_is_asked_once_for_each_program(tmp_path: Path) -> None:
    (tmp_path / "sbatch").write_text("one")
    assert known_version(str(tmp_path)) == ()
    step = ask_version(str(tmp_path), lambda version: Reply(out=repr(version).encode()))
    assert (step.program, step.words) == ("sbatch", ("--version",))
    assert step.finish and step.finish(Result(code=0, out=b"slurm-wlm 22.05.8\n")) == Reply(out=b"(22, 5, 8)")
    assert known_version(str(tmp_path)) == (22, 5, 8)
    (tmp_path / "sbatch").write_text("another")
    assert known_version(str(tmp_path)) == ()
    assert [read_version(said) for said in (b"slurm 25.11.0-rc1\n", b"slurm 24.05", b"", b"sbatch: fatal: 22.05", b"slurm x")] == [
        (25, 11, 0), (24, 5), (), (), (),
    ]  # fmt: skip
