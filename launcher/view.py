"""What the jail sees, as one table of mounts in which every path stands after its parents. Pure.

A backend walks the table from top to bottom, so a mount can never be covered by one that was meant to lie below it.
"""

from __future__ import annotations

import enum

from agent_sandbox.config.record import record
from agent_sandbox.launcher.policy import Access

SHELF = "/tmp"  # where our stage puts held grants, in its own mount namespace: everything at or below it is movable


class Kind(enum.Enum):
    BIND = "bind"  # the host's file or directory, at its own path
    SCRATCH = "scratch"  # an empty directory in memory that ends with the session
    LINK = "link"  # a symbolic link, made anew
    FILE = "file"  # a file that we wrote
    MASK = "mask"  # an empty directory over one of the host's that cannot be left out
    DEVICE = "device"
    DEV = "dev"
    PROC = "proc"


@record
class Mount:
    path: str
    kind: Kind
    origin: str
    access: Access = Access.READ
    target: str = ""  # of a link
    source: str = ""  # of a bind that is not at its own path
    content: bytes = b""  # of a file
    executable: bool = False  # the file is a program
    movable: bool = False  # somebody but root could put something else in its place: to be bound by an open file
    optional: bool = False  # one of many found by listing: may be gone by the time it is mounted


class Carving(enum.Enum):
    READ = "read-only"
    WRITE = "writable"
    PIN = "pinned"  # stays as it is, but cannot be renamed
    HIDE = "hidden"


@record
class Carve:
    """An exception below a writable directory: made on an open file, never by path, since the agent owns that tree."""

    root: str
    path: str
    carving: Carving
    origin: str


@record
class View:
    mounts: tuple[Mount, ...]

    def covering(self, path: str) -> Mount | None:
        """The mount that decides what is seen at `path`; None = nothing is there."""
        found = None
        for mount in self.mounts:
            if is_below(path, mount.path):
                found = mount
        return found

    def shows(self, path: str) -> bool:
        """Is the host's `path` (a real one) the same file inside?"""
        mount = self.covering(path)
        return mount is not None and mount.kind in (Kind.BIND, Kind.DEVICE)


def is_below(path: str, parent: str) -> bool:
    """At or below `parent`, by whole components."""
    return path == parent or parent == "/" or path.startswith(parent + "/")


def way_to(path: str) -> list[str]:
    """The path and every directory above it but the root, deepest first."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts), 1, -1)]


def by_depth(path: str) -> tuple[str, ...]:
    """A sort key that puts every directory before what lies in it."""
    return tuple(path.split("/"))


def in_order(mounts: list[Mount]) -> tuple[Mount, ...]:
    return tuple(sorted(mounts, key=lambda mount: by_depth(mount.path)))
