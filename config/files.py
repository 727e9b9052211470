"""A config file's path → its bytes, if all who could have written it are trusted, and the TOML in them. Reads files.

Everything that leads to the file counts: each directory and each symbolic link on the way, from / on. The file itself
is judged by the descriptor that is read, and never waited for: a FIFO in its place is refused.
"""

from __future__ import annotations

import os
import stat

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.patterns import below
from agent_sandbox.config.record import record

MOST_BYTES = 1 << 20
TOML_ADVICE = {
    "Invalid value": 'texts stand in quotes: "pypi.org"',
    " twice": "a part such as [network] stands once in a file, with all its keys below it",
    "Cannot overwrite a value": "a key stands once in a file",
    "Unclosed array": 'a list ends with ]: ["a", "b"]',
}  # what the reader's words mean for somebody who does not know TOML
MOST_DOTS = 100  # on one line, outside quotes: tomllib's time is quadratic in the parts of a dotted key
MOST_LINKS = 40


@record
class Trust:
    """Whose files count: one user's and root's. Above `top` a directory only must not be open to everybody."""

    uid: int
    user: str
    top: str

    def check(self, status: os.stat_result, path: str) -> None:
        """UserError if somebody else could have put there what we are about to read."""
        if status.st_uid not in (0, self.uid):
            raise UserError(f"belongs to uid {status.st_uid}: only files of {self._owners()} are read", where=path)
        if status.st_mode & stat.S_IWOTH:
            raise UserError("can be written by everybody", where=path, hint=f"chmod o-w {path}")
        if status.st_mode & stat.S_IWGRP and not self._is_private(status.st_gid):
            raise UserError("can be written by its group", where=path, hint=f"chmod g-w {path}")

    def check_directory(self, status: os.stat_result, path: str) -> None:
        if below(path, self.top):
            self.check(status, path)
        elif status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            raise UserError("can be written by everybody", where=path, hint="ask its owner for chmod o-w, or chmod +t")

    def check_link(self, status: os.stat_result, path: str) -> None:
        if status.st_uid not in (0, self.uid):
            raise UserError(f"is a symbolic link made by uid {status.st_uid}", where=path)

    def _owners(self) -> str:
        return f"{self.user} and root" if self.uid else "root"

    def _is_private(self, gid: int) -> bool:
        """Is it the group that holds this user alone, as most Linux systems make one?"""
        import grp
        import pwd

        try:
            return self.uid != 0 and pwd.getpwuid(self.uid).pw_gid == gid and grp.getgrgid(gid).gr_name == self.user
        except KeyError:
            return False


ADMIN = Trust(uid=0, user="root", top="/")


def user_trust(user: str, uid: int, home: str) -> Trust:
    return Trust(uid=uid, user=user, top=os.path.realpath(home))


def read_trusted(path: str, trust: Trust) -> bytes | None:
    """The file's bytes; None where there is none."""
    real = _resolve(path, trust)
    return None if real is None else _read(real, path, trust)


def list_trusted(directory: str, trust: Trust) -> list[str]:
    """The *.toml files of a directory, in sorted order."""
    real = _resolve(directory, trust)
    try:
        names = [] if real is None else os.listdir(real)
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=directory) from None
    return [f"{directory}/{name}" for name in sorted(names) if name.endswith(".toml") and name[0] != "."]


def read_untrusted(path: str) -> bytes | None:
    """The project's own file: an agent may have written it, or put a link or a FIFO in its place."""
    return _read(path, path, None)


def parse(data: bytes, path: str) -> dict[str, object]:
    """TOML → tables; UserError with the line for anything else."""
    import tomllib

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8", where=f"{path}:{data[: error.start].count(10) + 1}") from None
    _check_dots(text, path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UserError("is nested too deeply", where=path) from None
    except ValueError as error:  # TOMLDecodeError, and numbers of thousands of digits
        raise _not_toml(str(error), path) from None


def _resolve(path: str, trust: Trust) -> str | None:
    """The real path, if all that leads to it is trusted; None where nothing is there.

    Then nothing is read, and nobody has to be trusted: /app may be anything on a machine that has no config of ours.
    """
    way = _walk(path)
    for step, status in way or ():
        if stat.S_ISLNK(status.st_mode):
            trust.check_link(status, step)
        elif stat.S_ISDIR(status.st_mode):
            trust.check_directory(status, step)
    return way[-1][0] if way else None


def _walk(path: str) -> list[tuple[str, os.stat_result]] | None:
    """Every directory and link from / to the file, and the file; None where it is missing. What a link names may not."""
    way: list[tuple[str, os.stat_result]] = []
    done, links = "/", 0
    steps = [(step, False) for step in path.split("/")]
    while steps:
        step, from_link = steps.pop(0)
        done = os.path.normpath(os.path.join(done, step))  # no link is left in `done`, so `..` is its parent
        status = _look(done, path, must_exist=from_link)
        if status is None:
            return None
        way.append((done, status))
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise UserError("leads through too many symbolic links", where=path)
            target = os.readlink(done)
            steps = [(part, True) for part in target.split("/")] + steps
            done = "/" if target.startswith("/") else os.path.dirname(done)
    return way


def _look(step: str, path: str, *, must_exist: bool) -> os.stat_result | None:
    try:
        return os.lstat(step)
    except FileNotFoundError:
        if must_exist:
            raise UserError(f"leads to {step}, which does not exist", where=path) from None
        return None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=path) from None


def _read(real: str, path: str, trust: Trust | None) -> bytes | None:
    try:
        handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        link = os.path.islink(real)
        problem = "is a symbolic link; it must be a file" if link else f"cannot be read: {error.strerror}"
        raise UserError(problem, where=path) from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise UserError("is not a regular file", where=path)
        if trust is not None:
            trust.check(status, path)
        return _read_all(handle, path)
    finally:
        os.close(handle)


def _read_all(handle: int, path: str) -> bytes:
    data = b""
    try:
        while len(data) <= MOST_BYTES:
            more = os.read(handle, MOST_BYTES + 1)
            if not more:
                return data
            data += more
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=path) from None
    raise UserError(f"is larger than {MOST_BYTES >> 20} MiB", where=path)


def _check_dots(text: str, path: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MOST_DOTS and _dots_outside_quotes(line) > MOST_DOTS:
            raise UserError("holds a key of too many parts", where=f"{path}:{number}")


def _dots_outside_quotes(line: str) -> int:
    import re

    return re.sub(r""""(?:[^"\\]|\\.)*+"?|'[^']*+'?""", "", line).count(".")


def _not_toml(message: str, path: str) -> UserError:
    import re

    place = re.search(r" \(at line (\d+), column \d+\)$", message)
    where = f"{path}:{place[1]}" if place else path
    problem = message[: place.start()] if place else message
    hint = next((advice for words, advice in TOML_ADVICE.items() if words in problem), "")
    return UserError(f"is not TOML: {problem}", where=where, hint=hint)
