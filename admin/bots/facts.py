"""Who owns which bot, and how it was made: root's own files, which everybody may read. This is what the launcher asks about a bot.

Never anything below /var/bot: an agent can write there.
"""

from __future__ import annotations

import json
import os
import pwd

from agent_sandbox.admin.names import BOT_NAME, check_bot_name
from agent_sandbox.admin.places import BOTS, disabled_of, facts_of, namespace_of
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.files import ADMIN, read_trusted
from agent_sandbox.config.record import record


@record
class Facts:
    name: str
    owner: str
    strict: bool = False
    sudoers: bool = True  # the rule is ours to write
    entry: str = ""  # the one program that a strict rule permits
    enabled: bool = True

    @property
    def namespace(self) -> str:
        return namespace_of(self.name)


def to_text(facts: Facts) -> str:
    return json.dumps(dict(vars(facts)), indent=1) + "\n"


def from_text(text: str, where: str) -> Facts:
    try:
        return Facts(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise UserError(f"is damaged: {error}", where=where, hint="restore it, or remove the bot with `botadm destroy`") from None


def read_facts(name: str) -> Facts | None:
    """None = no bot of that name. UserError if anybody but root could have written it."""
    check_bot_name(name)
    data = read_trusted(facts_of(name), ADMIN)
    return None if data is None else from_text(data.decode(errors="replace"), facts_of(name))


def need_facts(name: str) -> Facts:
    facts = read_facts(name)
    if facts is None:
        raise UserError(f"there is no bot «{name}»", hint=f"`sudo botadm create {name}` makes one, `botadm list` names those that there are")
    return facts


def list_facts() -> tuple[Facts, ...]:
    try:
        names = sorted(name.removesuffix(".json") for name in os.listdir(BOTS))
    except FileNotFoundError:
        return ()
    found = (read_facts(name) for name in names if BOT_NAME.match(name))
    return tuple(facts for facts in found if facts)


def bots_of(owner: str) -> tuple[str, ...]:
    """Those that are accounts on this machine."""
    return tuple(facts.name for facts in list_facts() if facts.owner == owner and _is_account(facts.name))


def is_disabled(name: str) -> bool:
    """As root sees it; `Facts.enabled` says the same to everybody."""
    return os.path.exists(disabled_of(name))


def _is_account(name: str) -> bool:
    try:
        return pwd.getpwnam(name).pw_dir == namespace_of(name)
    except KeyError:
        return False
