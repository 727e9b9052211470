"""A command as a bot: the words that sudo gets, and the environment that the command gets. Pure.

Nothing of the caller's environment goes along but the kind of terminal and the language, and those only if they look like it.
"""

from __future__ import annotations

import re

from agent_sandbox.admin.bots.texts import LOAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_sandbox.admin.bots.facts import Facts

PATH = "/usr/local/bin:/usr/bin:/bin"
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}\Z")
UMASK = 0o007
# $1 is the directory to start in, the rest the command. What bash in the role of sh adds is taken away again.
START = f"""umask 007
cd -- "$1" 2>/dev/null || {{ printf 'botadm: %s cannot enter %s; starting in %s\\n' "$USER" "$1" "$HOME" >&2; cd -- "$HOME" || exit 125; }}
shift
{LOAD}unset OLDPWD SHLVL
exec "$@"
"""


def environment(facts: Facts, caller: Mapping[str, str], directory: str) -> dict[str, str]:
    return {
        "HOME": facts.namespace, "USER": facts.name, "LOGNAME": facts.name, "PATH": f"{facts.namespace}/.local/bin:{PATH}",
        "TERM": word(caller.get("TERM", ""), "dumb"), "PWD": directory, "LANG": word(caller.get("LANG", ""), "C.UTF-8"),
    }  # fmt: skip


def word(value: str, otherwise: str) -> str:
    return value if PLAIN.match(value) else otherwise


def sudo_words(facts: Facts, sudo: str, env: dict[str, str], command: tuple[str, ...]) -> tuple[str, ...]:
    """With a strict rule by way of our entry point, which does the same as the bot; else by env and sh, which every bot can run."""
    become = (sudo, "-n", "-u", facts.name, "--")
    if facts.strict:
        return (*become, facts.entry, "run", env["PWD"], env["TERM"], env["LANG"], *command)
    variables = (f"{name}={value}" for name, value in env.items())
    return (*become, "/usr/bin/env", "-i", *variables, "/bin/sh", "-c", START, "botadm", env["PWD"], *command)


def login_shell(program: str) -> tuple[str, ...]:
    return (program, "-l")


def parse_variables(text: str) -> dict[str, str]:
    """The bot's own `env` file: NAME=VALUE lines as they stand, as the shell's loop reads them."""
    pairs = (line.split("=", 1) for line in text.split("\n") if "=" in line)
    return {name: value for name, value in pairs if re.match(r"[A-Za-z_][A-Za-z0-9_]*\Z", name)}
