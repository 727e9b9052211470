"""scancel, and scontrol hold, release, requeue and update → the real command on jobs of the scope alone, all or nothing. Pure.

Before anything is changed the controller is asked whether the jobs are still those that were submitted from here: ids are used again.
"""

from __future__ import annotations

from agent_sandbox.chaperon.command import Command, finished
from agent_sandbox.chaperon.rebuild import force, rebuild
from agent_sandbox.chaperon.views.lookup import SECONDS, admit, look
from agent_sandbox.chaperon.views.queue import WORDS_ALONE
from agent_sandbox.chaperon.views.scope import MOST_IDS, not_here, other_users, without
from agent_sandbox.chaperon.views.show import show, strange
from agent_sandbox.chaperon.wire import Reply, refused
from agent_sandbox.chaperon.words import JobId
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.chaperon.command import Result, Step
    from agent_sandbox.chaperon.views.lookup import Live
    from agent_sandbox.chaperon.views.scope import Scope
    from agent_sandbox.chaperon.words import Approved

# Options of scancel that choose jobs; without one of them, and without ids, it does nothing but say so.
CHOOSING = ("account", "me", "name", "nodelist", "partition", "qos", "reservation", "state", "user", "wckey", "cron")
LONGEST_FACT = 1000
ENDED = b"scancel: error: Kill job error on job id %d: Invalid job id specified\n"


def cancel(approved: Approved, scope: Scope) -> Step:
    """scancel."""
    if refusal := other_users(approved, "user", scope):
        return refusal
    chosen = any(approved.has(name) for name in CHOOSING)
    if any(approved.has(name) for name in WORDS_ALONE) or not (chosen or approved.jobs):
        return _run(replace(approved, jobs=()))
    asked = force(without(approved, "me", "user"), "user", scope.user) if chosen else approved
    if approved.jobs:
        return _on_named(asked, scope)
    return look(scope, lambda rows: _on_all(asked, rows), states="")


def control(approved: Approved, scope: Scope) -> Step:
    """scontrol, whatever it is to do."""
    return _on_named(approved, scope) if approved.jobs and approved.operands[:1] != ("show",) else show(approved, scope)


def _on_named(approved: Approved, scope: Scope) -> Step:
    def decide(rows: tuple[Live, ...]) -> Step:
        strangers = strange(approved.jobs, scope, rows)
        return not_here(approved.command, strangers, scope) if strangers else _run(approved)

    def check(wider: Scope) -> Step:
        return look(wider, decide, [job.job for job in approved.jobs])

    return admit(approved.command, approved.jobs, scope, check)


def _on_all(approved: Approved, rows: tuple[Live, ...]) -> Step:
    """Of all that are in the scope and not over, those that the options choose. None: as scancel, without a word."""
    ids = sorted({row.id for row in rows if row.session})
    if len(ids) > MOST_IDS:
        return refused(approved.command, f"{len(ids)} jobs; {MOST_IDS} can be cancelled at once; name them, or those of one --state")
    if not ids:
        return Reply()
    command = _run(replace(approved, jobs=tuple([JobId(job=number) for number in ids])))
    return replace(command, finish=lambda result: finished(command, without_ended(result, ids)))


def without_ended(result: Result, ids: Sequence[int]) -> Result:
    """Nobody named these: one that ended after we looked, which scancel takes for an error, was not to be chosen any more."""
    ours = {ENDED % number for number in ids}
    lines = result.err.splitlines(keepends=True)
    left = [line for line in lines if line not in ours]
    over = len(left) < len(lines) and not left and result.code == 1
    return replace(result, err=b"".join(left), code=0 if over else result.code)


def _run(approved: Approved) -> Command:
    command = Command(program=approved.command, words=rebuild(approved), seconds=SECONDS)
    jobs = ",".join(map(str, approved.jobs))[:LONGEST_FACT]

    def finish(result: Result) -> Step:
        """The same answer, with the jobs for the audit log."""
        answer = finished(command, result)
        return replace(answer, facts=(("jobs", jobs),)) if isinstance(answer, Reply) and jobs else answer

    return replace(command, finish=finish)
