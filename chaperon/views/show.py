"""scontrol show: jobs and steps of the scope, one question each; and what is nobody's. Pure.

scontrol takes one job at a time, or shows everybody's. So the jobs are asked for one after the other, and each only after the
controller said that it is still the one that was submitted from here: its id may be another's by now, and scontrol knows no --user.
"""

from __future__ import annotations

from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.rebuild import rebuild
from agent_sandbox.chaperon.views.cluster import cluster
from agent_sandbox.chaperon.views.lookup import MOST, SECONDS, admit, look
from agent_sandbox.chaperon.views.queue import with_reasons
from agent_sandbox.chaperon.views.scope import not_here
from agent_sandbox.chaperon.wire import Reply, refused
from agent_sandbox.chaperon.words import JobId
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.command import Result, Step
    from agent_sandbox.chaperon.views.lookup import Live
    from agent_sandbox.chaperon.views.scope import Scope
    from agent_sandbox.chaperon.words import Approved

MOST_SHOWN = 500  # jobs, at some ten milliseconds each
EMPTY = {"job": "No jobs in the system", "step": "No job steps in the system"}
STATES = {"job": "all", "step": "running"}


def show(approved: Approved, scope: Scope) -> Step:
    if approved.operands[:1] != ("show",) or approved.operands[1] not in EMPTY:
        return cluster(approved, scope)
    if approved.jobs:
        ids = [job.job for job in approved.jobs]
        return admit("scontrol show", approved.jobs, scope, lambda wider: look(wider, lambda rows: _still_ours(approved, wider, rows), ids))
    return look(scope, lambda rows: _all(approved, scope, rows), states=STATES[approved.operands[1]])


def _still_ours(approved: Approved, scope: Scope, rows: tuple[Live, ...]) -> Step:
    """What the controller knows no more is asked for as it is: that it is gone is scontrol's to say."""
    if strangers := strange(approved.jobs, scope, rows):
        return not_here("scontrol show", strangers, scope)
    known = {row.id for row in rows} | {row.base for row in rows}
    gone = tuple([job for job in approved.jobs if job.job not in known])
    if gone:  # an id that belongs to nobody now, or to somebody else: the two must look the same
        return Reply(code=1, err=b"slurm_load_jobs error: Invalid job id specified\n" * len(gone))
    return _each(approved, approved.jobs, scope, Reply())


def strange(jobs: tuple[JobId, ...], scope: Scope, rows: tuple[Live, ...]) -> tuple[JobId, ...]:
    """Jobs of one's own that have an id from the ledger, and were not submitted from here."""
    others = {number for row in rows if not row.session for number in (row.id, row.base)}
    return tuple([job for job in jobs if job.job in others])


def _all(approved: Approved, scope: Scope, rows: tuple[Live, ...]) -> Step:
    jobs = tuple([JobId(job=number) for number in sorted({row.base for row in rows if row.session})])
    if len(jobs) > MOST_SHOWN:
        return refused("scontrol", f"{len(jobs)} jobs; {MOST_SHOWN} can be shown at once; name those that you want, or use squeue or sacct")
    return _each(approved, jobs, scope, Reply())


def _each(approved: Approved, jobs: tuple[JobId, ...], scope: Scope, so_far: Reply) -> Step:
    """One after the other. Where all are asked for, one that has gone meanwhile is no mistake."""
    if not jobs:
        return so_far if so_far.out or so_far.err or approved.jobs else Reply(out=f"{EMPTY[approved.operands[1]]}\n".encode())
    words = rebuild(replace(approved, jobs=jobs[:1]))

    def finish(result: Result) -> Step:
        told = Reply() if result.code and not approved.jobs else with_reasons(result, (jobs[0].job,), scope)
        whole = Reply(code=told.code or so_far.code, out=so_far.out + told.out, err=so_far.err + told.err)
        if len(whole.out) > MOST:
            return refused("scontrol", "this is too much to show at once; name the jobs that you want")
        return _each(approved, jobs[1:], scope, whole)

    return Command(program="scontrol", words=words, finish=finish, seconds=SECONDS)
