"""`agent-sandbox ps`: the running sessions of this user, from the records that launches keep while they last."""

from __future__ import annotations

import json
import os
import shlex
import time

from agent_sandbox.launcher.seeing.output import put, put_json, put_table, refuse_more, take_json
from agent_sandbox.launcher.session import RECORD, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.cli import Request

USAGE = "agent-sandbox ps [--json]"
COLUMNS = ("SESSION", "PID", "AGE", "BACKEND", "PROJECT", "COMMAND")


def run(request: Request) -> int:
    as_json, rest = take_json(request.command, request.json)
    refuse_more(rest, USAGE)
    running = find_running(os.getuid())
    if as_json:
        put_json(running)
    elif running:
        put_table([COLUMNS, *(_row(record) for record in running)])
    else:
        put("no session is running")
    return 0


def find_running(uid: int) -> list[dict[str, object]]:
    records = [_read(path) for path, alive in sessions(uid) if alive]
    return sorted([record for record in records if record], key=lambda record: str(record.get("time")))


def _read(directory: str) -> dict[str, object]:
    """Empty for a session that is just beginning, or just ended."""
    try:
        with open(f"{directory}/{RECORD}", encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _row(record: dict[str, object]) -> tuple[str, ...]:
    begun, command = record.get("time"), record.get("command")
    age = time.time() - begun if isinstance(begun, int) else 0
    words = shlex.join(map(str, command)) if isinstance(command, list) else ""
    named = [str(record.get(name, "")) for name in ("backend", "project")]
    return (str(record.get("id", "")), str(record.get("pid", "")), shown_age(age), *named, words)


def shown_age(seconds: float) -> str:
    """In the largest unit that has come up once."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
