"""Is there room for more jobs? Held against slurm.max_jobs and slurm.max_submit_rate, which count for a user: all projects, all sessions.

The intent is written before anything is counted, and the intents of others count: so of two that ask at the same moment at least one
sees the other, and never do both get in where there is room for one. Within a session the first to ask comes first; between sessions
both may be refused. What another node has just written is seen as soon as the shared file system shows it.
"""

from __future__ import annotations

import time

from agent_sandbox.chaperon.command import Command, finished
from agent_sandbox.chaperon.registry import amounts
from agent_sandbox.chaperon.views.lookup import look
from agent_sandbox.chaperon.wire import Reply, refused
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.command import Result, Step
    from agent_sandbox.chaperon.ledger import Ledger
    from agent_sandbox.chaperon.orders import Caps
    from agent_sandbox.chaperon.views.lookup import Live
    from agent_sandbox.chaperon.words import Approved, JobId

MINUTE = 60.0


def with_room(
    command: str, tasks: int, caps: Caps, ledger: Ledger, then: Callable[[str], Step], new: Callable[[tuple[Live, ...]], int] | None = None
) -> Step:  # fmt: skip
    """`then` gets the token of the intent, which is its to end. `new` says how many of the tasks are not in the queue already."""
    try:
        token = ledger.intend(tasks)
    except UserError as error:
        return refused(command, " ".join(str(error).split()))
    if tasks and (late := _too_fast(tasks, caps.max_submit_rate, ledger, token)):
        ledger.drop(token)
        return refused(command, late)
    if not tasks or caps.max_jobs is None:
        return then(token)
    most, begun = caps.max_jobs, time.time()

    def decide(rows: tuple[Live, ...]) -> Step:
        there, more = ledger.in_flight(rows, token, begun), new(rows) if new else tasks
        if there + more <= most or not more:
            return then(token)
        ledger.drop(token)
        said = f"you have {there} jobs in the queue or on their way, and this would be {more} more: slurm.max_jobs is {most}"
        return refused(command, f"{said}; wait until some have ended")

    asked = look(ledger.scope(whole=True), decide, states="", tasks=True)

    def finish(result: Result) -> Step:
        if result.code or result.cut:
            ledger.drop(token)
        return finished(asked, result)

    return replace(asked, finish=finish)


def _too_fast(tasks: int, most: int | None, ledger: Ledger, token: str) -> str:
    if most is None:
        return ""
    done = ledger.submitted_since(time.time() - MINUTE, token)
    if done + tasks <= most:
        return ""
    return f"{done} jobs were submitted within a minute, and this would be {tasks} more: slurm.max_submit_rate is {most}; wait a minute"


def requeue(approved: Approved, caps: Caps, ledger: Ledger, then: Callable[[], Step]) -> Step:
    """Jobs that run again are jobs: those that have ended come back into the queue, and each is a submission."""
    if caps.max_jobs is None and caps.max_submit_rate is None:
        return then()
    tasks = sum(_size(job, ledger) for job in approved.jobs)

    def run(token: str) -> Step:
        return afterwards(then(), lambda reply: _settle(reply, token))

    def _settle(reply: Reply, token: str) -> None:
        """What was done was in the scope, so the ledger has it already: here it counts once more."""
        if reply.code:
            ledger.drop(token)
        else:
            ledger.record(token, approved.jobs[0].job, tasks, "")

    return with_room("scontrol", tasks, caps, ledger, run, lambda rows: sum(_ended(job, rows, ledger) for job in approved.jobs))


def _size(job: JobId, ledger: Ledger) -> int:
    return amounts.array(job.tasks) if job.tasks and job.tasks != "*" else ledger.tasks_of(job.job)


def _ended(job: JobId, rows: tuple[Live, ...], ledger: Ledger) -> int:
    """How many of the tasks that are named may have left the queue."""
    there = sum(job.job in (row.id, row.base) for row in rows)
    return max(0, min(_size(job, ledger), ledger.tasks_of(job.job) - there))


def afterwards(step: Step, act: Callable[[Reply], None]) -> Step:
    """The same steps, and something that is done when the last of them is known."""
    if isinstance(step, Command):
        command = step
        return replace(command, finish=lambda result: afterwards(finished(command, result), act))
    if isinstance(step, Reply):
        act(step)
    return step
