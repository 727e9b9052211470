"""The same commands on macOS, as a plan of `dscl`, `dseditgroup` and `chmod +a` for a person to read. Pure.

It was never tried there, so it is printed and never applied.
"""

from __future__ import annotations

import re

from agent_sandbox.admin.bots.facts import Facts
from agent_sandbox.admin.bots.texts import rule
from agent_sandbox.admin.names import check_bot_name
from agent_sandbox.admin.places import GROUP, NAMESPACES, namespace_of, rule_of
from agent_sandbox.admin.report import Outcome
from agent_sandbox.admin.steps import Step, Tool
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

FREE_ID = "FREE_ID"  # a number that `dscl . -list /Users UniqueID` does not have; below 500 the log-in window does not show it
PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
RIGHTS = "list,add_file,search,add_subdirectory,delete_child,readattr,writeattr,read,write,execute,append,file_inherit,directory_inherit"
WITH_SHARE = f"group:{GROUP} allow {RIGHTS}"
DSCL, EDIT, CHMOD, CHOWN = "/usr/bin/dscl", "/usr/sbin/dseditgroup", "/bin/chmod", "/usr/sbin/chown"


def outcome(options: argparse.Namespace) -> Outcome:
    word = options.command.__name__.lstrip("_")
    if not options.dry_run:
        raise UserError("on macOS this was never tried, so it is not applied", hint=f"botadm {word} --dry-run prints the plan")
    return Outcome(command=f"{word} (macOS)", steps=plan(word, options), applied=False)


def plan(word: str, options: argparse.Namespace) -> tuple[Step, ...]:
    owner = getattr(options, "owner", "") or "OWNER"
    if not PLAIN.match(owner):
        raise UserError("--owner: expected a user's name")
    if word in ("share", "noshare"):
        return _tree(word, options.path, recursive=options.recursive, group=getattr(options, "group", "") or "staff")
    if word == "init":
        return _undo_init() if options.undo else _init(owner)
    if word == "undo":
        raise UserError("there is no journal on macOS")
    check_bot_name(options.name)
    return {"create": _create, "update": _create, "disable": _disable, "enable": _enable, "destroy": _destroy}[word](options.name, owner, options)


def _step(does: str, *argv: str) -> Step:
    return Step(does=does, why="macOS keeps accounts in Open Directory", act=Tool(argv=argv, names=()))


def _init(owner: str) -> tuple[Step, ...]:
    return (
        _step(f"add the group {GROUP}", EDIT, "-o", "create", GROUP),
        _step(f"add {owner} to it", EDIT, "-o", "edit", "-a", owner, "-t", "user", GROUP),
        _step(f"make {NAMESPACES}", "/usr/bin/install", "-d", "-o", "root", "-g", "wheel", "-m", "0755", NAMESPACES),
    )  # fmt: skip


def _undo_init() -> tuple[Step, ...]:
    return (_step(f"remove the group {GROUP}", EDIT, "-o", "delete", GROUP), _step(f"remove {NAMESPACES}", "/bin/rmdir", NAMESPACES))


def _create(name: str, owner: str, options: argparse.Namespace) -> tuple[Step, ...]:
    user, home = f"/Users/{name}", namespace_of(name)
    fields = {
        "UniqueID": FREE_ID, "PrimaryGroupID": FREE_ID, "NFSHomeDirectory": home, "UserShell": "/usr/bin/false", "IsHidden": "1", "Password": "*",
    }  # fmt: skip
    return (
        _step(f"add the group {name}", EDIT, "-o", "create", "-i", FREE_ID, name), _step(f"add the user {name}", DSCL, ".", "-create", user),
        *(_step(f"set its {key}", DSCL, ".", "-create", user, key, value) for key, value in fields.items()),
        _step(f"add {name} to the group {GROUP}", EDIT, "-o", "edit", "-a", name, "-t", "user", GROUP),
        _step(f"make {home}", "/usr/bin/install", "-d", "-o", owner, "-g", name, "-m", "2770", home),
        *(() if getattr(options, "no_sudoers", False) else (_rule(name, owner),)),
    )  # fmt: skip


def _rule(name: str, owner: str) -> Step:
    text = rule(Facts(name=name, owner=owner), 0).splitlines()[-1]
    return _step(f"write {rule_of(name)}, 0440: {text}", "/usr/sbin/visudo", "-cf", rule_of(name))


def _disable(name: str, owner: str, options: argparse.Namespace) -> tuple[Step, ...]:
    return (
        _step(f"remove {rule_of(name)}", "/bin/rm", rule_of(name)), _step("lock the account", "/usr/bin/pwpolicy", "-u", name, "-disableuser"),
        _step(f"close {namespace_of(name)}", CHMOD, "0000", namespace_of(name)), _step("end its processes", "/usr/bin/pkill", "-KILL", "-U", name),
    )  # fmt: skip


def _enable(name: str, owner: str, options: argparse.Namespace) -> tuple[Step, ...]:
    return (
        _step("open the account", "/usr/bin/pwpolicy", "-u", name, "-enableuser"),
        _step(f"open {namespace_of(name)}", CHMOD, "2770", namespace_of(name)),
        _rule(name, owner),
    )  # fmt: skip


def _destroy(name: str, owner: str, options: argparse.Namespace) -> tuple[Step, ...]:
    return (
        _step(f"remove {rule_of(name)}", "/bin/rm", rule_of(name)), _step(f"remove the user {name}", DSCL, ".", "-delete", f"/Users/{name}"),
        _step(f"remove the group {name}", EDIT, "-o", "delete", name), _step("end its processes", "/usr/bin/pkill", "-KILL", "-U", name),
        _step(f"delete {namespace_of(name)}", "/bin/rm", "-R", namespace_of(name)),
    )  # fmt: skip


def _tree(word: str, path: str, *, recursive: bool, group: str) -> tuple[Step, ...]:
    deep = ("-R",) if recursive else ()
    if word == "share":
        return (
            _step(f"give {path} to the group {GROUP}", CHOWN, *deep, f":{GROUP}", path), _step("let the group in", CHMOD, *deep, "g+rwX", path),
            _step("let it use what is made there", CHMOD, *deep, "+a", WITH_SHARE, path),
        )  # fmt: skip
    return (
        _step("take the group's ACL away", CHMOD, *deep, "-a", WITH_SHARE, path),
        _step(f"give {path} to {group}", CHOWN, *deep, f":{group}", path),
    )
