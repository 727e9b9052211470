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
    """By env and sh, which every bot can run."""
    variables = (f"{name}={value}" for name, value in env.items())
    return (sudo, "-n", "-u", facts.name, "--", "/usr/bin/env", "-i", *variables, "/bin/sh", "-c", START, "botadm", env["PWD"], *command)


def login_shell(program: str) -> tuple[str, ...]:
    return (program, "-l")
