"""`agent-sandbox network log`: what a session asked for, and what was decided. From the audit log; inside, from the session's own proxy."""

from __future__ import annotations

import json
import os
import time

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher.own import summary_path
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.seeing.output import put, put_table, read_count, refuse_more, take_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agent_sandbox.launcher.cli import Request

    Event = dict[str, object]

USAGE = "agent-sandbox network log [--follow] [--json] [-n N] [--session ID]"
COLUMNS = ("TIME (UTC)", "VERDICT", "DESTINATION", "BYTES", "SECONDS", "RULE")
SHOWN = 50
PAUSE = 0.5  # seconds between two looks
VERDICTS = {"allow": "allowed", "refuse": "refused", "fail": "failed", "malformed": "malformed", "left out": "left out"}


@record
class Asked:
    session: str
    most: int
    follow: bool
    json: bool


def run(request: Request) -> int:
    as_json, words = take_json(request.command, request.json)
    word, *rest = words or ("",)
    if word != "log":
        raise UserError(f"network {printable(word)} is not a command" if word else "network what?", hint=f"usage: {USAGE}")
    asked = read_options(rest, as_json)
    find = events_inside if summary_path() else lambda: events_outside(asked.session)
    return follow(find, asked) if asked.follow else show(find(), asked, nothing="" if summary_path() else about_nothing(asked.session))


def read_options(words: Sequence[str], as_json: bool) -> Asked:
    session, most, following, left = "", SHOWN, False, list(words)
    while left:
        name = left.pop(0)
        if name in ("--follow", "-f"):
            following = True
        elif name == "--session" and left:
            session = left.pop(0)
        elif name == "-n" and left:
            most = read_count(left.pop(0), USAGE)
        else:
            refuse_more([name], USAGE)
    return Asked(session=session, most=most, follow=following, json=as_json)


def show(events: Sequence[Event], asked: Asked, nothing: str = "") -> int:
    chosen = events[len(events) - min(asked.most, len(events)) :]
    if asked.json:
        put_lines(chosen)
    elif chosen:
        put_table([COLUMNS, *map(_row, chosen)])
    else:
        put(nothing or "this session has asked for nothing on the network yet")
    return 0


def about_nothing(session: str) -> str:
    """Which session was meant, for somebody who may have meant another one."""
    from agent_sandbox.launcher.seeing.audit import all_events, own_audit

    events = all_events(own_audit())
    if not events:
        return "the audit log is empty: no session was started yet, or audit.enabled is off"
    if session and not any(event.get("session") == session for event in events):
        raise UserError(f"the audit log knows no session {printable(session)}", hint="`agent-sandbox audit show` has their names")
    which = f"session {printable(session or _newest(events))}" + ("" if session else ", the latest here,")
    return f"{which} asked for nothing on the network; for another one: --session ID (`agent-sandbox audit show` has their names)"


def follow(find: Callable[[], Sequence[Event]], asked: Asked) -> int:
    """Until Ctrl-C, or until the session ends."""
    seen: set[str] = set()
    try:
        while True:
            fresh = [event for event in find() if json.dumps(event) not in seen]
            seen.update(json.dumps(event) for event in fresh)
            for event in fresh:
                put_lines([event]) if asked.json else put("  ".join(printable(part) for part in _row(event)))
            time.sleep(PAUSE)
    except (KeyboardInterrupt, ConnectionError):
        return 0


def put_lines(events: Iterable[Event]) -> None:
    for event in events:
        print(json.dumps(event), flush=True)


def events_outside(session: str) -> list[Event]:
    from agent_sandbox.launcher.seeing.audit import all_events, own_audit

    events = all_events(own_audit())
    session = session or _newest(events)
    return [{name: value for name, value in event.items() if name != "prev"} for event in events if is_of(event, session)]


def is_of(event: Event, session: str) -> bool:
    return event.get("event") == "network" and event.get("session") == session


def _newest(events: Sequence[Event]) -> str:
    """The one that runs in this directory, or the last that began here, or anywhere."""
    here = os.getcwd()
    begun = [event for event in events if event.get("event") == "start"]
    fitting = [event for event in begun if str(event.get("project")) == here] or begun
    return str(fitting[-1].get("session", "")) if fitting else ""


def events_inside() -> list[Event]:
    """Asked of the proxy, which keeps the latest: the log itself is not there."""
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    where = urlsplit(os.environ.get("http_proxy", ""))
    if where.hostname != "127.0.0.1" or not where.port:
        raise UserError("this jail has no proxy that could be asked", hint="`agent-sandbox explain network.mode` says why")
    try:
        connection = HTTPConnection(where.hostname, where.port, timeout=10)
        connection.request("GET", "/agent-sandbox/log")
        answer = connection.getresponse()
        text = answer.read().decode()
    except (OSError, HTTPException) as error:
        raise UserError(f"the proxy of this session does not answer: {error}")
    if answer.status != 200:
        raise UserError(f"the proxy of this session keeps no list of decisions ({answer.status})", hint="the log outside has them: `network log`")
    return [json.loads(line) for line in text.splitlines()]


def _row(event: Event) -> tuple[str, ...]:
    time_of_day = str(event.get("time", "")).rpartition("T")[2][:8]
    verdict = VERDICTS.get(str(event.get("verdict")), str(event.get("verdict")))
    if "connections" in event:
        return (time_of_day, verdict, f"{event['connections']} more connections", "", "", "too many at once to write each down")
    moved = sum(value for name in ("sent", "received") if isinstance(value := event.get(name), int))
    host, port = str(event.get("host") or "-"), event.get("port")
    destination = f"[{host}]:{port}" if ":" in host else f"{host}:{port}" if port else host
    return (time_of_day, verdict, destination, str(moved), f"{event.get('seconds', 0)}", str(event.get("rule") or event.get("why") or ""))
