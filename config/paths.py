"""What is written for a path, made absolute by its words alone. Pure.

`..` is refused in files: whether `a/../b` is `b` depends on a symbolic link at `a`, which somebody else may move.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 4096  # of the kernel's paths


def absolute(written: str, *, base: str, home: str) -> str:
    """The absolute path without `//`, `/./` and a slash at the end; ValueError for what cannot be one."""
    check(written)
    if written == "~" or written.startswith("~/"):
        written = home + written[1:]
    elif written.startswith("~"):
        raise ValueError(f"holds {written!r}: only your own home can be written as ~; write the other one out")
    elif not written.startswith("/"):
        written = f"{base}/{written}"
    return _join(written.split("/"))


def inside(written: str) -> str:
    """A path relative to the project, without `./` and doubled slashes; ValueError for one that leads out of it."""
    check(written)
    if written.startswith(("/", "~")):
        raise ValueError(f"holds {written!r}, which must be relative to the project")
    plain = _join(written.split("/"))[1:]
    if not plain:
        raise ValueError(f"holds {written!r}, which is the project itself")
    return plain


def check(written: str) -> None:
    if not written or len(written) > LONGEST:
        raise ValueError("holds a path that is empty" if not written else f"holds a path of {len(written)} characters")
    if "\0" in written or "\n" in written or "\r" in written:
        raise ValueError(f"holds {written!r}: a path here is one line of text")


def has_dotdot(written: str) -> bool:
    return ".." in written.split("/")


def _join(parts: Iterable[str]) -> str:
    steps = [part for part in parts if part not in ("", ".")]
    if ".." in steps:
        raise ValueError(f"holds {'/'.join(steps)!r}: write the path without '..'")
    return "/" + "/".join(steps)
