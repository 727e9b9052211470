"""The one program that a strict rule lets a person start as a bot. It runs as the bot, from root's own files, and decides nothing by variables.

    agent-sandbox-bot session NAME          the bot's side of `agent-sandbox --bot`: a jail, and nothing without one

Whatever else somebody gives to sudo ends here with exit status 125.
"""

from __future__ import annotations

import os
import pwd
import sys

from agent_sandbox.admin.bots.facts import Facts, read_facts
from agent_sandbox.admin.bots.jailed import session
from agent_sandbox.admin.bots.session import word
from agent_sandbox.admin.programs import ENVIRONMENT
from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

VERB = "session"


def main(argv: Sequence[str] | None = None) -> int:
    words = tuple(sys.argv[1:] if argv is None else argv)
    forget_variables()
    try:
        facts = who_am_i()
        if len(words) != 2 or words[0] != VERB:
            raise UserError(f"expected: {VERB} NAME", hint="`agent-sandbox --bot` starts this")
        return session(facts, words[1])
    except UserError as error:
        say(str(error), "error")
        return error.code


def forget_variables() -> None:
    """A site's sudoers may keep some of the person's, such as PATH or SLURM_CONF, which say what is run outside the jail."""
    terminal = word(os.environ.get("TERM", ""), "dumb")
    os.environ.clear()
    os.environ.update({"PATH": ENVIRONMENT["PATH"], "TERM": terminal})


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


if __name__ == "__main__":
    sys.exit(main())
