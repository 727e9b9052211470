"""A launch's own directory, made fresh and removed at the end, and the list of the sessions that are running.

Liveness is a process id with the time that process started: a number alone may belong to somebody else by now.
"""

from __future__ import annotations

import os
import stat

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher.jsonline import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.jsonline import Plain

RECORD = "session.json"


@record
class Session:
    id: str
    directory: str


def base_directory(uid: int) -> str:
    """The user's runtime directory where the system made one, else a directory of ours in /tmp."""
    system = f"/run/user/{uid}"
    return f"{system}/agent-sandbox" if _is_private(system, uid) else f"/tmp/agent-sandbox-{uid}"


def _is_private(path: str, uid: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077


def open_session(uid: int, facts: dict[str, Plain]) -> Session:
    name = f"{os.getpid()}-{started(os.getpid())}-{os.urandom(4).hex()}"
    base = base_directory(uid)
    for _ in range(100):  # another session that ends may take the empty base away between two steps
        try:
            os.makedirs(base, mode=0o700, exist_ok=True)
            os.mkdir(f"{base}/{name}", 0o700)
            break
        except FileNotFoundError:
            continue
    else:
        raise UserError("no runtime directory can be made", where=base)
    if not _is_private(base, uid):
        os.rmdir(f"{base}/{name}")
        raise UserError("the runtime directory is not yours alone", where=base, hint="somebody else made it: ask them or an admin to remove it")
    session = Session(id=name.rpartition("-")[2] + name.partition("-")[0], directory=f"{base}/{name}")
    with open(f"{session.directory}/{RECORD}", "w") as file:
        file.write(dumps({"id": session.id, "pid": os.getpid(), **facts}) + "\n")
    return session


def close_session(session: Session) -> None:
    remove_tree(session.directory)
    _drop_base(session.directory)


def _drop_base(directory: str) -> None:
    try:
        os.rmdir(os.path.dirname(directory))
    except OSError:
        pass


def remove_tree(path: str) -> None:
    """A link is removed, not followed; what is gone already is no problem."""
    try:
        with os.scandir(path) as found:
            entries = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in found]
        for entry, is_directory in entries:
            remove_tree(entry) if is_directory else os.unlink(entry)
        os.rmdir(path)
    except OSError:
        pass


def started(pid: int) -> int:
    """When a process started, in the kernel's ticks; 0 = it is gone, or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in b"ZX" else int(fields[19])


def sessions(uid: int) -> list[tuple[str, bool]]:
    """The session directories of this user, and whether their launcher lives."""
    base = base_directory(uid)
    if not _is_private(base, uid):
        return []
    found = []
    for name in sorted(os.listdir(base)):
        pid, _, rest = name.partition("-")
        tick = rest.partition("-")[0]
        alive = pid.isdecimal() and tick.isdecimal() and started(int(pid)) == int(tick)
        found.append((f"{base}/{name}", alive))
    return found


def sweep(uid: int) -> None:
    """Remove what sessions left that died together with their guard."""
    dead = [path for path, alive in sessions(uid) if not alive]
    for path in dead:
        remove_tree(path)
        _drop_base(path)
