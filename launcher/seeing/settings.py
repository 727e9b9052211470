"""`agent-sandbox config …`: who asks and where, handed to the config engine's own commands."""

from __future__ import annotations

from agent_sandbox.config.commands import run as run_command
from agent_sandbox.config.location import Where
from agent_sandbox.launcher.probe import Disk, read_host
from agent_sandbox.launcher.resolve.project import find_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.cli import Request


def run(request: Request) -> int:
    host = read_host()
    project = find_project(request.project or host.cwd, host, Disk())
    groups = tuple(name for _, name in host.groups)
    where = Where(
        user=host.user, uid=host.uid, home=host.home, groups=groups, host=host.name, project=project.real, cwd=host.cwd,
    )  # fmt: skip
    return run_command(request.command, where)
