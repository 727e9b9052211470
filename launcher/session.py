"""A launch's own directory, made fresh and removed at the end, and the list of the sessions that are running.

A session lives while its launcher does – a process id with the time that process started: a number alone may belong to
somebody else by now – or while its record is locked: a launcher in another container that shares /tmp is not in our /proc.
"""

from __future__ import annotations

import errno
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
    room: str = ""  # a directory of its own for what cannot be mounted where it belongs


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


def new_name() -> str:
    """Of this process: its number, when it started, and something that nobody guesses."""
    return f"{os.getpid()}-{started(os.getpid())}-{os.urandom(8).hex()}"


def id_of(name: str) -> str:
    """As people and logs call it."""
    pid, _, random = name.split("-")
    return f"{random[:8]}{pid}"


def room_of(name: str) -> str:
    """In /tmp, where there is as much space as anybody gets; known by the session's name, so that it can be swept; short, since
    programs put sockets below it, whose paths have 107 bytes."""
    return f"/tmp/agent-sandbox-{name.rpartition('-')[2][:12]}"


def name_session(uid: int, name: str, facts: dict[str, Plain], *, has_room: bool) -> Session:
    """Nothing is made yet."""
    session_id = id_of(name)
    text = dumps({"id": session_id, "pid": os.getpid(), **facts}) + "\n"
    room = room_of(name) if has_room else ""
    return Session(id=session_id, directory=f"{base_directory(uid)}/{name}", text=text, room=room)


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
                os.lstat(base)  # gone again?
                raise UserError("the runtime directory is not yours alone", where=base, hint="remove it, or ask its owner or an admin to")
            os.mkdir(path, 0o700)
            return
        except FileNotFoundError:
            if not left:
                raise


def close_session(session: Session) -> None:
    """The room first: as long as the directory is there a later launch knows of it."""
    if session.room:
        remove_tree(session.room)
    remove_tree(session.directory)
    _try(os.rmdir, os.path.dirname(session.directory))


def remove_tree(path: str) -> None:
    """A link is removed, not followed, the first one neither; what is gone already, or cannot go, is no problem.

    An agent may have filled it: directories without any right, or nested deeper than a path is long. So what lies two levels
    down is moved up to the first, until nothing is left.
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        _try(os.unlink, path)
        return
    try:
        if os.fstat(top).st_uid == os.getuid():
            _empty(top)
    except OSError:
        pass
    finally:
        os.close(top)
    _try(os.rmdir, path)


def _empty(top: int) -> None:
    number = 0
    while names := os.listdir(top):
        for name in names:
            number = _remove(name, top, number)


def _remove(name: str, top: int, number: int) -> int:
    """One entry and all below it but the directories, which are moved to `top` under numbers that follow `number`."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=top).st_mode):
        os.unlink(name, dir_fd=top)
        return number
    os.chmod(name, 0o700, dir_fd=top)
    directory = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        for below in os.listdir(directory):
            number = _lift(below, directory, top, number)
    finally:
        os.close(directory)
    os.rmdir(name, dir_fd=top)
    return number


def _lift(name: str, directory: int, top: int, number: int) -> int:
    if not stat.S_ISDIR(os.lstat(name, dir_fd=directory).st_mode):
        os.unlink(name, dir_fd=directory)
        return number
    os.chmod(name, 0o700, dir_fd=directory)  # a directory that cannot be written cannot be moved either
    while True:
        number += 1
        try:
            os.rename(name, f".agent-sandbox-{number}", src_dir_fd=directory, dst_dir_fd=top)
            return number
        except (FileExistsError, NotADirectoryError):
            continue
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise


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
        remove_tree(room_of(os.path.basename(path)))
        remove_tree(path)
        _try(os.rmdir, os.path.dirname(path))
