"""Ids that the ledger does not know → those that are parts of jobs that it does, by asking Slurm. Pure.

Tasks of an array and components of a job have ids of their own, which only Slurm knows. Ids are used again after a while: who is
to change a job asks first whether it is still the one that was submitted from here, by the path of its log, which the agent cannot set.
"""

from __future__ import annotations

from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.views.scope import MOST_IDS, listed, not_here
from agent_sandbox.chaperon.wire import Reply
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_sandbox.chaperon.command import Result, Step
    from agent_sandbox.chaperon.views.scope import Scope
    from agent_sandbox.chaperon.words import JobId

WIDE = 12  # of a column with an id
LONGEST_SESSION = 200
MOST = 64 << 20  # bytes of an answer
SECONDS = 60.0


@record
class Live:
    """A job as the controller knows it."""

    id: int
    base: int  # of the array, or of the job with components, that it belongs to
    session: str  # whose log it has; empty where it has none of ours


def look(
    scope: Scope, then: Callable[[tuple[Live, ...]], Step], jobs: Iterable[int] | None = None, states: str = "all", *, tasks: bool = False
) -> Command:  # fmt: skip
    """All jobs of the user's, or some, in the states that count (empty: those that are not over); `then` gets what there is.
    `tasks`: one entry for each task of an array that waits."""
    width = len(scope.logs.replace("%", "%%").encode()) + LONGEST_SESSION
    words = ["--noheader", "--all", f"--user={scope.user}", f"--Format=JobID:{WIDE},ArrayJobID:{WIDE},HetJobID:{WIDE},STDOUT:{width}"]
    words += [f"--jobs={listed(jobs)}"] if jobs is not None else []
    words += [f"--states={states}"] if states else []
    words += ["--array"] if tasks else []
    return Command(program="squeue", words=tuple(words), finish=lambda result: _found(result, scope, then), most=MOST, seconds=SECONDS)


def _found(result: Result, scope: Scope, then: Callable[[tuple[Live, ...]], Step]) -> Step:
    if result.code or result.cut:
        why = b"" if result.err else b"squeue: error: what there is in the queue could not be read\n"
        return Reply(code=result.code or 1, err=result.err + why)
    return then(read(result.out, scope))


def read(text: bytes, scope: Scope) -> tuple[Live, ...]:
    """The columns by their widths: what is in one cannot end it."""
    rows = []
    for line in text.split(b"\n"):
        numbers = [line[at : at + WIDE].strip() for at in range(0, 3 * WIDE, WIDE)]
        if numbers[0].isdigit():
            base = next((int(number) for number in (numbers[2], numbers[1]) if number.isdigit() and int(number)), int(numbers[0]))
            log = line[3 * WIDE :].decode("utf-8", "surrogateescape").rstrip()
            rows.append(Live(id=int(numbers[0]), base=base, session=scope.session_of(log)))
    return tuple(rows)




def admit(command: str, jobs: tuple[JobId, ...], scope: Scope, then: Callable[[Scope], Step]) -> Step:
    """Go on with a scope in which all of these jobs are, or refuse."""
    unknown = {job.job for job in scope.outside(jobs)}
    if not unknown:
        return then(scope)
    if len(unknown) > MOST_IDS:
        return not_here(command, scope.outside(jobs), scope)

    def with_queue(rows: tuple[Live, ...]) -> Step:
        wider = scope.with_jobs([row.id for row in rows if row.session])
        left = unknown - wider.jobs
        return _ask_accounting(left, wider, lambda last: _decide(command, jobs, last, then)) if left else then(wider)

    return look(scope, with_queue, unknown)


def _decide(command: str, jobs: tuple[JobId, ...], scope: Scope, then: Callable[[Scope], Step]) -> Step:
    outside = scope.outside(jobs)
    return not_here(command, outside, scope) if outside else then(scope)


def _ask_accounting(unknown: Iterable[int], scope: Scope, then: Callable[[Scope], Step]) -> Command:
    """Of jobs that the controller has forgotten: their own id, and the one that is shown (`12_3`, `12+1`)."""
    words = (
        "--noheader", "--parsable2", "--allocations", f"--user={scope.user}", "--format=JobIDRaw,JobID",
        f"--jobs={','.join(map(str, sorted(unknown)))}",
    )  # fmt: skip

    def finish(result: Result) -> Step:
        """Without accounting nothing is found, and the answer is no."""
        pairs = [line.split("|") for line in result.out.decode("ascii", "replace").splitlines()]
        parts = [(int(raw), base) for raw, base in [(pair[0], _base(pair[-1])) for pair in pairs] if raw.isdecimal()]
        return then(scope.with_jobs([raw for raw, base in parts if base in scope.jobs and raw != base]))

    return Command(program="sacct", words=words, finish=finish, most=MOST, seconds=SECONDS)


def _base(shown: str) -> int:
    number = shown.partition("_")[0].partition("+")[0]
    return int(number) if number.isdecimal() else 0
