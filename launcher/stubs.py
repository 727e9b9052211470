"""Programs of ours that stand for the host's: first on PATH, and at the host's own paths as far as a backend can. Pure."""

from __future__ import annotations

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.view import Kind, Mount, View, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.launcher.policy import Policy
    from agent_sandbox.launcher.probe import Disk

OURS = "agent-sandbox"


def place_of_stubs(policy: Policy) -> str:
    return f"{policy.rooms.own}/stubs"


def link_to(place: str, name: str, stub: str) -> Mount:
    return Mount(path=f"{place}/{name}", kind=Kind.LINK, target=stub, origin=OURS)


def stand_in(path: str, content: bytes, backend: str, disk: Disk) -> Mount:
    """At the path of a real program: the stub, or nothing that can be opened where nothing can be mounted."""
    if backend == "bwrap":
        return Mount(path=path, kind=Kind.FILE, content=content, executable=True, movable=disk.movable(path), origin=OURS)
    return Mount(path=path, kind=Kind.MASK, origin=OURS)


def with_stubs(policy: Policy, mounts: Iterable[Mount]) -> Policy:
    """These mounts, each in the place of what was at its path; the directory of all stubs comes first on PATH, once."""
    merged = {mount.path: mount for mount in (*policy.view.mounts, *mounts)}
    values, first = policy.environment.values, f"{place_of_stubs(policy)}:"
    if not values["PATH"].startswith(first):
        values = {**values, "PATH": first + values["PATH"]}
    return replace(policy, view=View(mounts=in_order(list(merged.values()))), environment=replace(policy.environment, values=values))
