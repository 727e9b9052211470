"""Who is it done for: the person who called sudo, or the one whom root names."""

from __future__ import annotations

import os
import pwd
import shlex
import sys

from agent_sandbox.config.errors import UserError, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def find_owner(named: str, environment: Mapping[str, str], bots: tuple[str, ...]) -> str:
    name = named or _caller(environment)
    if not name:
        raise UserError("whose is it? Root alone does not say", hint="--owner NAME, or start it as yourself with sudo")
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise UserError(f"there is no user «{plain(name, 60)}»") from None
    if entry.pw_uid == 0:
        raise UserError("root cannot own a bot, or share with one", hint="--owner NAME of a person")
    if name in bots:
        raise UserError(f"{name} is a bot, and bots own none")
    return entry.pw_name


def _caller(environment: Mapping[str, str]) -> str:
    """What sudo says, if it is true to itself."""
    name = environment.get("SUDO_USER", "")
    if not name or name == "root":
        return ""
    try:
        known = str(pwd.getpwnam(name).pw_uid)
    except (KeyError, ValueError):
        known = ""
    if known != environment.get("SUDO_UID", ""):
        raise UserError(f"SUDO_USER is «{plain(name, 60)}», which is not uid {plain(environment.get('SUDO_UID', 'unset'), 20)}", hint="--owner NAME")
    return name


def need_root() -> None:
    if os.geteuid() != 0:
        raise UserError("only root can do that", hint=shlex.join(("sudo", "botadm", *sys.argv[1:])))
