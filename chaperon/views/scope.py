"""Which jobs a session may see and control, and how ids outside of it are refused. Pure.

Ids go to the real command as a list that we made; Slurm does all the rest, so that no text of its is ever searched for rows to hide.
"""

from __future__ import annotations

from agent_sandbox.chaperon.registry import COMMANDS
from agent_sandbox.chaperon.validate import in_order
from agent_sandbox.chaperon.wire import NOT_DONE, Reply, refused
from agent_sandbox.chaperon.words import Setting
from agent_sandbox.config.record import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_sandbox.chaperon.words import Approved, JobId

SESSION, PROJECT, USER = "session", "project", "user"  # slurm.scope, strictest first
CALLED = {SESSION: "that this session submitted", PROJECT: "that were submitted from this project", USER: "that you submitted from inside a jail"}
NOBODY = 99_999_999  # larger than any id that Slurm gives out: a list with it is never empty, and never a single job's
MOST_IDS = 5_000  # in one list: the kernel takes 128 KiB in one word
MOST_TOLD = 10  # ids in one refusal
NO_LOG = "agent-sandbox: job {job} was not started: Slurm could not open its log on the node; the state directory must be the same on every node"

# How each command says that there is no such job. The same for a job of somebody else's and for one that never was.
NO_SUCH_JOB = {
    "squeue": "slurm_load_jobs error: Invalid job id specified",
    "scancel": "scancel: error: Kill job error on job id {job}: Invalid job id specified",
    "scontrol": "Invalid job id specified for job {job}",
    "scontrol show": "slurm_load_jobs error: Invalid job id specified",
}  # fmt: skip


@record
class Tools:
    """Where programs are: our own interpreter and library, and the real Slurm's."""

    python: str
    library: str
    programs: str


@record
class Scope:
    user: str
    uid: int
    kind: str
    jobs: frozenset[int]  # of arrays and jobs with components the first id alone
    sessions: frozenset[str]
    logs: str  # the directory of the sessions' logs
    tools: Tools
    interrupted: bool = False  # there is a submission of which nobody knows what became
    reasons: Callable[[int], str] = lambda job: ""  # why a job never started

    def outside(self, jobs: Iterable[JobId]) -> tuple[JobId, ...]:
        return tuple([job for job in jobs if job.job not in self.jobs])

    def with_jobs(self, jobs: Iterable[int]) -> Scope:
        return replace(self, jobs=self.jobs | frozenset(jobs))

    def session_of(self, log: str) -> str:
        """The session that a log's path names; empty where it is none of ours. Slurm shows `%` of a waiting job's as it was written."""
        for logs in (self.logs, self.logs.replace("%", "%%")):
            session, slash, _ = log.removeprefix(f"{logs}/").partition("/")
            if log.startswith(f"{logs}/") and slash and session in self.sessions:
                return session
        return ""


def listed(jobs: Iterable[int]) -> str:
    """All of them as one word. Slurm takes a list of one for a question about that job, and fails when it has gone."""
    return ",".join(map(str, [NOBODY, *(sorted(jobs) or [NOBODY])]))


def not_here(command: str, jobs: Iterable[JobId], scope: Scope) -> Reply:
    """All or nothing: as Slurm would say it, and why."""
    names = list(dict.fromkeys(map(str, jobs)))
    more = f" and {len(names) - MOST_TOLD} more" if len(names) > MOST_TOLD else ""
    told = names[:MOST_TOLD]
    words = NO_SUCH_JOB.get(command, "{command}: error: Invalid job id specified: {job}")
    command = command.partition(" ")[0]
    slurms = [words.format(command=command, job=name) for name in told]
    why = (
        f"{command}: error: nothing was done: {', '.join(told)}{more}: not among the jobs {CALLED[scope.kind]} (slurm.scope = {scope.kind}); "
        "squeue and sacct without ids list those"
    )
    return Reply(code=1, err="".join([f"{line}\n" for line in (*dict.fromkeys(slurms), why)]).encode(), facts=NOT_DONE)


def other_users(approved: Approved, option: str, scope: Scope) -> Reply | None:
    """What equals the rule is accepted: one's own name or number, in any list."""
    asked = approved.value(option)
    strangers = [name for name in (asked or "").split(",") if name and name not in (scope.user, str(scope.uid))]
    if approved.has("notme"):
        return refused(approved.command, f"--notme: the jobs of other people are not shown here; leave it out, or say --me (you are {scope.user})")
    if not strangers:
        return None
    return refused(
        approved.command, f"--{option}={','.join(strangers)[:200]}: only your own jobs are here; leave it out, or say --{option}={scope.user}",
    )  # fmt: skip


def with_jobs(approved: Approved, jobs: Iterable[int]) -> Approved:
    """On these alone. The list is ours: that it is one need not be found out again, which takes long for thousands."""
    others = without(approved, "jobs")
    return replace(others, options=in_order(COMMANDS[approved.command], (*others.options, Setting(name="jobs", value=listed(jobs)))))


def without(approved: Approved, *names: str) -> Approved:
    return replace(approved, options=tuple([one for one in approved.options if one.name not in names]))
