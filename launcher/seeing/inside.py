"""`explain` inside a jail, from the page that the launch left there.

A path is answered from the list of what is granted and not from what lies on disk: so the answer about a hidden path is
the answer about one that does not exist.
"""

from __future__ import annotations

import json
import os

from agent_sandbox.config.defaults import load_lists
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.show import describe_default
from agent_sandbox.launcher.own import summary_path
from agent_sandbox.launcher.policy import Syscalls
from agent_sandbox.launcher.seeing.answer import Answer
from agent_sandbox.launcher.seeing.calls import explain_call
from agent_sandbox.launcher.summary import TOLD
from agent_sandbox.launcher.view import is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent_sandbox.config.keys import Key

SESSION = "this session"


def explain_inside(kind: str, subject: str) -> Answer:
    page = read_page()
    return {"key": _key, "path": _path, "env": _variable, "syscall": _call, "host": _host}[kind](subject, page)


def read_page() -> dict[str, Any]:
    """Ours, and read-only: its shape is taken for granted."""
    path = summary_path()
    try:
        with open(path, encoding="utf-8") as file:
            page: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise UserError(f"cannot be read: {error}", where=path)
    return page


def _key(name: str, page: dict[str, Any]) -> Answer:
    key = KEYS[name]
    said, rank = page["settings"].get(name, (None, "default"))
    if key.kind not in TOLD:
        notes = (key.help, "it may name what is hidden: ask outside the jail")
        return Answer(subject=name, verdict="not told inside", rule=key.rule, origin=SESSION, notes=notes)
    if isinstance(said, list):
        entries = tuple((entry, rank) for entry in said)
        verdict = f"{len(said)} entries"
    else:
        entries, verdict = (), said or _default(key)
    return Answer(subject=name, verdict=verdict, rule=key.rule, origin=rank, values=entries, notes=(key.help,))


def _default(key: Key) -> str:
    return describe_default(key, load_lists())


def _path(path: str, page: dict[str, Any]) -> Answer:
    real = os.path.realpath(path)
    above = [entry for entry in page["paths"] if is_below(real, entry[0])]
    at, kind, right = max(above, key=lambda entry: len(entry[0]), default=("/", "", ""))
    verdict, rule = right, f"{at} is granted ({kind})"
    if not kind or (kind == "scratch" and at != real):
        verdict, rule = "not there", "nothing grants it"
    notes = ("made here, it ends with the session",) if kind == "scratch" and right == "write" else ()
    return Answer(subject=f"path {path}", verdict=verdict, rule=rule, origin=SESSION, notes=notes)


def _variable(name: str, page: dict[str, Any]) -> Answer:
    verdict, rule = ("kept", "nothing removes it") if name in os.environ else ("not set", "it was not set outside")
    if name in page["removed"]:
        verdict, rule = "removed", page["removed"][name]
    elif name in page["set"]:
        verdict, rule = "set", "environment.set or agent-sandbox"
    elif name in page["changed"]:
        verdict, rule = "kept, cleaned", f"environment.strip_passwords takes out {page['changed'][name]}"
    return Answer(subject=f"env {name}", verdict=verdict, rule=rule, origin=SESSION)


def _host(target: str, page: dict[str, Any]) -> Answer:
    from agent_sandbox.launcher.network.rules import make_rules
    from agent_sandbox.launcher.seeing.hosts import answer_about

    said = page["settings"]
    shipped = [("network.block", 0, entry, "default") for entry in load_lists()["network.block"]]
    default, rank = said.get("network.default", (KEYS["network.default"].default, "default"))
    presets = said["network.presets"][0] if "network.presets" in said else None
    rules = make_rules([*shipped, *page["network"]["lists"]], default, rank, presets=presets)
    return answer_about(target, rules, page["network"]["mode"])


def _call(name: str, page: dict[str, Any]) -> Answer:
    said = page["seccomp"]
    syscalls = Syscalls(mode=said["mode"], nested=said["nested"], deny=tuple(said["deny"]))
    return explain_call(name, syscalls, os.uname().machine, lambda key: SESSION)
