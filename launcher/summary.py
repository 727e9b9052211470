"""What holds inside, as a page that the jail can read: so that `explain` answers there too. Pure.

It holds no path that is hidden: an agent that asks about one gets the answer that it gets about a path that does not exist.
"""

from __future__ import annotations

from agent_sandbox.launcher.jsonline import dumps
from agent_sandbox.launcher.view import Carving, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.policy import Gap, Policy

SUMMARY = "/run/agent-sandbox/summary.json"
SHOWN = (Kind.BIND, Kind.SCRATCH, Kind.DEVICE, Kind.FILE)


def summarise(policy: Policy, settings: Settings, backend: str, gaps: tuple[Gap, ...]) -> str:
    paths = [[m.path, m.kind.value, m.access.name.lower()] for m in policy.view.mounts if m.kind in SHOWN]
    paths += [[c.path, c.carving.value, "read"] for c in policy.carves if c.carving == Carving.READ]
    return dumps({
        "version": 1, "backend": backend, "project": policy.project, "home": policy.home_mode,
        "network": {"mode": policy.network.mode, "asked": policy.network.asked, "why": policy.network.why},
        "seccomp": {"mode": policy.syscalls.mode, "nested": policy.syscalls.nested, "deny": list(policy.syscalls.deny)},
        "removed": {name: rule for name, rule in policy.environment.removed},
        "gaps": [gap.line() for gap in gaps], "paths": paths,
    })  # fmt: skip
