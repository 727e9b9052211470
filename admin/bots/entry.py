"""The one program that a strict rule lets a person start as a bot. It runs as the bot, from root's own files, and decides nothing by variables.

    agent-sandbox-bot run DIRECTORY TERM LANG COMMAND [ARGUMENTS…]
    agent-sandbox-bot session NAME          the bot's side of `agent-sandbox --bot`

A verb is a word in `VERBS`; whatever else somebody gives to sudo ends here with exit status 125.
"""

from __future__ import annotations

import os
import pwd
import sys

from agent_sandbox.admin.bots.facts import Facts, read_facts
from agent_sandbox.admin.bots.session import UMASK, environment, parse_variables
from agent_sandbox.admin.tell import tell
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST = 1 << 20


def main(argv: Sequence[str] | None = None) -> int:
    words = tuple(sys.argv[1:] if argv is None else argv)
    try:
        facts = who_am_i()
        if not words or words[0] not in VERBS:
            raise UserError("expected a verb", hint=f"one of: {', '.join(VERBS)}")
        return VERBS[words[0]](facts, words[1:])
    except UserError as error:
        tell(str(error), "error")
        return error.code


def who_am_i() -> Facts:
    """A bot, in every respect: started by sudo, with its rights and no others."""
    uid = os.getuid()
    if 0 in os.getresuid() or len({*os.getresuid()}) > 1:
        raise UserError("this program is for bots alone, not for root")
    try:
        facts = read_facts(pwd.getpwuid(uid).pw_name)
    except KeyError:
        facts = None
    if facts is None or not facts.enabled:
        raise UserError(f"uid {uid} is not a bot that is enabled")
    return facts


def run(facts: Facts, words: tuple[str, ...]) -> int:
    if len(words) < 4:
        raise UserError("expected: run DIRECTORY TERM LANG COMMAND …")
    directory, term, lang, *command = words
    os.umask(UMASK)
    variables = environment(facts, {"TERM": term, "LANG": lang}, enter(facts, directory))
    return execute(command, {**variables, **own_variables(facts)})


def enter(facts: Facts, directory: str) -> str:
    try:
        os.chdir(directory)
        return directory
    except OSError:
        tell(f"{facts.name} cannot enter {ascii(directory)[1:-1]}; starting in {facts.namespace}")
    try:
        os.chdir(facts.namespace)
    except OSError as error:
        raise UserError(f"cannot be entered: {error.strerror}", where=facts.namespace)
    return facts.namespace


def own_variables(facts: Facts) -> dict[str, str]:
    """The bot's own file, read as the bot."""
    try:
        with open(f"{facts.namespace}/env", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            return parse_variables(file.read(MOST))
    except OSError:
        return {}


def execute(command: list[str], variables: dict[str, str]) -> int:
    try:
        os.execvpe(command[0], command, variables)
    except FileNotFoundError:
        tell(f"{ascii(command[0])[1:-1]}: not found")
        return 127
    except OSError as error:
        tell(f"{ascii(command[0])[1:-1]}: {error.strerror}")
        return 126


def session(facts: Facts, words: tuple[str, ...]) -> int:
    from agent_sandbox.admin.bots import jailed
    from agent_sandbox.launcher.say import say

    try:
        return jailed.session(facts, words)
    except UserError as error:
        say(str(error), "error")
        return error.code


VERBS: dict[str, Callable[[Facts, tuple[str, ...]], int]] = {"run": run, "session": session}

if __name__ == "__main__":
    sys.exit(main())
