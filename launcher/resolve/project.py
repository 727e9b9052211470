"""The directory that was asked for becomes the project, or a reason why it may not be one. Pure given a Disk."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.view import is_below, way_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.policy import Host
    from agent_sandbox.launcher.probe import Disk, Found

LONGEST_PATH = 3800  # bytes: bwrap puts a prefix in front, and the kernel stops at 4096


@record
class Places:
    """Where our own things lie, as real paths."""

    home: str
    install: str
    config: str
    state: str
    data: str
    admin: str
    runtime: str

    def protected(self) -> tuple[tuple[str, str], ...]:
        return (
            (self.install, "the agent-sandbox that is running"), (self.config, "the directory of the configuration"),
            (self.state, "the directory of sessions and audit"), (self.data, "the directory of installed copies"),
            (self.admin, "the admin's directory"), (self.runtime, "the directory of running sessions"),
        )  # fmt: skip


def find_places(host: Host, disk: Disk, admin: str, runtime: str) -> Places:
    home = disk.follow(host.home).real
    real = {name: disk.follow(f"{home}/{below}").real for name, below in OWN_DIRECTORIES.items()}
    return Places(
        home=home, install=disk.follow(host.install).real, admin=disk.follow(admin).real, runtime=disk.follow(runtime).real, **real,
    )  # fmt: skip


OWN_DIRECTORIES = {
    "config": ".config/agent-sandbox",
    "state": ".local/state/agent-sandbox",
    "data": ".local/share/agent-sandbox",
}


def find_project(asked: str, host: Host, disk: Disk) -> Found:
    """The real directory, with the links that led to it."""
    path = asked if asked.startswith("/") else f"{host.cwd}/{asked}"
    if "\0" in path:
        raise UserError("the project path has a NUL character in it")
    if len(path.encode("utf-8", "surrogateescape")) > LONGEST_PATH:
        raise UserError(f"the project path is longer than {LONGEST_PATH} bytes", where=printable(path), hint="start from a shorter path")
    found = disk.follow(path)
    if found.kind != "directory":
        problem = "is not a directory" if found.kind else "does not exist, or cannot be reached"
        raise UserError(f"the project {problem}", where=printable(path), hint="--project-dir names the directory to work in")
    return found


def check_project(project: str, places: Places, settings: Settings, disk: Disk) -> None:
    """Refuse what would hand the agent more than a project."""
    where = printable(project)
    home = {disk.identity(path) for path in way_to(places.home)}  # a bind mount is one more name of the same directory
    if is_below(places.home, project) or disk.identity(project) in home:
        raise UserError(
            "the home directory, or one above it, cannot be the project: everything in it would be writable",
            where=where, hint="cd into a project directory, or give --project-dir",
        )  # fmt: skip
    for own, what in places.protected():
        if is_below(project, own):
            raise UserError(f"the project lies in {what}", where=where, hint="start from another directory")
    parents = settings.names("project.parents")
    if settings.is_set("project.parents") and not any(is_below(project, parent) for parent in parents):
        allowed = ", ".join(map(printable, parents)) or "nowhere"
        raise UserError(
            f"projects may lie below: {allowed} (project.parents)",
            where=where, hint=f"the rule stands in {settings.origin('project.parents')}",
        )  # fmt: skip
    if not disk.writable(project):
        raise UserError(
            "the project cannot be written: it belongs to somebody else, or its file system is read-only",
            where=where, hint="start in a directory of yours and grant this one with --ro",
        )  # fmt: skip
