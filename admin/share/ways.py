"""The way to a shared directory: those above it that the group may not pass get one right for it, to pass through, and lose it with the last share.

A home that was closed to all kept open what lies in it: whoever may pass, and knows a name, reaches a file of mode 0644. So what lies beside the
way is closed to the group by an entry of its own. Only files of the person who shares are changed; `ways.json` knows how each was, and for
which shares a way is open.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat

from agent_sandbox.admin.descriptors import ACCESS, Kept, get_acl, keep, magic, opened, restore, set_acl
from agent_sandbox.admin.places import SHARES
from agent_sandbox.admin.share.acl import ENTER, Entry, from_mode, may_enter, others_may, pack, parse, with_named_group, without_named_group
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher.syscalls import open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = f"{SHARES}/ways.json"


@record
class Was:
    """One file or directory before we gave the group an entry in its ACL."""

    inode: int
    kept: Kept
    rights: int  # what the entry says: ENTER for a way, 0 for what lies beside it


@record
class Way:
    was: Was
    users: tuple[str, ...]  # the shares that need it
    beside: dict[str, Was]


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


def open_ways(path: str, group: int, uid: int) -> list[str]:
    """What lies beside the ways and could not be closed. The record comes first, then what is beside, then the way itself."""
    known, stuck = _read(), list[str]()
    for one in check_ways(path, group, uid):
        if one not in known:
            with opened(one, os.O_PATH | os.O_DIRECTORY) as handle:
                known[one] = Way(was=_was(handle, ENTER), users=(), beside={})
    for one, way in known.items():
        if path.startswith(f"{one}/"):
            fresh = {name: was for name, was in _beside(one, _next(one, path), uid, group, stuck) if name not in way.beside}
            known[one] = Way(was=way.was, users=tuple(sorted({*way.users, path})), beside={**way.beside, **fresh})
    _write(known)
    for one, way in known.items():
        if path in way.users:
            _close_beside(one, way, group)
            _mark(one, way.was, group)
    return stuck


def close_ways(path: str, group: int) -> None:
    known = _read()
    for one, way in reversed(list(known.items())):
        users = tuple(user for user in way.users if user != path)
        known[one] = Way(was=way.was, users=users, beside=way.beside)
        if not users:
            for name, was in way.beside.items():
                _unmark(f"{one}/{name}", was, group)
            _unmark(one, way.was, group)
            del known[one]
    _write(known)


def _next(way: str, path: str) -> str:
    return path.removeprefix(f"{way}/").split("/")[0]


def _beside(folder: str, passed: str, uid: int, group: int, stuck: list[str]) -> Iterator[tuple[str, Was]]:
    """What in a directory is open to others, and so would be to the group. A file with several names is somewhere else too: left."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY) as handle:
        for name in sorted(os.listdir(handle)):
            entry = -1 if name == passed else _open(handle, name, f"{folder}/{name}", stuck)
            if entry < 0:
                continue
            try:
                status, entries = os.fstat(entry), parse(get_acl(entry, ACCESS))
                if stat.S_ISLNK(status.st_mode) or not others_may(status.st_mode, entries, group=group):
                    continue  # a link leads to what is judged by itself
                if status.st_uid == uid and (stat.S_ISDIR(status.st_mode) or status.st_nlink == 1):
                    yield name, _was(entry, 0)
                else:
                    stuck.append(f"{folder}/{name}")
            finally:
                os.close(entry)


def _open(folder: int, name: str, path: str, stuck: list[str]) -> int:
    """-1 = on another file system, or gone."""
    try:
        return open_beneath(folder, name, os.O_PATH | os.O_NOFOLLOW, one_mount=True)
    except OSError as error:
        if error.errno == errno.EXDEV:
            stuck.append(path)
        elif error.errno != errno.ENOENT:
            raise
        return -1


def _close_beside(folder: str, way: Way, group: int) -> None:
    for name, was in way.beside.items():
        _mark(f"{folder}/{name}", was, group)


def _mark(path: str, was: Was, group: int) -> None:
    """The group's entry is there, on the very file that was recorded."""
    try:
        with opened(path) as handle:
            entries = _entries(handle)
            if os.fstat(handle).st_ino == was.inode and not _has(entries, group):
                set_acl(handle, ACCESS, pack(with_named_group(entries, group, was.rights)))
    except (FileNotFoundError, UserError):
        pass  # gone, or a link is in its place


def _unmark(path: str, was: Was, group: int) -> None:
    """Exactly as it was, if nobody has changed it since; else only our entry goes."""
    try:
        with opened(path) as handle:
            status = os.fstat(handle)
            if status.st_ino != was.inode:
                return
            ours = with_named_group(parse(bytes.fromhex(was.kept.access)) or from_mode(was.kept.mode), group, was.rights)
            if get_acl(handle, ACCESS) == pack(ours) and (status.st_uid, status.st_gid) == (was.kept.uid, was.kept.gid):
                restore(handle, Kept(**{**vars(was.kept), "default": keep(handle, status).default}), is_directory=stat.S_ISDIR(status.st_mode))
            else:
                _take_entry_away(handle, group)
    except (FileNotFoundError, UserError):
        pass


def _take_entry_away(handle: int, group: int) -> None:
    entries = _entries(handle)
    rest = without_named_group(entries, group)
    set_acl(handle, ACCESS, pack(rest) if len(rest) > 3 else b"")
    if len(rest) <= 3:
        rights = {one.tag: one.rights for one in rest}
        os.chmod(magic(handle), stat.S_IMODE(os.fstat(handle).st_mode) & ~0o777 | rights[1] << 6 | rights[4] << 3 | rights[32])


def _entries(handle: int) -> tuple[Entry, ...]:
    return parse(get_acl(handle, ACCESS)) or from_mode(os.fstat(handle).st_mode)


def _has(entries: tuple[Entry, ...], group: int) -> bool:
    return any(one.tag == 8 and one.id == group for one in entries)


def _was(handle: int, rights: int) -> Was:
    status = os.fstat(handle)
    return Was(inode=status.st_ino, kept=keep(handle, status), rights=rights)


def _read() -> dict[str, Way]:
    try:
        with open(FILE, encoding="utf-8") as file:
            return {path: _to_way(way) for path, way in json.load(file).items()}
    except FileNotFoundError:
        return {}


def _to_way(data: dict[str, object]) -> Way:
    was, users, beside = data["was"], data["users"], data["beside"]
    assert isinstance(was, dict) and isinstance(users, list) and isinstance(beside, dict)
    return Way(was=_to_was(was), users=tuple(users), beside={name: _to_was(one) for name, one in beside.items()})


def _to_was(data: dict[str, object]) -> Was:
    inode, kept, rights = data["inode"], data["kept"], data["rights"]
    assert isinstance(inode, int) and isinstance(kept, dict) and isinstance(rights, int)
    return Was(inode=inode, kept=Kept(**kept), rights=rights)


def _from_was(was: Was) -> dict[str, object]:
    return {"inode": was.inode, "kept": dict(vars(was.kept)), "rights": was.rights}


def _write(ways: dict[str, Way]) -> None:
    if not ways:  # without a write: the disk may be full
        with contextlib.suppress(FileNotFoundError):
            os.unlink(FILE)
        return
    data = {
        path: {"was": _from_was(way.was), "users": list(way.users), "beside": {name: _from_was(was) for name, was in way.beside.items()}}
        for path, way in ways.items()
    }
    new = f"{FILE}.new"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
        json.dump(data, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, FILE)
