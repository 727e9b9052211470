"""Where things of ours lie on a machine, and the programs that root uses. Pure.

Constants: no variable and no option may send root elsewhere.
"""

from __future__ import annotations

GROUP = "bot"  # whoever shares files with bots, and every bot
NAMESPACES = "/var/bot"
SUDOERS = "/etc/sudoers.d"
STATE = "/var/lib/botadm"
BOTS = f"{STATE}/bots"  # who owns which bot: everybody may read it
DISABLED = f"{STATE}/disabled"  # what `enable` puts back
JOURNAL = f"{STATE}/journal"  # what was done, and how to take it back
SHARES = f"{STATE}/shares"  # how shared files were before
LOCK = "/run/botadm.lock"
NOLOGIN = "/usr/sbin/nologin"

ETC = "/etc"
ACCOUNT_FILES = ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")
TOOL_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
TOOLS = ("groupadd", "useradd", "usermod", "gpasswd", "groupdel", "userdel", "visudo", "sudo", "setfacl")


def namespace_of(name: str) -> str:
    return f"{NAMESPACES}/{name}"


def rule_of(name: str) -> str:
    """sudo passes over names with a dot; a bot's name has none."""
    return f"{SUDOERS}/bot-{name}"


def facts_of(name: str) -> str:
    return f"{BOTS}/{name}.json"


def disabled_of(name: str) -> str:
    return f"{DISABLED}/{name}.json"
