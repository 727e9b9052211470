"""A path becomes an answer: is it there inside, with which right, by which mount or exception, and from which layer."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.launch import Kernel, choose_for
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.resolve.hidden import resolve_hidden
from agent_sandbox.launcher.seeing.answer import Answer
from agent_sandbox.launcher.summary import right_at
from agent_sandbox.launcher.view import Carving, Kind, is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy
    from agent_sandbox.launcher.probe import Found
    from agent_sandbox.launcher.view import Mount

NOT_THERE, HIDDEN = "not there", "hidden"
CARVED = {Carving.READ: "read", Carving.WRITE: "write", Carving.HIDE: HIDDEN}
UNGRANTED = "nothing grants it"


@record
class Seen:
    """What holds at a real path: the verdict, what made it, and the path that it was made for."""

    verdict: str
    by: str
    at: str
    note: str = ""


def explain_path(text: str, case: Case) -> Answer:
    path = text if text.startswith("/") else f"{case.host.cwd}/{text}"
    if "\0" in path:
        raise UserError("the path has a NUL character in it")
    found = case.disk.follow(path)
    hidden = _hidden_by(found, case)
    try:
        policy = choose_for(case, Kernel(case.host, None)).policy
    except UserError as error:
        seen = Seen(verdict="no jail", by="a launch from here is refused", at="", note=f"{error}".replace("\n ", ";"))
        return _answer(text, replace(seen, verdict=HIDDEN) if hidden else seen, found, hidden, case)
    return _answer(text, look(found, policy, bool(hidden), case), found, hidden, case)


def look(found: Found, policy: Policy, hidden: bool, case: Case) -> Seen:
    for where, _ in found.links:
        mount = policy.view.covering(where)
        if mount and mount.kind in (Kind.DEV, Kind.PROC):
            return _at_mount(where, mount, policy)  # links there are the jail's own, and lead elsewhere inside
        if mount is None or (mount.kind != Kind.BIND and mount.path != where):
            note = f"{printable(where)} is a link, and not there inside; the file is {printable(found.real)}"
            return Seen(verdict=NOT_THERE, by=UNGRANTED, at="", note=note)
    carve = max([c for c in policy.carves if c.carving in CARVED and is_below(found.real, c.path)],
                key=lambda c: len(c.path), default=None)  # fmt: skip
    if carve:
        return Seen(verdict=CARVED[carve.carving], by=carve.origin, at=carve.path)
    mount = policy.view.covering(found.real)
    if mount is None:
        return _at_no_mount(found.real, policy)
    if hidden and mount.kind == Kind.BIND and not case.disk.readable(found.real):
        return Seen(verdict=HIDDEN, by=mount.origin, at=mount.path, note="its permissions keep you out, outside too")
    return _at_mount(found.real, mount, policy)


def _at_no_mount(path: str, policy: Policy) -> Seen:
    if any(is_below(mount.path, path) for mount in policy.view.mounts):
        return Seen(verdict="read", by="on the way to what is granted", at=path, note="only what is granted is in it")
    return Seen(verdict=NOT_THERE, by=UNGRANTED, at="")


def _at_mount(path: str, mount: Mount, policy: Policy) -> Seen:
    right = right_at(mount, policy.view)
    seen = Seen(verdict=right, by=mount.origin, at=mount.path)
    match mount.kind:
        case Kind.MASK:
            return replace(seen, verdict=HIDDEN)
        case Kind.SCRATCH if path != mount.path:
            kept = "what is made here inside ends with the session" if right == "write" else ""
            return replace(seen, verdict=NOT_THERE, by=UNGRANTED, note=kept)
        case Kind.SCRATCH:
            return replace(seen, note="a directory of the jail's own, which ends with the session")
        case Kind.FILE:
            return replace(seen, note="written by agent-sandbox in place of the file outside")
        case Kind.DEV | Kind.PROC:
            return replace(seen, note="the jail's own")
    return seen


def _hidden_by(found: Found, case: Case) -> str:
    """The entry that hides this path, or ""."""
    places = (found.real, *(where for where, _ in found.links))
    hidden = resolve_hidden(case.settings, case.places, case.disk)
    return next((one.rule for one in hidden for path in places if is_below(path, one.path)), "")


def _answer(text: str, seen: Seen, found: Found, hidden: str, case: Case) -> Answer:
    verdict, rule, origin = seen.verdict, seen.by, _origin(seen, case)
    if hidden and verdict in (HIDDEN, NOT_THERE):
        verdict, rule = HIDDEN, f"filesystem.hidden {hidden}" if hidden != "self-protection" else hidden
        entries = case.settings.entries("filesystem.hidden")
        origin = next((entry.origin() for entry in entries if entry.value == hidden), "agent-sandbox")
    notes = [seen.note] if seen.note else []
    notes += [f"the path leads to {printable(found.real)}"] if found.links else []
    notes += ["nothing is there outside"] if not found.kind else []
    return Answer(subject=f"path {text}", verdict=verdict, rule=rule, origin=origin, notes=tuple(notes))


def _origin(seen: Seen, case: Case) -> str:
    """The layer that named what made it so."""
    key = seen.by.partition(" ")[0]
    if key not in KEYS:
        own = {"project": case.request.project or "current directory", UNGRANTED: "default"}
        return own.get(seen.by, "agent-sandbox")
    if not KEYS[key].listed:
        return case.settings.origin(key)
    entries = case.settings.entries(key)
    named = [e.origin() for e in entries if f"{key} {e.value}" == seen.by or case.disk.follow(e.value).real == seen.at]
    return ", ".join(dict.fromkeys(named)) or case.settings.origin(key)
