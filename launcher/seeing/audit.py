"""`agent-sandbox audit show | verify`: the log of launches as a table, and whether its chain holds.

The chain tells that a line was changed, put in or taken out between two others. It cannot tell that the last lines are
missing; and where old files were dropped, the first line that is left is the anchor.
"""

from __future__ import annotations

import json
import os
import shlex

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.location import ADMIN_DIR
from agent_sandbox.config.record import record
from agent_sandbox.config.settings import Settings
from agent_sandbox.launcher.audit import FIRST, Audit, hash_of
from agent_sandbox.launcher.launch import open_audit
from agent_sandbox.launcher.probe import Disk, printable, read_host
from agent_sandbox.launcher.resolve.project import find_places
from agent_sandbox.launcher.seeing.output import put, put_json, put_table, read_count, refuse_more, take_json
from agent_sandbox.launcher.session import base_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_sandbox.launcher.cli import Request

USAGE = "agent-sandbox audit show [--json] [-n N] [--session ID] | audit verify [--json]"
SHOWN = 20


def run(request: Request) -> int:
    as_json, words = take_json(request.command, request.json)
    word, *rest = words or ("",)
    if word not in ("show", "verify"):
        raise UserError(f"audit {printable(word)} is not a command" if word else "audit what?", hint=f"usage: {USAGE}")
    audit = own_audit()
    if word == "show":
        return show(audit, read_options(rest), as_json)
    refuse_more(rest, USAGE)
    return report(verify(audit), as_json)


def own_audit() -> Audit:
    """Where launches of this user on this host write, whatever the settings say."""
    host = read_host()
    return open_audit(Settings(values={}, clamps=(), layers=()), find_places(host, Disk(), ADMIN_DIR, base_directory(host.uid)), host)


@record
class Asked:
    most: int = SHOWN
    session: str = ""


def read_options(words: Sequence[str]) -> Asked:
    most, session, left = SHOWN, "", list(words)
    while left:
        name = left.pop(0)
        if name not in ("-n", "--session") or not left:
            refuse_more([name], USAGE)
        value = left.pop(0)
        if name == "--session":
            session = value
        else:
            most = read_count(value, USAGE)
    return Asked(most=most, session=session)


def show(audit: Audit, asked: Asked, as_json: bool) -> int:
    """The newest last. JSON is one object a line, as the log has it."""
    events = [e for e in all_events(audit) if not asked.session or e.get("session") == asked.session]
    chosen = events[len(events) - min(asked.most, len(events)) :]
    if as_json:
        for event in chosen:
            print(json.dumps(event))
    elif chosen:
        put_table([("TIME (UTC)", "EVENT", "SESSION", "WHAT"), *map(_row, chosen)])
    else:
        put("nothing is in the audit log" + (" about this session" if asked.session else ""))
    return 0


def all_events(audit: Audit) -> list[dict[str, object]]:
    found = [_parsed(line) for path in (*audit.files(), *audit.loose_files()) for line in read_lines(path)]
    return sorted([event for event in found if event], key=lambda event: str(event.get("time")))


def _parsed(line: bytes) -> dict[str, object]:
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


def read_lines(path: str) -> Iterator[bytes]:
    """The whole lines of a file; what a crash left half-written at its end is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            yield from (line[:-1] for line in file if line.endswith(b"\n"))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=printable(path))


def _row(event: dict[str, object]) -> tuple[str, ...]:
    time = str(event.get("time", ""))[:19].replace("T", " ")
    return (time, str(event.get("event", "")), str(event.get("session", "")), _what(event))


def _what(event: dict[str, object]) -> str:
    parts = []
    if event.get("event") == "end":
        parts.append("killed" if event.get("code") is None else f"exit {event['code']}")
        parts += [f"{event['seconds']} s"] if "seconds" in event else []
    if event.get("event") == "slurm":
        parts += _asked(event)
    if event.get("event") == "network":
        parts += [str(event.get("verdict")), f"{event.get('host') or '-'}:{event.get('port', '')}", str(event.get("rule", ""))]
    command = event.get("command")
    parts += [shlex.join(map(str, command))] if isinstance(command, list) else []
    parts += [str(event[name]) for name in ("why", "what", "backend", "project", "shortened") if event.get(name)]
    for name in ("gaps", "clamps", "found"):
        lines = event.get(name)
        parts += map(str, lines) if isinstance(lines, list) else []
    return " · ".join(parts)


def _asked(event: dict[str, object]) -> list[str]:
    """What was asked of the batch scheduler, and what came of it."""
    words = event.get("arguments")
    asked = " ".join([str(event.get("command", "")), *(_shell_word(str(word)) for word in (words if isinstance(words, list) else []))])
    parts = [asked, *(f"{name} {event[name]}" for name in ("job", "jobs") if event.get(name))]
    if event.get("code"):
        parts.append("refused" if event.get("verdict") == "refuse" else f"exit {event['code']}")
    return [*parts, *str(event.get("said", "")).splitlines()]


def _shell_word(word: str) -> str:
    """`…` stands for what is not told, and needs no quotes."""
    return word if "…" in word and not set(word) & set(" '\"\\") else shlex.quote(word)


@record
class Verified:
    lines: int
    files: int
    broken: str = ""  # file:line
    why: str = ""


def verify(audit: Audit) -> Verified:
    """Every line must name the hash of the one before, through all files; each single process's chain by itself."""
    loose = audit.loose_files()
    lines = 0
    for chain in (audit.files(), *([path] for path in loose)):
        expected = FIRST if chain and chain[0] in loose else ""
        for place, line in _numbered(chain):
            claimed = _parsed(line).get("prev")
            if claimed is None or (expected and claimed != expected):
                why = "not a line of this log" if claimed is None else "does not follow the line before it"
                return Verified(lines=lines, files=len(audit.files()) + len(loose), broken=place, why=why)
            expected = hash_of(line)
            lines += 1
    return Verified(lines=lines, files=len(audit.files()) + len(loose))


def _numbered(chain: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for path in chain:
        for number, line in enumerate(read_lines(path), 1):
            yield f"{path}:{number}", line


def report(found: Verified, as_json: bool) -> int:
    if as_json:
        put_json({"intact": not found.broken, **vars(found)})
    elif found.broken:
        put(f"{printable(found.broken)}: {found.why}; {found.lines} lines before it are intact", "error")
    else:
        put(f"intact: {found.lines} lines in {found.files} files", "good")
    return 1 if found.broken else 0
