"""A jail started as any other: what is seen in it becomes what doctor says is enforced. Starts a jail.

Everything that is tried inside is tried outside first: what cannot be done by this user anyway shows nothing.
"""

from __future__ import annotations

import os
import sys

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.__main__ import launch_guarded
from agent_sandbox.launcher.launch import decide, open_case
from agent_sandbox.launcher.policy import Property
from agent_sandbox.launcher.resolve.hidden import resolve_hidden
from agent_sandbox.launcher.seeing import sight
from agent_sandbox.launcher.seeing.child import in_child
from agent_sandbox.launcher.seeing.controls import Controls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.cli import Request
    from agent_sandbox.launcher.launch import Case, Decision
    from agent_sandbox.launcher.seeing.child import Ended

LONGEST = 30  # seconds
CANARY = "DOCTOR_CANARY_TOKEN"
NO_CAPABILITIES = "0" * 16
NAMESPACES = {"bwrap": ("user", "mnt", "pid", "ipc", "uts"), "firejail": ("mnt", "pid", "ipc", "uts"), "landlock": ()}
FILTERED = "2"  # Seccomp: a filter is loaded


@record
class Measured:
    name: str
    holds: bool | None  # None = it could not be seen
    found: str
    property: Property | None = None  # a gap in it may be named: then nobody claimed that this holds
    word: str = ""  # which its reason must have: there are several ways to leave a property open
    notes: tuple[str, ...] = ()


@record
class Measurement:
    case: Case | None  # None = it did not come to a launch
    decision: Decision | None
    rows: tuple[Measured, ...]


def measure(request: Request) -> Measurement:
    """In an empty directory; where an admin does not take that for a project, in the one that was asked for."""
    os.environ[CANARY] = "seen"  # must not get in
    with Controls() as controls:
        first = _measure_in(controls.empty, request, controls)
        return first if first.decision else _measure_in(request.project, request, controls)


def _measure_in(project: str, request: Request, controls: Controls) -> Measurement:
    case = None
    try:
        asked = replace(
            request, word="", project=project, command=("true",), dry_run=False,
            settings={**request.settings, "sandbox.quiet": True, "limits.wall_time": LONGEST},
        )  # fmt: skip
        case = open_case(asked)
        arguments = (*controls.arguments, *_readable_hidden(case))
        asked = replace(asked, command=(case.host.python, "-I", "-S", "-c", _source(), *arguments))
        decision = decide(replace(case, request=asked))
    except UserError as error:
        notes = (error.hint,) if error.hint else ()
        return Measurement(case=case, decision=None, rows=(Measured(name="jail", holds=False, found=error.problem, notes=notes),))
    outside = _parse(in_child(lambda: _look(arguments)).out)
    ended = in_child(lambda: _launch(asked))
    if ended.code:
        failed = Measured(name="jail", holds=False, found=_said(ended))
        return Measurement(case=case, decision=decision, rows=(failed,))
    started = Measured(name="jail", holds=True, found="a command ran in it; what follows was seen there")
    rows = (started, *_properties(_parse(ended.out), outside, decision), *_proxy(_parse(ended.out), case, decision))
    return Measurement(case=case, decision=decision, rows=rows)


def _said(ended: Ended) -> str:
    """But for the advice to ask whom we are."""
    lines = [line.strip() for line in ended.err.splitlines() if "agent-sandbox doctor" not in line]
    return " ".join(filter(None, lines)) or f"it ended with status {ended.code}"


def _readable_hidden(case: Case) -> list[str]:
    """What the jail must not show and this user can read: the control of the measurement."""
    return [one.path for one in resolve_hidden(case.settings, case.places, case.disk) if os.access(one.path, os.R_OK)]


def _source() -> str:
    with open(sight.__file__, encoding="utf-8") as file:
        return file.read()


def _look(arguments: tuple[str, ...]) -> int:
    sight.main(*arguments)
    sys.stdout.flush()
    return 0


def _launch(request: Request) -> int:
    """With an open file that must not get in."""
    os.set_inheritable(os.open("/", os.O_RDONLY), True)
    return launch_guarded(request)


def _parse(said: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)


def _properties(seen: dict[str, str], outside: dict[str, str], decision: Decision) -> Iterator[Measured]:
    yield from _privileges(seen, outside, decision)
    yield from _namespaces(seen, decision)
    yield from _files(seen, outside)
    yield from _environment(seen, decision)
    yield from _reach(seen, outside, decision)


def _row(name: str, holds: bool, words: str, otherwise: str, property: Property | None = None, word: str = "") -> Measured:
    return Measured(name=name, holds=holds, found=words if holds else otherwise, property=property, word=word)


def _privileges(seen: dict[str, str], outside: dict[str, str], decision: Decision) -> Iterator[Measured]:
    """What Landlock cannot take from the bounding set, no program gets back: there is no_new_privs."""
    if "CapEff" not in seen and Property.PIDS in decision.policy.required:
        for name in ("capabilities", "no_new_privs", "syscalls"):
            yield Measured(name=name, holds=None, found="cannot be seen from inside: /proc is closed there, as sandbox.require wants it")
        return
    names = ("CapEff", "CapPrm", "CapInh") if decision.backend.name == "landlock" else ("CapEff", "CapPrm", "CapInh", "CapBnd")
    left = [name for name in names if seen.get(name) != NO_CAPABILITIES]
    yield _row("capabilities", not left, "none", f"some are left: {' '.join(left)}")
    yield _row("no_new_privs", seen.get("NoNewPrivs") == "1", "set", "not set")
    mode = decision.policy.syscalls.mode
    loaded = f"filter {mode}" if mode != "off" else "no list of calls: seccomp.mode is off"
    yield _row("syscalls", mode == "off" or _is_filtered(seen, outside, decision), loaded, "no filter", Property.SYSCALLS)


def _is_filtered(seen: dict[str, str], outside: dict[str, str], decision: Decision) -> bool:
    """As many filters more than outside as the plan has: Landlock's own one does not stand for the list of calls."""
    domain = decision.plan.domain
    wanted = len(domain.filters) if domain else 1
    counts = [one.get("Seccomp_filters", "") for one in (seen, outside)]
    more = int(counts[0]) - int(counts[1]) if all(one.isdecimal() for one in counts) else wanted
    return seen.get("Seccomp") == FILTERED and more >= wanted


def _namespaces(seen: dict[str, str], decision: Decision) -> Iterator[Measured]:
    wanted = NAMESPACES[decision.backend.name]
    if not wanted:
        return
    if decision.policy.network.mode in ("isolated", "proxied"):
        wanted = (*wanted, "net")
    shared = [name for name in wanted if seen.get(name, "") in ("", os.readlink(f"/proc/self/ns/{name}"))]
    yield _row("namespaces", not shared, f"own: {' '.join(wanted)}", f"shared with the host: {' '.join(shared)}")


def _files(seen: dict[str, str], outside: dict[str, str]) -> Iterator[Measured]:
    can = [path for name, path in (("outside", "a directory of yours outside the project"), ("usr", "/usr")) if seen.get(name) == "yes"]
    words = f"a directory of yours outside the project cannot be written ({seen.get('outside')})"
    yield _row("fs-write", not can and outside.get("outside") == "yes", words, f"can be written: {', '.join(can)}", Property.FS_WRITE)
    shown, hidden = seen.get("shown"), outside.get("shown", "0")
    gone = f"{hidden} paths that you can read outside cannot be read"
    yield _row("hidden", shown == "0", gone, f"{shown} of {hidden} paths can be read", Property.HIDDEN)


def _environment(seen: dict[str, str], decision: Decision) -> Iterator[Measured]:
    kept = CANARY not in dict(decision.policy.environment.removed)  # somebody allows such names
    found = "lets tokens in, as the settings say" if kept else "a token did not get in"
    yield _row("environment", kept or seen.get("canary") == "gone", found, "a token got in", Property.ENVIRONMENT)
    yield _row("open files", seen.get("files") == "0", "none inherited", f"inherited: {seen.get('files')}")


def _proxy(seen: dict[str, str], case: Case, decision: Decision) -> Iterator[Measured]:
    """Asked for the same service: it refuses that, unless an admin has opened this machine."""
    if decision.policy.network.mode != "proxied":
        return
    answer = seen.get("proxy", "")
    opened = bool(case.settings.names("network.floor_open")) and answer in ("200", "403", "502")
    words = "answers, and lets through what an admin has opened" if answer != "403" else "answers, and refuses a service on this machine (403)"
    otherwise = f"does not refuse a service on this machine, or does not answer: {answer or 'none is there'}"
    yield _row("proxy", answer == "403" or opened, words, otherwise)


REACH = (
    ("signals", Property.PIDS, "signal", "a process of yours outside", "cannot be signalled", "can be signalled"),
    ("processes", Property.PIDS, "/proc", "a process of yours outside", "cannot be seen", "can be seen in /proc"),
    ("unix-sockets", Property.UNIX_SOCKETS, "", "a socket of yours outside", "cannot be reached", "can be reached"),
    ("abstract-sockets", Property.ABSTRACT_SOCKETS, "", "an abstract socket outside", "cannot be reached", "can be reached"),
    ("network", Property.NETWORK, "", "a service on this machine", "cannot be reached", "can be reached"),
)  # fmt: skip


def _reach(seen: dict[str, str], outside: dict[str, str], decision: Decision) -> Iterator[Measured]:
    for name, property, word, what, cannot, can in REACH:
        if name == "network" and decision.policy.network.mode == "open":
            continue
        if outside.get(name) != "yes":
            yield Measured(name=name, holds=False, found=f"could not be measured: outside, too, {what} gives: {outside.get(name)}")
        else:
            answer = seen.get(name, "yes")
            yield _row(name, answer != "yes", f"{what} {cannot} ({answer})", f"{what} {can}", property, word)
