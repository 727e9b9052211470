"""The account files in /etc: the lines of some names are read, and put back under the lock that every other program takes."""

from __future__ import annotations

import contextlib
import os

from agent_sandbox.admin.accountlines import Line, find_lines, put_back
from agent_sandbox.admin.places import ACCOUNT_FILES, ETC
from agent_sandbox.launcher.syscalls import lock_accounts, unlock_accounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LABEL = "security.selinux"


def read_lines(names: tuple[str, ...]) -> tuple[Line, ...]:
    """The lines of these names in every account file that there is."""
    return tuple(line for file in ACCOUNT_FILES for line in find_lines(file, _read(file), names) if os.path.exists(f"{ETC}/{file}"))


def put_lines_back(before: tuple[Line, ...], left: tuple[Line, ...] = ()) -> None:
    """Each file that differs is replaced at once, with its owner, mode and label. `left`: how we left the lines."""
    known = {(line.file, line.name): line for line in left}
    with locked():
        for file in dict.fromkeys(line.file for line in before):
            old = new = _read(file)
            for line in before:
                if line.file == file:
                    new = put_back(new, line, known.get((file, line.name)))
            if new != old:
                _replace(file, new)


@contextlib.contextmanager
def locked() -> Iterator[None]:
    lock_accounts()
    try:
        yield
    finally:
        unlock_accounts()


def _read(file: str) -> str:
    try:
        with open(f"{ETC}/{file}", encoding="utf-8", errors="surrogateescape", newline="") as text:
            return text.read()
    except FileNotFoundError:
        return ""


def _replace(file: str, content: str) -> None:
    path, new = f"{ETC}/{file}", f"{ETC}/.{file}.botadm"
    status = os.stat(path)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "w", encoding="utf-8", errors="surrogateescape", newline="") as text:
        text.write(content)
        text.flush()
        os.fchown(handle, status.st_uid, status.st_gid)
        os.fchmod(handle, status.st_mode & 0o7777)
        with contextlib.suppress(OSError):
            os.setxattr(new, LABEL, os.getxattr(path, LABEL))
        os.fsync(handle)
    os.rename(new, path)
