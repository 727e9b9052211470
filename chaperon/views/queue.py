"""squeue, sprio, sacct, sstat: views of jobs. Pure.

Besides the ids the user is always said: an id that Slurm gave to somebody else since then shows nothing.
"""

from __future__ import annotations

import re

from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.rebuild import force, rebuild
from agent_sandbox.chaperon.views.data import sifted
from agent_sandbox.chaperon.views.lookup import MOST, SECONDS, admit, look
from agent_sandbox.chaperon.views.scope import MOST_IDS, NO_LOG, other_users, with_jobs, without
from agent_sandbox.chaperon.wire import Reply, refused
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.command import Result, Step
    from agent_sandbox.chaperon.views.scope import Scope
    from agent_sandbox.chaperon.words import Approved

WORDS_ALONE = ("help", "usage", "version", "helpformat")
MOST_REASONS = 20  # jobs whose reason is told
TODAY, NOW = "00:00:00", "now"
LAUNCH_FAILED = re.compile(rb"(?<![0-9:])0:53(?![0-9:])|JobLaunchFailure")


def queue(approved: Approved, scope: Scope) -> Step:
    """squeue and sprio."""
    refusal = other_users(approved, "users", scope)
    if refusal or _is_help(approved):
        return refusal or _run(approved)
    asked = force(without(approved, "me", "users"), "users", scope.user)
    if approved.jobs:
        return admit(approved.command, approved.jobs, scope, lambda wider: _shown(_as_asked(asked), wider))
    return _narrowed(scope, lambda jobs: _shown(with_jobs(asked, jobs), scope))


def _as_asked(approved: Approved) -> Approved:
    """Steps are looked for among the jobs that they belong to: what is written after `--steps` alone does not stop others."""
    if not approved.has("steps"):
        return approved
    return with_jobs(approved, {job.job for job in approved.jobs})


def _narrowed(scope: Scope, then: Callable[[frozenset[int]], Step]) -> Step:
    """Where there are too many for one word: those that the controller still knows, and of these the newest."""
    if len(scope.jobs) <= MOST_IDS:
        return then(scope.jobs)
    return look(scope, lambda rows: then(frozenset(sorted({row.base for row in rows if row.session})[-MOST_IDS:])))


def accounting(approved: Approved, scope: Scope) -> Step:
    """sacct."""
    refusal = other_users(approved, "user", scope)
    if refusal or _is_help(approved):
        return refusal or _run(approved)
    asked = force(without(approved, "user"), "user", scope.user)
    if approved.jobs:
        return admit(approved.command, approved.jobs, scope, lambda wider: _shown(asked, wider))
    in_time = _as_without_ids(asked)
    if len(scope.jobs) <= MOST_IDS:
        return _shown(with_jobs(in_time, scope.jobs), scope)
    return _ask_which(in_time, scope)


def _as_without_ids(approved: Approved) -> Approved:
    """sacct begins with today, or with now where states are asked for; where it is given ids it would begin with the first job ever."""
    if approved.has("starttime"):
        return approved
    return force(approved, "starttime", NOW if approved.has("state") else TODAY)


def _ask_which(approved: Approved, scope: Scope) -> Command:
    """More jobs than fit into one word: first those of the time that is asked for."""
    times = tuple([one for one in approved.options if one.name in ("starttime", "endtime", "state", "user")])
    bare = force(force(force(replace(approved, options=times), "noheader"), "parsable2"), "format", "JobIDRaw")

    def finish(result: Result) -> Step:
        found = {int(word) for word in result.out.decode("ascii", "replace").split() if word.isdecimal()} & scope.jobs
        if result.code or result.cut or len(found) > MOST_IDS:
            return Reply(code=result.code or 1, err=result.err) if result.err else refused(
                "sacct", f"{len(found)} jobs; {MOST_IDS} can be shown at once; ask for less time with --starttime and --endtime",
            )  # fmt: skip
        return _shown(with_jobs(approved, found), scope)

    return Command(program="sacct", words=(*rebuild(bare), "--allocations"), finish=finish, most=MOST, seconds=SECONDS)


def running(approved: Approved, scope: Scope) -> Step:
    """sstat. Without ids it shows nothing by itself."""
    if _is_help(approved) or not approved.jobs:
        return _run(approved)
    return admit(approved.command, approved.jobs, scope, lambda wider: _shown(approved, wider))


def _is_help(approved: Approved) -> bool:
    """Such a request shows no job, whatever else is asked for; nothing else of it is passed on."""
    return any(approved.has(name) for name in WORDS_ALONE)


def _run(approved: Approved) -> Command:
    kept = tuple([one for one in approved.options if one.name in WORDS_ALONE]) if _is_help(approved) else approved.options
    return Command(program=approved.command, words=rebuild(replace(approved, options=kept)), live=True)


def _shown(approved: Approved, scope: Scope) -> Command:
    """As Slurm writes it; data as JSON or YAML pass a sieve, since Slurm puts everybody's jobs there whatever ids it is given."""
    for form in ("json", "yaml"):
        if approved.has(form):
            return sifted(approved, form, scope)
    told = tuple([job.job for job in approved.jobs][:MOST_REASONS]) if approved.command in ("sacct", "squeue") else ()
    if any(scope.reasons(job) for job in told):
        return Command(program=approved.command, words=rebuild(approved), finish=lambda result: with_reasons(result, told, scope), most=MOST)
    return Command(program=approved.command, words=rebuild(approved), live=True)


def with_reasons(result: Result, jobs: tuple[int, ...], scope: Scope) -> Reply:
    """Why jobs never started, as their nodes said it; that there is no log is a reason only where Slurm says that it could not launch."""
    unlaunched = LAUNCH_FAILED.search(result.out)
    reasons = [(scope.reasons(job), NO_LOG.format(job=job)) for job in jobs]
    told = dict.fromkeys([reason for reason, silent in reasons if reason and (reason != silent or unlaunched)])
    return Reply(code=result.code, out=result.out, err=result.err + "".join([f"{reason}\n" for reason in told]).encode())
