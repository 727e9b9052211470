"""Names of bots and of people, and paths to share: what is taken and what is refused, in words. Pure."""

from __future__ import annotations

import re

from agent_sandbox.config.errors import UserError, plain

BOT_NAME = re.compile(r"[a-z][a-z0-9_-]{0,30}\Z")
PLAIN_OWNER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\Z")  # needs no quoting in sudoers
RESERVED = frozenset(re.findall(r"\S+", """
    root daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody nogroup bot bots sudo wheel admin adm users
    staff shadow disk kmem tty operator halt shutdown ftp sshd munge slurm docker lxd libvirt kvm input render video all default
"""))
SYSTEM = re.findall(r"\S+", """
    /bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /lost+found /proc /root /run /sbin /snap /sys /usr /var
    /System /Library /Applications /private
""")  # and everything below
TOPS = ("/", "/home", "/opt", "/srv", "/mnt", "/media", "/tmp", "/scratch", "/data", "/work", "/project", "/projects", "/Users", "/app")  # they alone
NOT_SYSTEM = ("/var/tmp", "/var/scratch", "/run/media")  # below these people keep files


def check_bot_name(name: str) -> None:
    if not BOT_NAME.match(name):
        raise UserError(f"«{plain(name, 60)}» cannot be a bot's name", hint="a small letter, then at most 30 of a-z 0-9 _ -")
    if name in RESERVED:
        raise UserError(f"«{name}» is a name that systems use for themselves", hint="choose another")


def check_group_name(name: str) -> None:
    if not PLAIN_OWNER.match(name):
        raise UserError(f"«{plain(name, 60)}» cannot be a group's name")


def check_shared_path(path: str, homes: frozenset[str]) -> None:
    """An absolute, normal path that is not the system's, and nobody's whole home."""
    shown = plain(path, 200)
    if any(ord(char) < 32 or char == "\x7f" for char in path):
        raise UserError(f"«{shown}» has a control character in its name", hint="rename it first")
    if path in TOPS or is_system(path):
        raise UserError("is the system's, not a project", where=shown, hint="share the one directory that the bots shall work in")
    if path in homes:
        raise UserError("is a whole home directory, with all its keys", where=shown, hint="share one directory in it")


def is_system(path: str) -> bool:
    if any(path.startswith(f"{top}/") for top in NOT_SYSTEM):
        return False
    return any(path == top or path.startswith(f"{top}/") for top in SYSTEM)
