"""The usual config files → their tables by content: parsed by another process of ours while this one is still loading.

A hint and nothing more. Whoever uses it reads and judges every file itself, and finds here only what those very bytes say.
"""

from __future__ import annotations

import marshal
import os
import pwd
import stat

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.files import MOST_BYTES, parse
from agent_sandbox.config.location import ADMIN_DIR, USER_DIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def parse_usual_files() -> bytes:
    """What cannot be read or understood is left out: it is for the reader to say so."""
    found = {}
    for data in _contents():
        try:
            found[data] = parse(data, "")
        except UserError:
            continue
    try:
        return marshal.dumps(found)
    except ValueError:  # a date, say: no key of ours takes one
        return marshal.dumps({})


def _contents() -> Iterator[bytes]:
    for directory in (ADMIN_DIR, f"{_home()}/{USER_DIR}"):
        for path in (f"{directory}/config.toml", *_more(f"{directory}/conf.d")):
            try:
                yield _read(path)
            except OSError:
                continue


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _more(directory: str) -> list[str]:
    try:
        return [f"{directory}/{name}" for name in os.listdir(directory) if name.endswith(".toml")]
    except OSError:
        return []


def _read(path: str) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        return file.read(MOST_BYTES) if stat.S_ISREG(os.fstat(handle).st_mode) else b""


class Ahead:
    """A parser that knows the files of `parse_usual_files` already; asks for them when the first file is to be parsed."""

    def __init__(self, fetch: Callable[[], bytes]) -> None:
        self._fetch = fetch
        self._known: dict[bytes, dict[str, object]] | None = None

    def __call__(self, data: bytes, path: str) -> dict[str, object]:
        if self._known is None:
            self._known = _unpacked(self._fetch())
        return self._known[data] if data in self._known else parse(data, path)


def _unpacked(packed: bytes) -> dict[bytes, dict[str, object]]:
    try:
        found: dict[bytes, dict[str, object]] = marshal.loads(packed)
    except (EOFError, ValueError, TypeError):  # whoever parsed was killed over it
        return {}
    return found
