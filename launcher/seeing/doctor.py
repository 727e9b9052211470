"""`agent-sandbox doctor`: which backends run here, which one is taken, and what holds in its jail: all of it measured by doing it."""

from __future__ import annotations

import sys
import textwrap

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.record import record
from agent_sandbox.launcher.backends.choose import ORDER, load
from agent_sandbox.launcher.backends.landlock import can_supervise
from agent_sandbox.launcher.launch import Case, open_audit, open_case, policy_for
from agent_sandbox.launcher.probe import printable, read_host, read_kernel
from agent_sandbox.launcher.seccomp.filters import ready_filter
from agent_sandbox.launcher.seeing.facts import is_setuid, read_version
from agent_sandbox.launcher.seeing.measured import measure
from agent_sandbox.launcher.seeing.output import put, put_json, refuse_more, take_json
from agent_sandbox.launcher.tries import find_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.cli import Request
    from agent_sandbox.launcher.policy import Gap, Host
    from agent_sandbox.launcher.seeing.measured import Measured, Measurement

USAGE = "agent-sandbox doctor [--json]"
WIDTH, NAME_WIDTH = 80, 16


@record
class Check:
    name: str
    ok: bool | None  # None = it is not so, and nobody said that it would be
    found: str
    notes: tuple[str, ...] = ()  # what was put back, what to do


def run(request: Request) -> int:
    as_json, rest = take_json(request.command, request.json)
    refuse_more(rest, USAGE)
    checks = tuple(examine(request))
    ready = all(check.ok is not False for check in checks)
    if as_json:
        shown = [{name: getattr(check, name) for name in ("name", "ok", "found", "notes")} for check in checks]
        put_json({"ready": ready, "checks": shown})
    else:
        for check in checks:
            put_check(check)
        put("ready" if ready else "not ready", "good" if ready else "error")
    return 0 if ready else 1


def examine(request: Request) -> Iterator[Check]:
    host = read_kernel(read_host())
    try:
        case = open_case(request)
    except UserError as error:
        yield from _backends(host, "/nonexistent", asked="auto")
        where = f"{error.where}: " if error.where else ""
        yield Check(name="config", ok=False, found=where + error.problem, notes=(error.hint,))
        return
    backends = tuple(_backends(host, case.places.state, case.settings.text("sandbox.backend")))
    yield from backends
    yield from _config(case)
    yield _filter(case)
    yield _audit(case)
    measured = measure(request)
    yield from _choice(measured, host, {check.name for check in backends if check.ok})
    yield from (judge(one, measured.decision.gaps if measured.decision else ()) for one in measured.rows)


def _backends(host: Host, state: str, asked: str) -> Iterator[Check]:
    """Each is run, whatever is remembered of it. One that was not asked for by name may be missing."""
    for name in ORDER:
        reasons = find_out(name, host, state)
        if not reasons:
            yield _landlock(host) if name == "landlock" else _program(name, host)
        for reason in reasons:
            yield Check(name=name, ok=False if name == asked else None, found=reason.what, notes=reason.fix)


def _program(name: str, host: Host) -> Check:
    path = host.firejail if name == "firejail" else host.bwrap
    version = ".".join(map(str, read_version(path))) or "of unknown version"
    idle = name == "bwrap" and is_setuid(path)
    return Check(name=name, ok=True, found=f"{path} {version} runs", notes=("it is setuid root, which is not needed here",) if idle else ())


def _landlock(host: Host) -> Check:
    words = "a supervisor can run" if can_supervise(host) else "no supervisor can run"
    notify = "seccomp can notify" if host.notify else "seccomp cannot notify"
    return Check(name="landlock", ok=True, found=f"ABI {host.landlock}; {words} ({notify}, Yama's ptrace_scope is {host.yama})")


def _choice(measured: Measurement, host: Host, running: set[str]) -> Iterator[Check]:
    """Which one, why, and what it cannot give to the present settings."""
    if measured.case is None or measured.decision is None:
        return
    taken, asked = measured.decision.backend.name, measured.case.settings.text("sandbox.backend")
    why = f"asked for by {measured.case.settings.origin('sandbox.backend')}" if asked != "auto" else _why(measured.case, taken, host, running)
    notes = tuple(gap.line() for gap in (*measured.decision.gaps, *measured.decision.policy.weaknesses))
    yield Check(name="choice", ok=True, found=f"{taken}: {why}", notes=notes)
    network = measured.decision.policy.network
    yield Check(name="network mode", ok=True, found=f"{network.mode}" + (f" ({network.why})" if network.why else ""))


def _why(case: Case, taken: str, host: Host, running: set[str]) -> str:
    parts = []
    for name in ORDER[: ORDER.index(taken)]:
        parts.append(f"{name} {_shortcoming(case, name, host) if name in running else 'does not run'}")
    return f"auto takes it, since {' and '.join(parts)}" if parts else "auto takes it first, and it runs"


def _shortcoming(case: Case, name: str, host: Host) -> str:
    backend = load(name)
    try:
        policy = policy_for(case, backend)
    except UserError as error:
        return f"cannot: {error.problem}"
    missing = [str(gap.property) for gap in backend.gaps(policy, host) if not gap.weak and gap.property in policy.required]
    return f"leaves more open: {', '.join(missing)}"


def judge(one: Measured, gaps: tuple[Gap, ...]) -> Check:
    """What does not hold is a failure, unless just that was named as a gap; a weak point excuses nothing."""
    named = one.holds is False and any(one.property == gap.property and one.word in gap.reason for gap in gaps if not gap.weak)
    return Check(name=one.name, ok=None if named else one.holds, found=one.found + (" (a gap, see choice)" if named else ""), notes=one.notes)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _config(case: Case) -> Iterator[Check]:
    files = {layer.path for layer in case.settings.layers if layer.path}  # an admin's is two layers: what holds, and [defaults]
    clamps = tuple(clamp.line() for clamp in case.settings.clamps)
    found = _count(len(files), "file") + " read" + (f", {_count(len(clamps), 'value')} put back" if clamps else "")
    yield Check(name="config", ok=True, found=found, notes=clamps)
    needed = case.settings.unready()
    for name in (name for name, key in KEYS.items() if not key.ready and case.settings.is_set(name)):
        words = "a launch that needs it is refused" if name in needed else "no harm so far"
        notes = (f"set by {case.settings.origin(name)}",)
        yield Check(name="later part", ok=name not in needed, found=f"{name} waits for it: {words}", notes=notes)


def _filter(case: Case) -> Check:
    mode, nested = case.settings.text("seccomp.mode"), case.settings.flag("sandbox.nested_userns")
    if mode == "off":
        return Check(name="seccomp", ok=True, found=f"switched off by {case.settings.origin('seccomp.mode')}")
    try:
        ready_filter(mode, case.host.machine, nested)
    except UserError as error:
        return Check(name="seccomp", ok=False, found=error.problem, notes=(error.hint,))
    return Check(name="seccomp", ok=True, found=f"filter {mode} for {case.host.machine}")


def _audit(case: Case) -> Check:
    """Written to, since nothing less shows that it can be."""
    audit = open_audit(case.settings, case.places, case.host)
    if not audit.enabled:
        return Check(name="audit", ok=True, found=f"switched off by {case.settings.origin('audit.enabled')}")
    problem = audit.write("doctor", {})
    return Check(name="audit", ok=not problem, found=problem or f"written to {audit.directory}")


def put_check(check: Check) -> None:
    mark = _mark(check.ok)
    colour = {True: "good", False: "error", None: "quiet"}[check.ok]
    first, *rest = _wrapped(check.found, WIDTH - NAME_WIDTH - 4) or [""]
    put(f"{mark} {check.name.ljust(NAME_WIDTH)} {first}", colour)
    for line in rest:
        put(" " * (NAME_WIDTH + 3) + line)
    for note in check.notes:
        pasted = note.startswith(" ")
        for line in [note] if pasted else _wrapped(note, WIDTH - 5):
            put(f"    {line}")


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), width, break_on_hyphens=False)


def _mark(ok: bool | None) -> str:
    """As the locale can spell it."""
    try:
        "✓✗–".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return {True: "ok", False: "NO", None: "--"}[ok]
    return {True: "✓", False: "✗", None: "–"}[ok]
