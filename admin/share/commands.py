"""`botadm share` and `botadm noshare`."""

from __future__ import annotations

import grp
import os
import pwd

from agent_sandbox.admin.bots.commands import INIT_FIRST, NEW_LOGIN, bot_names
from agent_sandbox.admin.change import Planned, change
from agent_sandbox.admin.descriptors import opened
from agent_sandbox.admin.names import check_group_name, check_shared_path
from agent_sandbox.admin.owner import find_owner
from agent_sandbox.admin.places import GROUP
from agent_sandbox.admin.report import Outcome
from agent_sandbox.admin.share import records, tree, ways
from agent_sandbox.admin.steps import ShareTree, Step, UnshareTree
from agent_sandbox.config.errors import UserError, plain
from agent_sandbox.launcher.syscalls import open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    Tools = dict[str, str]

TEMPORARY = "what a program makes 0600 on purpose (mkstemp does) is its maker's alone; all else is the group's"


def share(path: str, *, owner: str, recursive: bool, dry_run: bool) -> Outcome:
    def planned(tools: Tools) -> Planned:
        person, group = find_owner(owner, os.environ, bot_names()), need_group()
        check_place(path, person)
        check_nesting(path)
        act = ShareTree(path=path, owner=person, recursive=recursive)
        closed = ways.check_ways(path, group, pwd.getpwnam(person).pw_uid)
        surveyed = tree.survey(act)
        if not surveyed.changed and not closed:
            return Planned(steps=(), surveyed=(surveyed,))
        step = Step(does=f"share {path}" + (" and all below" if recursive else ""), why=f"the group {GROUP} works in it", act=act)
        return Planned(steps=(step,), notes=notes(person, group, closed), surveyed=(surveyed,))

    path = absolute(path)
    return change(f"share {plain(path, 200)}", planned, dry_run=dry_run)


def noshare(path: str, *, owner: str, group: str, recursive: bool, dry_run: bool) -> Outcome:
    def planned(tools: Tools) -> Planned:
        person = find_owner(owner, os.environ, bot_names())
        need_group()
        act = UnshareTree(path=path, owner=person, group=group or primary_group(person), recursive=recursive)
        recorded = records.size_of(path) > 0
        if recorded and not os.path.lexists(path):
            return Planned(steps=(Step(does=f"forget {path}", why="it is gone; the way to it is closed again", act=act),))
        check_place(path, person)
        if not recorded and grp.getgrgid(os.lstat(path).st_gid).gr_name != GROUP:
            return Planned(steps=())
        why = "as recorded when it was shared" if recorded else f"there is no record: the group becomes {act.group}"
        step = Step(does=f"give {path} back" + (" and all below" if recursive else ""), why=why, act=act)
        return Planned(steps=(step,), surveyed=(tree.survey_back(act),) if dry_run else ())

    path = absolute(path)
    if group:
        check_group_name(group)
        _gid(group)
    return change(f"noshare {plain(path, 200)}", planned, dry_run=dry_run)


def absolute(path: str) -> str:
    """One slash in front: `normpath` keeps two, which would pass for another path than the system's."""
    return "/" + os.path.normpath(os.path.join(os.getcwd(), path)).lstrip("/")


def check_place(path: str, owner: str) -> None:
    """UserError unless it is a directory or file of the owner's, reached without a link, and no mount point."""
    check_shared_path(path, homes(owner))
    try:
        with opened(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY) as parent, opened(path):
            os.close(open_beneath(parent, os.path.basename(path), os.O_PATH, one_mount=True))
    except FileNotFoundError:
        raise UserError("is not there", where=plain(path)) from None
    except OSError as error:
        problem = "is a mount point" if error.errno == 18 else f"cannot be opened: {error.strerror}"
        raise UserError(problem, where=plain(path), hint="share a directory in it") from None
    problem = tree.belongs_to(path, owner)
    if problem:
        raise UserError(problem, where=plain(path), hint="its owner can share it")


def homes(owner: str) -> frozenset[str]:
    """Home directories, and all that lies above one."""
    known = {os.path.normpath(entry.pw_dir) for entry in pwd.getpwall()} | {pwd.getpwnam(owner).pw_dir}
    found = set[str]()
    for home in known:
        while home not in found and home != "/":
            found.add(home)
            home = os.path.dirname(home)
    return frozenset(found)


def check_nesting(path: str) -> None:
    """One record a file: trees that hold each other would each take the other's state for the one before."""
    for header in records.headers():
        if path.startswith(f"{header.path}/") and header.recursive:
            hint = f"botadm share -r {header.path} takes in what is new"
            raise UserError(f"is part of {header.path}, which is shared", where=plain(path), hint=hint)
        if header.path.startswith(f"{path}/"):
            raise UserError(f"holds {header.path}, which is shared by itself", where=plain(path), hint=f"botadm noshare -r {header.path} first")


def notes(owner: str, group: int, closed: list[str]) -> tuple[str, ...]:
    said = [f"the group may pass through {one} now; what is in it is closed to it, new files open to others are not" for one in closed]
    if owner not in grp.getgrgid(group).gr_mem:
        said.append(f"{owner} is not in the group {GROUP}: sudo botadm init")
    elif not session_knows(group):
        said.append(NEW_LOGIN)
    return (*said, TEMPORARY)


def session_knows(group: int) -> bool:
    """Is the group among those of the process that called sudo?"""
    pid, uid = os.getppid(), os.environ.get("SUDO_UID", "")
    while uid and pid > 1:
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
                fields = dict(line.rstrip("\n").split(":", 1) for line in file if ":" in line)
        except OSError:
            return True
        if fields["Uid"].split()[1] == uid:
            return str(group) in fields["Groups"].split()
        pid = int(fields["PPid"])
    return True


def need_group() -> int:
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        raise UserError(f"there is no group {GROUP}", hint=INIT_FIRST) from None


def primary_group(owner: str) -> str:
    return grp.getgrgid(pwd.getpwnam(owner).pw_gid).gr_name


def _gid(name: str) -> int:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise UserError(f"there is no group «{name}»") from None
