"""What holds inside, as a page that the jail can read: so that `explain` answers there too. Pure.

It holds no path that is hidden: who asks about one gets the answer that they get about a path that does not exist.
Neither does it name config files or the lists of paths in them, as they may name what is hidden.
"""

from __future__ import annotations

from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.kinds import shown
from agent_sandbox.config.settings import DEFAULT_LAYER
from agent_sandbox.launcher.jsonline import dumps
from agent_sandbox.launcher.policy import Access
from agent_sandbox.launcher.view import Carving, Kind, is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.jsonline import Plain
    from agent_sandbox.launcher.policy import Gap, Policy
    from agent_sandbox.launcher.view import Mount, View

SHOWN = (Kind.BIND, Kind.SCRATCH, Kind.DEVICE, Kind.FILE, Kind.DEV, Kind.PROC)
CARVED = {Carving.READ: "read", Carving.WRITE: "write"}
NETWORK = ("network.block", "network.allow", "network.floor_open")
TOLD = ("flag", "choice", "number", "size", "duration", "names", "variables", "hosts", "openings")  # kinds whose values name no path


def summarise(policy: Policy, settings: Settings, backend: str, gaps: tuple[Gap, ...]) -> str:
    environment = policy.environment
    return dumps({
        "version": 1, "backend": backend, "project": policy.project, "home": policy.home_mode,
        "network": {"mode": policy.network.mode, "asked": policy.network.asked, "why": policy.network.why, "lists": _lists(settings)},
        "seccomp": {"mode": policy.syscalls.mode, "nested": policy.syscalls.nested, "deny": policy.syscalls.deny},
        "removed": dict(environment.removed), "changed": dict(environment.changed), "set": environment.renamed,
        "settings": _settings(settings), "gaps": [gap.line() for gap in gaps], "paths": _paths(policy),
    }) + "\n"  # fmt: skip


def _settings(settings: Settings) -> dict[str, Plain]:
    """Value and rank of each key that a layer spoke of; the others are at their defaults."""
    held = {name: settings.values[name] for name, key in KEYS.items() if key.kind in TOLD and name in settings.values}
    return {
        name: [settings.names(name) if KEYS[name].listed else shown(KEYS[name], value.scalar), value.rank.name.lower()]
        for name, value in held.items()
        if settings.is_set(name)
    }


def _lists(settings: Settings) -> list[Plain]:
    """Key, rank, entry, who set it; of the shipped ones the copy of the package inside knows."""
    said = [entry for key in NETWORK for entry in settings.entries(key) if entry.layer != DEFAULT_LAYER]
    return [[entry.key, int(entry.rank), entry.value, entry.rank.name.lower()] for entry in said]


def right_at(mount: Mount, view: View) -> str:
    """`read` or `write`: a file that we wrote can be written where the directory of ours around it can."""
    if mount.kind == Kind.FILE:
        around = view.covering(mount.path.rpartition("/")[0])
        return right_at(around, view) if around and around.kind == Kind.SCRATCH else "read"
    is_open = mount.access == Access.WRITE or mount.kind in (Kind.DEVICE, Kind.DEV)
    return "write" if is_open else "read"


def _paths(policy: Policy) -> list[Plain]:
    """Path, what it is, right: the deepest entry above a path decides."""
    hidden = [mount.path for mount in policy.view.mounts if mount.kind == Kind.MASK]
    hidden += [carve.path for carve in policy.carves if carve.carving == Carving.HIDE]
    found = [(m.path, m.kind.value, right_at(m, policy.view)) for m in policy.view.mounts if m.kind in SHOWN]
    found += [(c.path, c.carving.value, CARVED[c.carving]) for c in policy.carves if c.carving in CARVED]
    return [entry for entry in found if not any(is_below(entry[0], path) for path in hidden)]
