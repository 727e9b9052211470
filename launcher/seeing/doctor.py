"""`agent-sandbox doctor`: is this machine ready, measured by doing it; and if not, which of the known reasons it is."""

from __future__ import annotations

import sys
import textwrap

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.record import record
from agent_sandbox.launcher.backends.bwrap import SCOPES_ABI
from agent_sandbox.launcher.launch import Case, open_audit, open_case
from agent_sandbox.launcher.probe import printable, read_host
from agent_sandbox.launcher.seccomp.filters import ready_filter
from agent_sandbox.launcher.seeing.facts import read_facts, try_stage
from agent_sandbox.launcher.seeing.measured import measure
from agent_sandbox.launcher.seeing.output import put, put_json, refuse_more, take_json
from agent_sandbox.launcher.seeing.reasons import find_reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.cli import Request
    from agent_sandbox.launcher.policy import Host

WIDTH, NAME_WIDTH = 80, 15


@record
class Check:
    name: str
    ok: bool
    found: str
    notes: tuple[str, ...] = ()  # what was put back, what to do


def run(request: Request) -> int:
    as_json, rest = take_json(request.command, request.json)
    refuse_more(rest, "agent-sandbox doctor [--json]")
    checks = tuple(examine(request))
    ready = all(check.ok for check in checks)
    if as_json:
        shown = [{name: getattr(check, name) for name in ("name", "ok", "found", "notes")} for check in checks]
        put_json({"ready": ready, "checks": shown})
    else:
        for check in checks:
            put_check(check)
        put("ready" if ready else "not ready", "good" if ready else "error")
    return 0 if ready else 1


def examine(request: Request) -> Iterator[Check]:
    host = read_host()
    yield from _bwrap(host)
    problem = try_stage()
    yield Check(name="own stage", ok=not problem, found=problem or "user and mount namespace can be made")
    scopes = "" if host.landlock >= SCOPES_ABI else f"; abstract sockets need ABI {SCOPES_ABI} or --network isolated"
    yield Check(name="Landlock", ok=True, found=f"ABI {host.landlock}{scopes}")
    try:
        case = open_case(request)
    except UserError as error:
        where = f"{error.where}: " if error.where else ""
        yield Check(name="config", ok=False, found=where + error.problem, notes=(error.hint,))
        return
    yield from _config(case)
    yield _filter(case)
    yield _audit(case)
    yield from (Check(name=one.name, ok=one.holds, found=one.found) for one in measure(request))


def _bwrap(host: Host) -> Iterator[Check]:
    facts = read_facts(host)
    reasons = find_reasons(facts)
    version = ".".join(map(str, facts.version)) or "of unknown version"
    if not reasons:
        note = ("it is setuid root, which is not needed here",) if facts.setuid else ()
        yield Check(name="bwrap", ok=True, found=f"{facts.bwrap} {version} runs", notes=note)
    for reason in reasons:
        said = (f"bwrap {version} says: {facts.error}",) if facts.error and facts.error not in reason.what else ()
        yield Check(name="bwrap", ok=False, found=reason.what, notes=(*said, *reason.fix))


def _config(case: Case) -> Iterator[Check]:
    files = [layer.path for layer in case.settings.layers if layer.path]
    clamps = tuple(clamp.line() for clamp in case.settings.clamps)
    found = f"{len(files)} files read" + (f", {len(clamps)} values put back" if clamps else "")
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
    first, *rest = _wrapped(check.found, WIDTH - NAME_WIDTH - 4) or [""]
    put(f"{mark} {check.name.ljust(NAME_WIDTH)} {first}", "good" if check.ok else "error")
    for line in rest:
        put(" " * (NAME_WIDTH + 3) + line)
    for note in check.notes:
        pasted = note.startswith(" ")
        for line in [note] if pasted else _wrapped(note, WIDTH - 5):
            put(f"    {line}")


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(printable(text), width, break_on_hyphens=False)


def _mark(ok: bool) -> str:
    """As the locale can spell it."""
    try:
        "✓✗".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "ok" if ok else "NO"
    return "✓" if ok else "✗"
