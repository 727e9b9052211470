"""`agent-sandbox explain …`: verdict, rule and origin of a key, path, variable, system call or host, by what decides it; and of a whole
command line, such as sbatch's, by the side that would carry it out.

Inside a jail the answer comes from the page that the launch left there.
"""

from __future__ import annotations

import difflib

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS, SECTIONS
from agent_sandbox.config.show import setting_rows
from agent_sandbox.launcher.helpers import explained_commands, find_explainer
from agent_sandbox.launcher.launch import Case, open_case
from agent_sandbox.launcher.own import summary_path
from agent_sandbox.launcher.policy import Syscalls
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.resolve.network import resolve_network
from agent_sandbox.launcher.seeing.answer import Answer, put_answer
from agent_sandbox.launcher.seeing.calls import explain_call
from agent_sandbox.launcher.seeing.hosts import explain_host
from agent_sandbox.launcher.seeing.output import take_json
from agent_sandbox.launcher.seeing.paths import explain_path
from agent_sandbox.launcher.seeing.variables import explain_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.cli import Request

USAGE = "agent-sandbox [OPTIONS] explain [--json] KEY | path P | env NAME | syscall NAME | host NAME[:PORT] | sbatch ARGUMENTS…"
KINDS = {"path": "path", "env": "variable's name", "syscall": "system call's name", "host": "host, as NAME or NAME:PORT"}
RULES = {
    "union": "entries add up; none that a higher rank set can go",
    "strictest": "a lower rank may equal or harden",
    "narrow": "each rank may only narrow what a higher one allows",
    "vetoed": "entries add up, less what a higher rank denies",
    "added": "entries add up, and of one name the higher rank's stays",
    "least": "the smallest number counts",
    "admin": "only an admin may set it",
    "last": "a preference: the lower rank wins unless it is locked",
}


def run(request: Request) -> int:
    ours, command = _before_command(request.command)
    if command and command[0] not in EXPLAINED and (explainer := find_explainer(command[0])):
        return int(explainer.run(request, command, request.json or "--json" in ours))
    as_json, words = take_json(request.command, request.json)
    kind, subject = read_question(words)
    if summary_path():
        from agent_sandbox.launcher.seeing.inside import explain_inside

        answer = explain_inside(kind, subject)
    else:
        answer = EXPLAINED[kind](subject, open_case(request))
    put_answer(answer, as_json)
    return 0


def _before_command(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """`--json` before a command is ours; all that stands after its name is the command's own."""
    count = next((place for place, word in enumerate(words) if word != "--json"), len(words))
    return words[:count], words[count:]


def read_question(words: tuple[str, ...]) -> tuple[str, str]:
    if len(words) == 2 and words[0] in EXPLAINED and words[1] and words[0] != "key":
        return words[0], words[1]
    if len(words) == 1 and words[0] in KEYS:
        return "key", words[0]
    raise _not_understood(words)


def _not_understood(words: tuple[str, ...]) -> UserError:
    """What is asked of a kind of thing is asked with one word; a word that is nothing is near to something."""
    if not words or words[0] in KINDS:
        return UserError(f"explain {words[0]} takes one {KINDS[words[0]]}" if words else "explain what?", hint=f"usage: {USAGE}")
    problem = f"{printable(' '.join(words))}: there is no such thing to explain"
    if words[0] in SECTIONS:
        return UserError(problem, hint=f"`agent-sandbox config show {words[0]}` has its keys: {', '.join(SECTIONS[words[0]])}")
    near = difflib.get_close_matches(words[0], KEYS if len(words) == 1 else [*KINDS, *explained_commands()], 1)
    return UserError(problem, hint=f"did you mean `explain {' '.join((near[0], *words[1:]))}`?" if near else f"usage: {USAGE}")


def explain_key(name: str, case: Case) -> Answer:
    key, settings = KEYS[name], case.settings
    rows = [(value, origin) for _, value, origin in setting_rows(settings, (name,), (name,))]
    notes = [key.help, *(clamp.line() for clamp in settings.clamps if clamp.key == name)]
    if not key.ready:
        notes.append("takes effect with a later part" + ("; a launch is refused" if name in settings.unready() else ""))
    if name == "network.mode":
        notes += _delivered(case)
    count = len(settings.entries(name)) if key.listed else 0
    return Answer(
        subject=name, verdict=f"{count} {'entry' if count == 1 else 'entries'}" if count else rows[0][0],
        rule=f"{key.rule}: {RULES[key.rule]}" + (f" ({key.veto})" if key.veto else ""),
        origin=settings.origin(name), values=tuple(rows) if count else (), notes=tuple(notes),
    )  # fmt: skip


def _delivered(case: Case) -> list[str]:
    try:
        network = resolve_network(case.settings)
    except UserError as error:
        return [error.problem]
    return [f"inside it is {network.mode}: {network.why}"] if network.why else []


def _explain_call(name: str, case: Case) -> Answer:
    settings = case.settings
    syscalls = Syscalls(
        mode=settings.text("seccomp.mode"), nested=settings.flag("sandbox.nested_userns"),
        deny=settings.names("seccomp.deny"),
    )  # fmt: skip
    return explain_call(name, syscalls, case.host.machine, settings.origin)


EXPLAINED = {"key": explain_key, "path": explain_path, "env": explain_variable, "syscall": _explain_call, "host": explain_host}
