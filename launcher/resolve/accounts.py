"""The passwd and group files that the jail sees: the system's accounts, this user and this user's groups. Pure given a Disk."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.policy import Host
    from agent_sandbox.launcher.probe import Disk

FIRST_PERSON = 1000  # smaller numbers are the system's own accounts
NOBODY = 65534


def passwd_file(host: Host, disk: Disk) -> bytes:
    """Other people's accounts left out; this one added also where only LDAP knows it."""
    lines = [line for line in _lines(disk, "/etc/passwd") if _is_system(line, 2) and _number(line, 2) != host.uid]
    own = f"{host.user}:x:{host.uid}:{host.gid}::{host.home}:{host.shell}"
    return _joined([*lines, own])


def group_file(host: Host, disk: Disk) -> bytes:
    """Members are left out: they would name other people."""
    own = dict(host.groups)
    lines = [line for line in _lines(disk, "/etc/group") if _is_system(line, 2) and _number(line, 2) not in own]
    kept = [":".join([*line.split(":")[:3], ""]) for line in lines]
    return _joined([*kept, *(f"{name}:x:{number}:{host.user}" for number, name in host.groups)])


def _lines(disk: Disk, path: str) -> list[str]:
    return (disk.read(path) or b"").decode("utf-8", "surrogateescape").splitlines()


def _is_system(line: str, field: int) -> bool:
    number = _number(line, field)
    return 0 <= number < FIRST_PERSON or number == NOBODY


def _number(line: str, field: int) -> int:
    parts = line.split(":")
    return int(parts[field]) if len(parts) > field and parts[field].isdecimal() else -1


def _joined(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
