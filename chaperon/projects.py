"""A project's directory → its id, which names its jobs in the ledger. Kept in the state directory.

    projects/d-INODE-BIRTH    the id of the directory that has this inode and was made at this time
    projects/p-HASH           the id of the directory that was last seen with this path

A directory is known by its inode and the time it was made, so a project that was moved or renamed keeps its jobs, and a new one
with an old name (or with an inode that is used again) does not get another's. Where the file system does not tell when a
directory was made, as NFS often does not, the path decides. Nothing in the project itself says its id: the agent can write there.
"""

from __future__ import annotations

import os
from _blake2 import blake2b  # importing hashlib would load OpenSSL

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher import syscalls

LONGEST = 256  # bytes of an entry
BORN, PATH = "born", "path"  # by which of the two an id was given out


def project_id(state: str, path: str) -> str:
    """`path` is the real one."""
    directory = f"{state}/projects"
    name = os.fsencode(path)
    try:
        make_private(directory)
        mark = syscalls.birth(name)
        return _find(directory, f"d-{mark[0]:x}-{mark[1]:x}" if mark else "", f"p-{blake2b(name, digest_size=16).hexdigest()}")
    except OSError as error:
        raise UserError(f"the project has no id: {error.strerror}", where=directory, hint="jobs are recorded there; it must be writable")


def make_private(directory: str) -> None:
    """With all that is missing above it, for the user alone: os.makedirs asks the umask for those."""
    try:
        os.mkdir(directory, 0o700)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise
    except FileNotFoundError:
        make_private(os.path.dirname(directory))
        make_private(directory)


def _find(directory: str, born: str, path: str) -> str:
    known, by = _read(directory, path)
    if not born:
        return known or _add(directory, path, f"{_new()} {PATH}")
    mine = _read(directory, born)[0]
    if not mine:
        # An id that a path alone was given, on a machine that saw no more of the directory, is this directory's.
        mine = _add(directory, born, f"{known if by == PATH and known else _new()} {BORN}")
    if (known, by) != (mine, BORN):
        _replace(directory, path, f"{mine} {BORN}")
    return mine


def _new() -> str:
    return os.urandom(8).hex()


def _read(directory: str, name: str) -> tuple[str, str]:
    """The id and by what it was given; empty where there is none."""
    try:
        handle = os.open(f"{directory}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return "", ""
    with os.fdopen(handle, "rb") as file:
        words = file.read(LONGEST).decode("ascii", "replace").split()
    if len(words) != 2 or len(words[0]) != 16 or not words[0].isalnum():
        raise UserError("the id of a project cannot be read", where=f"{directory}/{name}", hint="remove the file: the project then gets a new one")
    return words[0], words[1]


def _add(directory: str, name: str, text: str) -> str:
    """The id; another's where somebody was quicker: a link is made once, and whole."""
    fresh = _write(directory, text)
    try:
        os.link(fresh, f"{directory}/{name}")
    except FileExistsError:
        return _read(directory, name)[0]
    finally:
        os.unlink(fresh)
    return text.split()[0]


def _replace(directory: str, name: str, text: str) -> None:
    os.rename(_write(directory, text), f"{directory}/{name}")


def _write(directory: str, text: str) -> str:
    path = f"{directory}/new-{os.getpid()}-{_new()}"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, text.encode() + b"\n")
        os.fsync(handle)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(handle)
    return path
