"""The machine as it is, for one bot: accounts, directory, rule, records, processes. Reads; changes nothing."""

from __future__ import annotations

import grp
import os
import pwd
import stat

from agent_sandbox.admin import descriptors as files
from agent_sandbox.admin.accountfiles import read_lines
from agent_sandbox.admin.bots.facts import Facts, read_facts
from agent_sandbox.admin.places import GROUP, NAMESPACES, STATE, disabled_of, namespace_of, rule_of
from agent_sandbox.admin.processes import processes_of
from agent_sandbox.admin.programs import find_tool, run
from agent_sandbox.admin.steps import UNKNOWN
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.accountlines import Line
    from agent_sandbox.admin.descriptors import Kept

INIT = f"{STATE}/init.json"


@record
class Account:
    uid: int
    group: str  # its name; the number where it has none
    home: str
    shell: str


@record
class Place:
    """What is at a path: "" (nothing), "directory", "file", or "link"."""

    kind: str
    owner: str = ""
    group: str = ""
    mode: int = 0
    default: str = ""  # ACL
    text: str = ""  # of a file
    secret: bool = False  # there, and not for us to read


@record
class Site:
    """What bots share."""

    begun: str  # the record of `init`; "" = none
    group: bool
    members: tuple[str, ...]
    top: Place
    bots: tuple[str, ...] = ()


@record
class Found:
    name: str
    site: Site
    facts: Facts | None
    user: Account | None
    group: bool
    lines: tuple[Line, ...]
    namespace: Place
    files: dict[str, str]  # of the namespace: name → kind
    rule: Place
    disabled: str  # what disabling kept
    owner_uid: int  # -1 = no such person
    processes: tuple[int, ...]
    permitted: bool | None = None  # what sudo itself says of the owner's becoming the bot; None = not asked


def find_site() -> Site:
    try:
        members: tuple[str, ...] | None = tuple(grp.getgrnam(GROUP).gr_mem)
    except KeyError:
        members = None
    begun = place(INIT)
    return Site(begun=begun.text, group=members is not None, members=members or (), top=place(NAMESPACES))


def find(name: str, owner: str) -> Found:
    user = find_account(name)
    namespace = namespace_of(name)
    inside = [] if place(namespace).kind != "directory" else (".bashrc", ".profile", "env")
    facts = read_facts(name)
    return Found(
        name=name, site=find_site(), facts=facts, user=user, group=has_group(name),
        lines=tuple(line for line in read_lines((name,)) if line.text) if os.geteuid() == 0 else (),
        namespace=place(namespace), files={one: kind_at(f"{namespace}/{one}") for one in inside}, rule=place(rule_of(name)),
        disabled=place(disabled_of(name)).text, owner_uid=uid_of(owner), permitted=ask_sudo(facts) if facts and user else None,
        processes=tuple(processes_of(user.uid)) if user and user.uid > 0 else (),
    )  # fmt: skip


def mounts_below(path: str) -> tuple[str, ...]:
    """Mount points at and below a path; the kernel writes blanks in them as \\040."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [line.split(" ")[4].replace("\\040", " ") for line in file]
    return tuple(point for point in points if point == path or point.startswith(f"{path}/"))


def ask_sudo(facts: Facts) -> bool | None:
    """A rule that lies in its place is one thing, that sudo goes by it another."""
    sudo = find_tool("sudo")
    if os.geteuid() != 0 or not sudo:
        return None
    command = facts.entry if facts.strict else "/bin/sh"
    return run((sudo, "-n", "-l", "-U", facts.owner, "-u", facts.name, command), seconds=20).code == 0


def kind_at(path: str) -> str:
    """As `Place.kind`. Nothing is opened: a bot that holds a lease on its file would keep us waiting, and itself from being stopped."""
    try:
        status = files.look(path)
    except PermissionError:
        return UNKNOWN
    return _kind(status.st_mode) if status else ""


def _kind(mode: int) -> str:
    return "link" if stat.S_ISLNK(mode) else "directory" if stat.S_ISDIR(mode) else "file"


def find_account(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(uid=entry.pw_uid, group=_group(entry.pw_gid), home=entry.pw_dir, shell=entry.pw_shell)


def has_group(name: str) -> bool:
    try:
        return bool(grp.getgrnam(name))
    except KeyError:
        return False


def uid_of(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, ValueError):
        return -1


def place(path: str) -> Place:
    try:
        status = files.look(path)
    except PermissionError:
        return Place(kind="", secret=True)
    if status is None:
        return Place(kind="")
    if stat.S_ISLNK(status.st_mode):
        return Place(kind="link")
    base = Place(kind=_kind(status.st_mode), owner=_user(status.st_uid), group=_group(status.st_gid), mode=stat.S_IMODE(status.st_mode), secret=True)
    try:
        return _with_content(base, files.keep_path(path))
    except (PermissionError, UserError):
        return base


def _with_content(base: Place, kept: Kept | None) -> Place:
    if kept is None:
        return Place(kind="")
    text = bytes.fromhex(kept.content).decode("utf-8", "surrogateescape")
    return Place(kind=base.kind, owner=base.owner, group=base.group, mode=base.mode, default=kept.default, text=text)


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
