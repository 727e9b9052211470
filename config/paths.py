"""What is written for a path, made absolute by its words alone. Pure.

`..` is refused in files: whether `a/../b` is `b` depends on a symbolic link at `a`, which somebody else may move.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def absolute(written: str, *, base: str, home: str) -> str:
    """The absolute path without `//`, `/./` and a slash at the end; ValueError for what cannot be one."""
    check(written)
    if written == "~" or written.startswith("~/"):
        written = home + written[1:]
    elif written.startswith("~"):
        raise ValueError(f"{written!r}: only your own home can be written as ~; write the other one out")
    elif not written.startswith("/"):
        written = f"{base}/{written}"
    return _join(written.split("/"))


def inside(written: str) -> str:
    """A path relative to the project, without `./` and doubled slashes; ValueError for one that leads out of it."""
    check(written)
    if written.startswith(("/", "~")):
        raise ValueError(f"{written!r} must be relative to the project")
    plain = _join(written.split("/"))[1:]
    if not plain:
        raise ValueError(f"{written!r} is the project itself")
    return plain


def check(written: str) -> None:
    if not written:
        raise ValueError("a path cannot be empty")
    if "\0" in written or "\n" in written or "\r" in written:
        raise ValueError(f"{written!r} holds a character that no path of ours may hold")


def has_dotdot(written: str) -> bool:
    return ".." in written.split("/")


def _join(parts: Iterable[str]) -> str:
    steps = [part for part in parts if part not in ("", ".")]
    if ".." in steps:
        raise ValueError(f"{'/'.join(steps)!r} holds '..'; write the path without it")
    return "/" + "/".join(steps)
