"""The exceptions below writable directories, put in order and held in place. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.view import Carve, Carving, by_depth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.launcher.policy import Policy


def settle(carves: Iterable[Carve]) -> tuple[Carve, ...]:
    """From the top down, parents pinned, without what lies below something hidden: there is nothing left to make an exception of."""
    held = {carve.path: carve for carve in carves}
    hidden = tuple(f"{carve.path}/" for carve in held.values() if carve.carving == Carving.HIDE)
    standing = {path: carve for path, carve in held.items() if not path.startswith(hidden)}
    return tuple(sorted(_with_pins(standing).values(), key=lambda carve: by_depth(carve.path)))


def as_enforced(policy: Policy, backend: str) -> Policy:
    """With the exceptions that will be there: Landlock makes none, and a person may have accepted that."""
    return replace(policy, carves=()) if backend == "landlock" else policy


def _with_pins(carves: dict[str, Carve]) -> dict[str, Carve]:
    """Every directory between a writable root and a carve becomes a mount point: renaming it would carry the carve away, and
    leave its name free for something of the agent's own."""
    pinned = dict(carves)
    for carve in carves.values():
        for parent in _between(carve.root, carve.path):
            pinned.setdefault(parent, Carve(root=carve.root, path=parent, carving=Carving.PIN, origin=carve.origin))
    return pinned


def _between(root: str, path: str) -> list[str]:
    parts = path[len(root) + 1 :].split("/")[:-1]
    return ["/".join([root, *parts[: i + 1]]) for i in range(len(parts))]
