"""A launch's own directory, made fresh and removed at the end, and the list of the sessions that are running.

A session lives while its launcher does – a process id with the time that process started: a number alone may belong to
somebody else by now – or while its record is locked: a launcher in another container that shares /tmp is not in our /proc.
"""

from __future__ import annotations

import fcntl
import os
import stat

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher.jsonline import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.jsonline import Plain

RECORD = "session.json"
TRIES = 100


@record
class Session:
    id: str
    directory: str
    text: str  # what its record says


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


def name_session(uid: int, facts: dict[str, Plain]) -> Session:
    """Of this process; nothing is made yet."""
    random = os.urandom(4).hex()
    name = f"{os.getpid()}-{started(os.getpid())}-{random}"
    session_id = f"{random}{os.getpid()}"
    text = dumps({"id": session_id, "pid": os.getpid(), **facts}) + "\n"
    return Session(id=session_id, directory=f"{base_directory(uid)}/{name}", text=text)


def make_session(session: Session) -> None:
    """Done by the guard, which removes it too: there is no moment at which only the launcher knows of it."""
    mask = os.umask(0o077)
    try:
        _make_directory(session.directory)
        record_file = os.open(f"{session.directory}/{RECORD}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(record_file, fcntl.LOCK_EX)  # held until this process ends
        os.write(record_file, session.text.encode())
    except OSError as error:
        raise UserError(f"no runtime directory can be made: {error.strerror}", where=session.directory)
    finally:
        os.umask(mask)


def _make_directory(path: str) -> None:
    base = os.path.dirname(path)
    for left in reversed(range(TRIES)):  # another session that ends may take the empty base away between two steps
        try:
            os.makedirs(base, mode=0o700, exist_ok=True)
            if not _is_private(base, os.getuid()):
                raise UserError("the runtime directory is not yours alone", where=base, hint="remove it, or ask its owner or an admin to")
            os.mkdir(path, 0o700)
            return
        except FileNotFoundError:
            if not left:
                raise


def close_session(session: Session) -> None:
    remove_tree(session.directory)
    _try(os.rmdir, os.path.dirname(session.directory))


def remove_tree(path: str) -> None:
    """A link is removed, not followed, the first one neither; what is gone already, or cannot go, is no problem."""
    if os.path.islink(path) or not os.path.isdir(path):
        _try(os.unlink, path)
        return
    try:
        with os.scandir(path) as found:
            entries = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in found]
    except OSError:
        return
    for entry, is_directory in entries:
        remove_tree(entry) if is_directory else _try(os.unlink, entry)
    _try(os.rmdir, path)


def _try(remove: Callable[[str], None], path: str) -> None:
    try:
        remove(path)
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
    """The session directories of this user, and whether they live."""
    base = base_directory(uid)
    if not _is_private(base, uid):
        return []
    try:
        names = sorted(os.listdir(base))
    except OSError:  # the last session took it away just now
        return []
    return [(f"{base}/{name}", _is_running(name) or _is_locked(f"{base}/{name}/{RECORD}")) for name in names]


def _is_running(name: str) -> bool:
    pid, tick = [*name.split("-"), ""][:2]
    return pid.isdecimal() and tick.isdecimal() and started(int(pid)) == int(tick)


def _is_locked(path: str) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    finally:
        os.close(handle)
    return False


def sweep(uid: int) -> None:
    """Remove what sessions left that died together with their guard."""
    dead = [path for path, alive in sessions(uid) if not alive]
    for path in dead:
        remove_tree(path)
        _try(os.rmdir, os.path.dirname(path))
