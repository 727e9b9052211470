"""The way to a shared directory: those above it that the group may not pass get one right for it, to pass through, and lose it with the last share.

Only directories of the person who shares are changed; `ways.json` knows how each was, and for which shares it is open.
"""

from __future__ import annotations

import json
import os

from agent_sandbox.admin.descriptors import ACCESS, Kept, get_acl, keep, magic, opened, restore, set_acl
from agent_sandbox.admin.places import SHARES
from agent_sandbox.admin.share.acl import ENTER, from_mode, may_enter, pack, parse, with_named_group
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    Ways = dict[str, dict[str, object]]

FILE = f"{SHARES}/ways.json"


def closed_above(path: str, group: int) -> list[str]:
    """The directories above `path` that a member of the group cannot pass, from the top."""
    parts = path.strip("/").split("/")[:-1]
    above = ["/" + "/".join(parts[: number + 1]) for number in range(len(parts))]
    return [one for one in above if not _may_pass(one, group)]


def _may_pass(path: str, group: int) -> bool:
    with opened(path, os.O_PATH | os.O_DIRECTORY) as handle:
        status = os.fstat(handle)
        return may_enter(status.st_mode, parse(get_acl(handle, ACCESS)), group=group, owning_group=status.st_gid)


def check_ways(path: str, group: int, uid: int) -> list[str]:
    """What `open_ways` would open. UserError for a directory of somebody else's that is closed."""
    closed = closed_above(path, group)
    for one in closed:
        if os.lstat(one).st_uid != uid:
            raise UserError("is closed to bots and belongs to somebody else", where=one, hint="its owner can open the way: setfacl -m g:bot:x")
    return closed


def open_ways(path: str, group: int, uid: int) -> None:
    known = _read()
    for one in check_ways(path, group, uid):
        known.setdefault(one, {"kept": _keep(one), "users": []})
    for one, way in known.items():
        if path.startswith(f"{one}/"):
            way["users"] = sorted({*_users(way), path})
    _write(known)
    for one in closed_above(path, group):
        _open_way(one, group)


def close_ways(path: str) -> None:
    known = _read()
    for one, way in list(known.items()):
        users = [user for user in _users(way) if user != path]
        if len(users) == len(_users(way)):
            continue
        way["users"] = users
        if not users:
            _put_back(one, way)
            del known[one]
    _write(known)


def _open_way(path: str, group: int) -> None:
    with opened(path, os.O_PATH | os.O_DIRECTORY) as handle:
        entries = parse(get_acl(handle, ACCESS)) or from_mode(os.fstat(handle).st_mode)
        set_acl(handle, ACCESS, pack(with_named_group(entries, group, ENTER)))


def _put_back(path: str, way: dict[str, object]) -> None:
    """Its ACL and mode; nothing where another directory has taken its place."""
    data = dict(way["kept"]) if isinstance(way["kept"], dict) else {}
    inode = data.pop("inode")
    try:
        with opened(path, os.O_PATH | os.O_DIRECTORY) as handle:
            status = os.fstat(handle)
            if status.st_ino == inode:
                kept = Kept(**data)
                restore(handle, Kept(**{**vars(kept), "uid": status.st_uid, "gid": status.st_gid}), is_directory=True)
    except FileNotFoundError:
        pass


def _keep(path: str) -> dict[str, object]:
    with opened(path, os.O_PATH | os.O_DIRECTORY) as handle:
        status = os.fstat(handle)
        return {**vars(keep(handle, status)), "inode": os.stat(magic(handle)).st_ino}


def _users(way: dict[str, object]) -> list[str]:
    users = way["users"]
    return [str(one) for one in users] if isinstance(users, list) else []


def _read() -> Ways:
    try:
        with open(FILE, encoding="utf-8") as file:
            ways: Ways = json.load(file)
            return ways
    except FileNotFoundError:
        return {}


def _write(ways: Ways) -> None:
    new = f"{FILE}.new"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
        json.dump(ways, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, FILE)
    if not ways:
        os.unlink(FILE)
