"""`botadm run` and `botadm shell`: this process becomes sudo, which becomes the bot: streams, terminal, signals and exit status are the command's."""

from __future__ import annotations

import os
import pwd

from agent_sandbox.admin.bots.facts import Facts, need_facts
from agent_sandbox.admin.bots.session import environment, login_shell, sudo_words
from agent_sandbox.admin.programs import ENVIRONMENT, find_tools
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def run(name: str, command: tuple[str, ...]) -> NoReturn:
    facts = need_facts(name)
    check_unjailed(facts)
    _become(facts, command, _here())


def shell(name: str, program: str) -> NoReturn:
    facts = need_facts(name)
    check_unjailed(facts)
    if not os.path.isabs(program) or not os.access(program, os.X_OK):
        raise UserError("is not a program's absolute path", where=program, hint="such as /bin/bash")
    _become(facts, login_shell(program), facts.namespace)


def check_permitted(facts: Facts) -> None:
    """In words of ours what sudo would only refuse."""
    if not facts.enabled:
        raise UserError(f"{facts.name} is disabled", hint=f"sudo botadm enable {facts.name}")
    me = pwd.getpwuid(os.getuid()).pw_name
    if me not in (facts.owner, "root"):
        raise UserError(f"{facts.name} is {facts.owner}'s bot, and you are {me}", hint="sudo's rule is for the owner alone")


def check_unjailed(facts: Facts) -> None:
    """What a strict rule permits is a jail."""
    check_permitted(facts)
    if facts.strict and os.getuid() != 0:
        raise UserError(f"{facts.name} runs in jails alone: its rule is strict", hint=f"agent-sandbox --bot {facts.name} COMMAND")


def _become(facts: Facts, command: tuple[str, ...], directory: str) -> NoReturn:
    """sudo's own environment is clean too: only what it needs to ask about."""
    sudo = find_tools(("sudo",))["sudo"]
    words = sudo_words(facts, sudo, environment(facts, os.environ, directory), command)
    os.execve(sudo, words, {**ENVIRONMENT, "TERM": environment(facts, os.environ, directory)["TERM"]})


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"
