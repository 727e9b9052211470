"""The files that a bot is made with: sudo's rule, and what its shell reads. Pure."""

from __future__ import annotations

import re

from agent_sandbox.admin.names import PLAIN_OWNER
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.bots.facts import Facts

PLAIN_PATH = re.compile(r"/[A-Za-z0-9/._-]+\Z")  # needs no quoting in sudoers
ENV = """\
# Variables of this bot, one NAME=VALUE a line, taken as they stand: no quotes, no shell.
# `botadm run` and `botadm shell` set them, besides HOME USER LOGNAME PATH TERM PWD LANG.
"""
LOAD = """\
if [ -r "$HOME/env" ]; then
    while IFS= read -r line || [ -n "$line" ]; do
        case ${line%%=*} in
            '' | [0-9]* | *[!A-Za-z0-9_]*) ;;
            *) case $line in *=*) export "$line" ;; esac ;;
        esac
    done <"$HOME/env"
    unset line
fi
"""
PROFILE = f"""\
# Read by login shells of this bot.
umask 007
{LOAD}if [ -n "$BASH_VERSION" ] && [ -r "$HOME/.bashrc" ]; then
    . "$HOME/.bashrc"
fi
"""
BASHRC = """\
# Read by interactive shells of this bot.
umask 007
case $- in
    *i*) ;;
    *) return ;;
esac
PS1='[bot \\u@\\h \\W]\\$ ' # for every terminal
case ${TERM:-dumb} in
    dumb | '') ;;
    *) [ -n "$NO_COLOR" ] || PS1='\\[\\e[1;35m\\][bot \\u@\\h\\[\\e[0m\\] \\W\\[\\e[1;35m\\]]\\[\\e[0m\\]\\$ ' ;;
esac
"""


def rule(facts: Facts, owner_uid: int) -> str:
    """One person may become one bot: with every command, or by our entry point alone. No wildcards; no variable is taken along.

    A terminal of its own: on the person's, a bot could type into the shell that started it.
    """
    person = facts.owner if PLAIN_OWNER.match(facts.owner) else f"#{owner_uid}"
    return (
        f"# Written by botadm: who may act as the bot {facts.name}. `botadm update {facts.name}` writes it anew.\n"
        f"Defaults>{facts.name} env_reset, !setenv, !requiretty, use_pty, umask=0007, umask_override\n"
        f"{person} ALL=({facts.name}) NOPASSWD: NOSETENV: {_commands(facts)}\n"
    )


def _commands(facts: Facts) -> str:
    if not facts.strict:
        return "ALL"
    if not PLAIN_PATH.match(facts.entry):
        raise UserError("cannot be named in a sudoers rule", where=facts.entry, hint="install below a plain path")
    return facts.entry
