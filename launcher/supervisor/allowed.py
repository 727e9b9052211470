"""What the supervisor may do for the processes of a jail, and questions about real paths. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import record


@record
class Allowed:
    writable: tuple[str, ...]  # real paths: at or below them unix sockets can be reached, and modes, owners, times, attributes changed
    readable: tuple[str, ...]  # real paths: at or below them files can be watched; at or below the writable ones as well
    sockets: tuple[str, ...]  # real paths of granted unix sockets: these very files
    abstract: bool  # abstract unix names: True where the kernel's Landlock scope decides, False: refused here
    hosts: tuple[tuple[str, int], ...] | None  # addresses and ports that can be dialled; None: any
    told: int = -1  # where connections to them are told of; -1: nowhere


class Places:
    """Directories, asked about often: is this real path one of them, or below one?"""

    def __init__(self, paths: tuple[str, ...]) -> None:
        encoded = [path.encode("utf-8", "surrogateescape").rstrip(b"/") for path in paths]
        self._themselves = frozenset(path or b"/" for path in encoded)
        self._below = tuple(path + b"/" for path in encoded)

    def hold(self, path: bytes) -> bool:
        return path in self._themselves or path.startswith(self._below)


class Reach:
    """`Allowed`, made ready to be asked."""

    def __init__(self, allowed: Allowed) -> None:
        self.writable = Places(allowed.writable)
        self.watchable = Places(allowed.writable + allowed.readable)
        self.abstract = allowed.abstract
        self._sockets = frozenset(path.encode("utf-8", "surrogateescape") for path in allowed.sockets)

    def has_socket(self, path: bytes) -> bool:
        return path in self._sockets or self.writable.hold(path)
