"""A person's settings, as they were handed over → those that count on the bot's side. Pure.

Whoever may start a session can hand over anything. What an admin alone may set is asked of this machine's admin again; handed over
it could name a program of the person's, such as a Slurm, that is run outside the jail. For a strict bot the same holds for credentials.
"""

from __future__ import annotations

from agent_sandbox.config.errors import UserError, plain
from agent_sandbox.config.keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.admin.bots.facts import Facts

INJECT = "network.inject"


def believed(handed: dict[str, object], facts: Facts, admins: Callable[[], tuple[str, ...]]) -> dict[str, object]:
    """`admins` tells the credentials that this machine's admin has set."""
    rest = {name: value for name, value in handed.items() if name not in KEYS or KEYS[name].rule != "admin"}
    if not facts.strict or not rest.get(INJECT):
        return rest
    check_credentials(rest.pop(INJECT), facts, admins())
    return rest


def check_credentials(said: object, facts: Facts, admins: tuple[str, ...]) -> None:
    """UserError for one that is not the admin's: the file or the command that it names would be read or run as the bot, outside a jail."""
    for entry in said if isinstance(said, list) else [said]:
        text = entry[0] if isinstance(entry, list) and entry else entry
        if text not in admins:
            name = plain(str(text).partition("=")[0], 60)
            hint = "an admin can set it for this bot, in /app/lib/agent-sandbox; or do without it in this project"
            problem = f"the credential {name} is not the admin's, and {facts.name} does nothing without a jail: its rule is strict"
            raise UserError(problem, where=INJECT, hint=hint)
