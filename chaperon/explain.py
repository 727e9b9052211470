"""`agent-sandbox explain sbatch …`: a command line → the verdict on each option, and the command that would run. Changes nothing.

By the same tables that a chaperon uses. Outside with the settings of a launch here; inside a jail with what its summary says of
them, and with the rights of the jail: nothing can be learned that was not known there.
"""

from __future__ import annotations

import os
import re
import sys

from agent_sandbox.chaperon import stub, words
from agent_sandbox.chaperon.explained import REFUSED, explain
from agent_sandbox.chaperon.orders import LISTS, NUMBERS, Caps, caps_of
from agent_sandbox.chaperon.registry import COMMANDS, variables
from agent_sandbox.chaperon.validate import script_of
from agent_sandbox.chaperon.version import WORDS, read_version
from agent_sandbox.chaperon.views.answer import make_rules
from agent_sandbox.config import kinds
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.own import summary_path
from agent_sandbox.launcher.policy import Network
from agent_sandbox.launcher.resolve.network import may_send_mail
from agent_sandbox.launcher.seeing.child import in_child
from agent_sandbox.launcher.seeing.output import put, put_json, put_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from agent_sandbox.chaperon.explained import Explained
    from agent_sandbox.launcher.cli import Request

NAMES = tuple(COMMANDS)
SECONDS = 10.0
PATH = "/usr/bin:/bin"
HEAD = ("OPTION", "FROM", "VERDICT", "WHY", "INSTEAD")


@record
class Site:
    """Under which rules, and where."""

    caps: Caps
    project: str
    user: str
    mail: bool
    scope: str
    enabled: str
    logs: str  # the directory of a session's logs
    program: str  # the real sbatch, or the stub; "" = there is none
    environment: dict[str, str]  # for it
    origin: Callable[[str], str]  # of a key


def run(request: Request, command: tuple[str, ...], as_json: bool) -> int:
    site = _inside() if summary_path() else _outside(request)
    asked = _asked(command[0], command[1:])
    found = explain(asked, _rules(site, ()), site.scope, site.logs, os.getuid())
    if found.dated and (version := _version(site)):
        found = explain(asked, _rules(site, version), site.scope, site.logs, os.getuid())
    if site.enabled == "off":
        found = replace(found, verdict=REFUSED, argv=(), notes=())
    put_json(_data(found, site)) if as_json else _put(found, site)
    return 0


def _rules(site: Site, version: tuple[int, ...]) -> words.Rules:
    return make_rules(site.caps, site.project, site.user, mail=site.mail, version=version)


def _asked(name: str, typed: tuple[str, ...]) -> words.Request:
    """As its stub would send it: the script is read as sbatch finds it, with the rights of who asks."""
    wanted = script_of(typed) if name == "sbatch" else None
    try:
        script = None if wanted is None else stub.read(*map(os.fsencode, wanted)).decode("utf-8", "surrogateescape")
    except stub.Problem as problem:
        raise UserError(str(problem), hint="explain reads the script for its #SBATCH lines, as sbatch does")
    own = {key: os.environ[key] for key in variables(COMMANDS[name]) if key in os.environ}
    return words.Request(command=name, words=typed, environment=own, cwd=os.getcwd(), script=script)


def _outside(request: Request) -> Site:
    from agent_sandbox.chaperon.installed import find_programs, settings_file
    from agent_sandbox.launcher.backends.bwrap import Bwrap
    from agent_sandbox.launcher.launch import open_case, policy_for

    case = open_case(request)
    settings, host = case.settings, case.host
    policy = policy_for(case, Bwrap())
    programs, conf = find_programs(policy, case), settings_file(policy, case)
    environment = {"PATH": PATH, **({"SLURM_CONF": conf} if conf else {})}
    return Site(
        caps=caps_of(settings), project=case.project.real, user=host.user,
        mail=may_send_mail(settings.text("mail.stubs"), policy.network), scope=settings.text("slurm.scope"),
        enabled=settings.text("slurm.enabled"), logs=f"{case.places.state}/jobs/SESSION",
        program=f"{programs}/sbatch" if programs else "", environment=environment, origin=settings.origin,
    )  # fmt: skip


def _inside() -> Site:
    """The stub is asked for the version: who answers is the chaperon."""
    from shutil import which

    from agent_sandbox.launcher.seeing.inside import read_page

    page = read_page()
    said, network = page["settings"], Network(mode=page["network"]["mode"], asked=page["network"]["asked"])
    return Site(
        caps=caps_in(said), project=page["project"], user=_user(), scope=_choice(said, "slurm.scope"),
        mail=may_send_mail(_choice(said, "mail.stubs"), network), enabled=_choice(said, "slurm.enabled"),
        logs="/…/jobs/SESSION", program=which("sbatch") or "", environment=dict(os.environ), origin=lambda key: said.get(key, ("", "default"))[1],
    )  # fmt: skip


def caps_in(said: dict[str, Any]) -> Caps:
    """From the summary, where values are as a person writes them."""
    numbers = {name: _number(f"slurm.{name}", said) for name in NUMBERS}
    lists = {name: tuple(said[f"slurm.{name}"][0]) if f"slurm.{name}" in said else None for name in LISTS}
    return Caps(**numbers, **lists)  # type: ignore[arg-type]


def _number(key: str, said: dict[str, Any]) -> Any:
    text = said.get(key, (kinds.UNLIMITED, ""))[0]
    return kinds.check(KEYS[key], int(text) if text.isdecimal() else text)


def _choice(said: dict[str, Any], key: str) -> str:
    return str(said.get(key, (KEYS[key].default, ""))[0])


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _version(site: Site) -> tuple[int, ...]:
    if not site.program:
        return ()

    def become() -> int:
        os.execve(site.program, (site.program, *WORDS), site.environment)

    return read_version(in_child(become, SECONDS).out.encode())


def _notes(found: Explained, site: Site) -> list[str]:
    notes = list(found.notes)
    if site.enabled == "off":
        notes.append(f"slurm.enabled is off ({site.origin('slurm.enabled')}): Slurm is out of reach in a jail")
    elif not site.program:
        notes.append("Slurm was not found here")
    counted = [f"slurm.{name} ({getattr(site.caps, name)})" for name in ("max_jobs", "max_submit_rate") if getattr(site.caps, name) is not None]
    if counted and found.command == "sbatch":
        notes.append(f"{' and '.join(counted)}: counted when it is submitted")
    return notes


def _origins(found: Explained, site: Site) -> list[tuple[str, str]]:
    """Of every key that a row, a reason or a note names."""
    text = " ".join([*(row.reason for row in found.rows), *found.refusals, *_notes(found, site)])
    return [(key, site.origin(key)) for key in dict.fromkeys(re.findall(r"slurm\.[a-z_]+", text)) if key in KEYS]


def _data(found: Explained, site: Site) -> dict[str, object]:
    rows = [{"option": row.option, "value": row.value, "from": row.channel, "verdict": row.verdict, "why": row.reason, "instead": row.instead}
            for row in found.rows]  # fmt: skip
    return {
        "command": found.command, "verdict": found.verdict, "options": rows, "runs": found.argv, "refusals": found.refusals,
        "origins": dict(_origins(found, site)), "notes": _notes(found, site),
    }  # fmt: skip


def _put(found: Explained, site: Site) -> None:
    import shlex

    put(f"{found.command}: {found.verdict}")
    if found.rows:
        put_table([HEAD, *found.table()])
    more = [("runs", shlex.join(found.argv))] if found.argv else []
    more += [("refused", line) for line in found.refusals]
    more += [("from", f"{key}: {origin}") for key, origin in _origins(found, site)]
    more += [("note", note) for note in _notes(found, site)]
    if more:
        sys.stdout.flush()
        put_table([(f"  {name}", text) for name, text in more])
