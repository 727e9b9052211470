"""One launch from request to exit code: the steps in order, each in its own file."""

from __future__ import annotations

import os
import signal
import time

from agent_sandbox.config.ahead import Ahead
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.files import parse
from agent_sandbox.config.layers import load
from agent_sandbox.config.location import ADMIN_DIR, Where
from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher import session as sessions
from agent_sandbox.launcher.aftermath import look_again, remember
from agent_sandbox.launcher.audit import Audit, Log
from agent_sandbox.launcher.backends.choose import check_gaps, choose
from agent_sandbox.launcher.helpers import attach_helpers
from agent_sandbox.launcher.orders import Orders
from agent_sandbox.launcher.own import SUMMARY
from agent_sandbox.launcher.probe import Disk, printable, read_host, read_kernel, read_yama
from agent_sandbox.launcher.resolve.policy import resolve_policy
from agent_sandbox.launcher.resolve.project import find_places, find_project
from agent_sandbox.launcher.say import say
from agent_sandbox.launcher.start import check_command, wrap_command
from agent_sandbox.launcher.summary import summarise
from agent_sandbox.launcher.supervise import die_of, supervise
from agent_sandbox.launcher.tries import try_backend
from agent_sandbox.launcher.view import Carving, Kind, Mount, View, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.backends.choose import Choice
    from agent_sandbox.launcher.cli import Request
    from agent_sandbox.launcher.handover import Guard
    from agent_sandbox.launcher.jsonline import Plain
    from agent_sandbox.launcher.plan import Backend, Plan
    from agent_sandbox.launcher.policy import Gap, Host, Policy, Tried
    from agent_sandbox.launcher.probe import Found
    from agent_sandbox.launcher.resolve.project import Places
    from agent_sandbox.launcher.supervise import Outcome
    from agent_sandbox.launcher.view import Carve

MOST_ARGUMENTS = 1 << 21  # bytes: what the kernel takes for arguments and environment with the usual stack limit


@record
class Case:
    """Everything that is known before a decision: who asks, where, under which settings."""

    request: Request
    host: Host
    disk: Disk
    places: Places
    project: Found
    settings: Settings
    session: str  # its name
    files: tuple[tuple[str, bytes], ...] = ()  # beside the summary, in the jail's own place: name and content
    finish: Callable[[Policy], Policy] | None = None  # the last word on a policy before it becomes a plan
    started_with: Mapping[str, str] | None = None  # our own variables, where those of the host are an agent's (in a job)


@record
class Decision:
    policy: Policy
    backend: Backend
    gaps: tuple[Gap, ...]
    command: tuple[str, ...]
    plan: Plan
    passed_over: tuple[Tried, ...] = ()  # backends that would have come first and do not run here


def launch(request: Request, guard: Guard) -> int:
    case = open_case(request, guard)
    audit = open_audit(case.settings, case.places, case.host)
    try:
        decision = decide(case, guard)
    except UserError as error:
        audit.write("refused", {"project": case.project.real, "why": str(error)})
        raise
    announce(case, decision)
    return execute(case, decision, audit, guard)


def open_case(request: Request, guard: Guard | None = None) -> Case:
    host, disk = read_host(), Disk()
    places = find_places(host, disk, ADMIN_DIR, sessions.base_directory(host.uid))
    project = find_project(request.project or host.cwd, host, disk)
    where = Where(
        user=host.user, uid=host.uid, home=host.home, groups=tuple(name for _, name in host.groups), host=host.name,
        project=project.real, cwd=host.cwd,
    )  # fmt: skip
    parser = Ahead(guard.parsed_ahead) if guard else parse
    settings = load(where, request.settings, use_project_file=request.use_project_file, parse=parser)
    return Case(request=request, host=host, disk=disk, places=places, project=project, settings=settings, session=sessions.new_name())


def decide(case: Case, guard: Guard | None = None, *, in_session: bool = True) -> Decision:
    kernel = Kernel(case.host, guard)
    chosen = choose_for(case, kernel, remember=guard is not None)
    host = kernel.host()
    backend, policy, gaps = chosen.backend, chosen.policy, (*chosen.gaps, *gaps_of_proxy(chosen.policy, case))
    check_gaps(gaps, policy, backend.name)
    command = case.request.command or (case.host.shell,)
    check_command(command, policy, case.disk)
    check_size(command, policy)
    policy = attach_helpers(policy, case, backend.name, in_session=in_session)
    policy = with_summary(policy, case, backend.name, gaps)
    policy = case.finish(policy) if case.finish else policy
    plan = backend.plan(policy, host, command)
    if backend.name == "bwrap":
        started = wrap_command(command, host, case.disk, plan.stage.ignored_signals, ignored_at_start())
        plan = replace(plan, command=started)
    return Decision(policy=policy, backend=backend, gaps=gaps, command=tuple(command), plan=plan, passed_over=chosen.passed_over)


def gaps_of_proxy(policy: Policy, case: Case) -> tuple[Gap, ...]:
    """Asked only where there is another proxy behind ours."""
    if policy.network.mode != "proxied" or not case.settings.text("network.upstream_proxy"):
        return ()
    from agent_sandbox.launcher.proxy.upstream import gaps

    return gaps()


class Kernel:
    """A host with what its kernel can do: found out by the guard meanwhile, and asked for as late as can be."""

    def __init__(self, host: Host, guard: Guard | None) -> None:
        self._host, self._guard = host, guard
        self._known: Host | None = None

    def host(self) -> Host:
        if self._known is None:
            self._known = replace(self._host, yama=read_yama(), **self._guard.kernel()) if self._guard else read_kernel(self._host)
        return self._known


def choose_for(case: Case, kernel: Kernel, *, remember: bool = False) -> Choice:
    """Who only asks leaves nothing behind."""

    def attempt(name: str) -> Tried:
        host = kernel.host() if name == "landlock" else case.host
        return try_backend(name, host, case.places.state, remember=remember)

    return choose(case.settings, kernel.host, attempt, lambda one: policy_for(case, one, kernel))


def policy_for(case: Case, backend: Backend, kernel: Kernel | None = None) -> Policy:
    """What Landlock can do depends on the kernel; the others are asked without waiting for it."""
    host = kernel.host() if kernel and backend.name == "landlock" else case.host
    shape = backend.shape(host, sessions.room_of(case.session))
    return resolve_policy(case.settings, case.host, case.disk, case.places, case.project, shape)


def check_size(command: tuple[str, ...], policy: Policy) -> None:
    words = [*command, *policy.environment.values, *policy.environment.values.values()]
    size = sum(len(word) + 9 for word in words)
    if size > MOST_ARGUMENTS:
        problem = f"the arguments and variables come to {size} bytes, more than the kernel takes"
        raise UserError(problem, hint="put long arguments in a file")


def ignored_at_start() -> frozenset[int]:
    """What the caller has ignored for us (`nohup`), and the command must find ignored as well."""
    return frozenset(number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN)


def with_summary(policy: Policy, case: Case, backend: str, gaps: tuple[Gap, ...]) -> Policy:
    """The read-only page inside that says what holds there, and what else this launch brings along."""
    files = ((SUMMARY, summarise(policy, case.settings, backend, gaps).encode()), *case.files)
    made = [Mount(path=f"{policy.rooms.own}/{name}", kind=Kind.FILE, content=content, origin="agent-sandbox") for name, content in files]
    return replace(policy, view=View(mounts=in_order([*policy.view.mounts, *made])))


def open_audit(settings: Settings, places: Places, host: Host) -> Audit:
    return Audit(Log(
        directory=f"{places.state}/audit", host=host.name, enabled=settings.flag("audit.enabled"),
        keep_days=settings.number("audit.keep_days"), max_size=settings.number("audit.max_size"),
    ))  # fmt: skip


def announce(case: Case, decision: Decision) -> None:
    """One line on what was built; one each for what was put back and what is missing, also when quiet.

    Not said again: what somebody accepted by name. What a backend never has is told by name, in the one line – nobody reads six at
    every start – and the weak points that it always has by `doctor` alone.
    """
    quiet = case.settings.flag("sandbox.quiet")
    for clamp in case.settings.clamps:
        say(clamp.line(), "warning")
    told = [gap for gap in decision.gaps if gap.property not in decision.policy.accepted]
    for gap in told:
        if not gap.always:
            say(gap.line(), "warning")
    for weakness in decision.policy.weaknesses:
        say(weakness.weak_line(), "warning")
    for note in decision.policy.notes:
        say(note, "warning")
    usual = missing_line([gap for gap in told if gap.always and not gap.weak])
    if not quiet:
        say(start_line(case, decision, usual), "quiet")
    elif usual:
        say(f"{decision.backend.name}: {usual}", "warning")


def missing_line(gaps: Sequence[Gap]) -> str:
    return f"not enforced: {', '.join(dict.fromkeys(gap.property for gap in gaps))} (`agent-sandbox doctor` says why)" if gaps else ""


def start_line(case: Case, decision: Decision, missing: str) -> str:
    policy = decision.policy
    network = f"network {policy.network.mode}" + (f" ({policy.network.why})" if policy.network.why else "")
    parts = [decision.backend.name, f"project {printable(policy.project)}", f"home {policy.home_mode}", network]
    removed = len(policy.environment.removed)
    parts.append(f"{removed} variable{'' if removed == 1 else 's'} removed")
    parts += [helper.line for helper in policy.helpers if helper.line]
    above = repository_above(policy.project, case.disk)
    if above:
        parts.append(f"the repository {printable(above)} above it is not visible")
    if missing:
        parts.append(missing)
    return " · ".join(parts)


def repository_above(project: str, disk: Disk) -> str:
    """A `.git` above the project: its hooks and history stay outside, which surprises people."""
    if disk.kind(f"{project}/.git"):
        return ""
    here = project.rpartition("/")[0]
    while here:
        if disk.kind(f"{here}/.git"):
            return here
        here = here.rpartition("/")[0]
    return ""


def execute(case: Case, decision: Decision, audit: Audit, guard: Guard) -> int:
    """From here on the world changes: session, audit, jail, and everything cleaned up after it."""
    policy = decision.policy
    plan, missing = with_secrets(case, decision, audit)
    session = sessions.name_session(case.host.uid, case.session, session_facts(decision), has_room=decision.plan.room is not None)
    start = time.monotonic()
    sessions.sweep(case.host.uid)
    make_own_places(policy.carves)
    before = remember(policy.carves, policy.project, case.settings.names("project.protect"))
    _warn(audit.write("start", {**start_facts(case, decision, missing), "session": session.id}))
    outcome = supervise(guard, Orders(plan=plan, session=session, log=audit.log))
    found = look_again(before)
    for line in found:
        say(line, "warning")
    seconds = round(time.monotonic() - start, 3)
    _warn(audit.write("end", {"session": session.id, "code": outcome.code, "seconds": seconds, "found": found, "why": outcome.problem}))
    if outcome.died_of:
        die_of(outcome.died_of)
    return report(outcome, policy)


def with_secrets(case: Case, decision: Decision, audit: Audit) -> tuple[Plan, tuple[str, ...]]:
    """Only now, and only for the guard: no decision that is shown or logged holds one."""
    if decision.policy.network.mode != "proxied" or not case.settings.entries("network.inject"):
        return decision.plan, ()
    from agent_sandbox.launcher.proxy.secrets import fill

    try:
        filled = fill(decision, case)
    except UserError as error:
        audit.write("refused", {"project": case.project.real, "why": str(error)})
        raise
    for line in filled.missing:
        say(line, "warning")
    return filled.plan, filled.missing


def make_own_places(carves: tuple[Carve, ...]) -> None:
    """Made now, so that they can be hidden: made by the agent in a writable home, the next launch would believe them."""
    for carve in carves:
        if carve.carving == Carving.HIDE and carve.origin == "self-protection":
            os.makedirs(carve.path, mode=0o700, exist_ok=True)


def _warn(problem: str) -> None:
    if problem:
        say(problem, "warning")


def session_facts(decision: Decision) -> dict[str, Plain]:
    """What `agent-sandbox ps` shows."""
    command = list(decision.command)
    return {"project": decision.policy.project, "backend": decision.backend.name, "command": command, "time": int(time.time())}


def start_facts(case: Case, decision: Decision, missing: tuple[str, ...] = ()) -> dict[str, Plain]:
    policy = decision.policy
    return {
        "user": case.host.user, "pid": os.getpid(), "project": policy.project, "command": [word[:500] for word in decision.command[:50]],
        "backend": decision.backend.name, "home": policy.home_mode, "network": policy.network.mode, "network_asked": policy.network.asked,
        "removed": len(policy.environment.removed), "gaps": [gap.line() for gap in decision.gaps],
        "weaknesses": [gap.weak_line() for gap in policy.weaknesses],
        "clamps": [clamp.line() for clamp in case.settings.clamps], "notes": (*decision.policy.notes, *missing),
        "passed_over": [f"{one.backend}: {one.problem}" for one in decision.passed_over],
    }  # fmt: skip


def report(outcome: Outcome, policy: Policy) -> int:
    if outcome.timed_out:
        say(f"ended after {policy.limits.wall_time} s (limits.wall_time)", "error")
    elif not outcome.started and outcome.problem:
        raise UserError(outcome.problem, hint="`agent-sandbox doctor` finds the reason")
    return outcome.code
