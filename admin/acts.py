"""An act is done, taken back, and looked at. This file and what it calls are where root changes the machine.

`save` is called before `do` and tells `undo` how things were; what it returns goes into the journal first. Every `undo` can be
done again, and after an act that was not done or half done: it puts back what was saved, whatever it finds.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import time

from agent_sandbox.admin import descriptors as files
from agent_sandbox.admin.accountfiles import put_lines_back, read_lines
from agent_sandbox.admin.accountlines import members
from agent_sandbox.admin.descriptors import Kept
from agent_sandbox.admin.leftovers import describe_leftovers, remove_leftovers
from agent_sandbox.admin.plaindata import from_lines, to_lines
from agent_sandbox.admin.processes import end_processes, processes_of
from agent_sandbox.admin.programs import run
from agent_sandbox.admin.share import tree
from agent_sandbox.admin.share.acl import for_person, has_person
from agent_sandbox.admin.steps import Delete, Drop, End, Grant, Lines, Make, Put, Set, ShareTree, Sweep, Tool, Unmake, UnshareTree
from agent_sandbox.admin.trees import delete_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.share.rules import Tally
    from agent_sandbox.admin.steps import Act

    Saved = dict[str, object]

TRIES = 20  # while another program holds the account files


class Failed(Exception):
    """An act could not be done, or did not hold; why, in words."""


def save(act: Act) -> Saved:
    match act:
        case Tool():
            return {"lines": from_lines(read_lines(act.names))}
        case Lines():
            return {"lines": from_lines(read_lines(tuple(dict.fromkeys(line.name for line in act.lines))))}
        case Put() | Drop() | Make() | Unmake() | Set() | Grant():
            kept = files.keep_path(act.path)
            return {"kept": dict(vars(kept)) if kept else None}
        case ShareTree():
            return {"known": tree.known(act.path)}
    return {}


def do(act: Act, turn: int) -> Tally | None:
    """`turn` is our lock's descriptor: a program that outlives us keeps it. A tree tells what became of it."""
    match act:
        case Tool():
            _run_tool(act, turn)
        case Lines():
            put_lines_back(act.lines)
        case End():
            if not end_processes(act.uid):
                raise Failed(f"processes of {act.name} do not end: {processes_of(act.uid)}")
        case Sweep():
            remove_leftovers(act.name, act.uid)
        case ShareTree():
            return tree.share(act)
        case UnshareTree():
            return tree.unshare(act)
        case Put():
            _put(act, turn)
        case Drop() | Delete():
            files.remove_file(act.path) if isinstance(act, Drop) else delete_tree(act.path)
        case _:
            _do_directory(act)
    return None


def _do_directory(act: Make | Unmake | Set | Grant) -> None:
    match act:
        case Make():
            files.make_directory(act.path, uid_of(act.owner), gid_of(act.group), act.mode)
        case Unmake():
            files.remove_directory(act.path)
        case Set():
            files.set_directory(act.path, uid_of(act.owner), gid_of(act.group), act.mode)
        case Grant():
            _grant(act)


def after(act: Act) -> Saved:
    """How an act left things, for taking it back when others have changed the same file since."""
    return {"left": from_lines(read_lines(act.names))} if isinstance(act, Tool) else {}


def undo(act: Act, saved: Saved) -> None:
    match act:
        case Tool() | Lines():
            put_lines_back(to_lines(saved.get("lines")), to_lines(saved.get("left")))
        case Put() | Drop():
            _put_file_back(act.path, _kept(saved))
        case Make():
            if _kept(saved) is None:
                files.remove_directory(act.path)
        case Unmake() | Set() | Grant():
            _put_directory_back(act.path, _kept(saved))
        case ShareTree():
            tree.take_back(act, known=int(str(saved.get("known", 0))))


def check(act: Act) -> str:
    """What does not hold after the act; "" = all does."""
    match act:
        case Tool():
            return _check_lines(act)
        case Lines():
            names = tuple(dict.fromkeys(line.name for line in act.lines))
            there = {(line.file, line.name): line.text for line in read_lines(names)}
            return "" if all(there.get((line.file, line.name), "") == line.text for line in act.lines) else "the lines are not there"
        case Put():
            kept = files.keep_path(act.path)
            right = kept and (kept.uid, kept.gid, kept.mode) == (uid_of(act.owner), gid_of(act.group), act.mode)
            return "" if right and kept and bytes.fromhex(kept.content) == _bytes(act.content) else f"{act.path} is not as written"
        case Drop() | Unmake() | Delete():
            return f"{act.path} is still there" if files.look(act.path) else ""
        case Make() | Set():
            kept = files.keep_path(act.path)
            right = kept and (kept.uid, kept.gid) == (uid_of(act.owner), gid_of(act.group)) and act.mode in (-1, kept.mode)
            return "" if right else f"{act.path} is not as set"
        case Grant():
            kept = files.keep_path(act.path)
            return "" if kept and has_person(bytes.fromhex(kept.default), uid_of(act.person)) else f"{act.path} has no such ACL"
        case End():
            return f"processes of {act.name} run" if processes_of(act.uid) else ""
        case Sweep():
            left = describe_leftovers(act.name, act.uid)
            return f"{left} is still there" if left else ""
    return ""


def uid_of(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def gid_of(name: str) -> int:
    return grp.getgrnam(name).gr_gid


def _run_tool(act: Tool, turn: int) -> None:
    for _ in range(TRIES):
        done = run(act.argv, keep=(turn,))
        if done.code in act.fine:
            return
        if "cannot lock" not in done.err:
            break
        time.sleep(0.25)
    raise Failed(f"{' '.join(act.argv)}: {done.reason}")


def _check_lines(act: Tool) -> str:
    lines = [line for line in read_lines(act.names) if line.text]
    there = {f"{line.file}:{line.name}" for line in lines}
    there |= {f"{line.file}:{line.name}:{one}" for line in lines for one in members(line)}
    wrong = [f"{one} is missing" for one in act.present if one not in there] + [f"{one} is still there" for one in act.absent if one in there]
    return ", ".join(wrong)


def _put(act: Put, turn: int) -> None:
    new = files.write_file(act.path, _bytes(act.content), Kept(uid=uid_of(act.owner), gid=gid_of(act.group), mode=act.mode))
    if act.visudo:
        done = run((act.visudo, "-cf", f"{os.path.dirname(act.path)}/{new}"), keep=(turn,))
        if done.code:
            raise Failed(f"visudo does not take {act.path}: {done.reason}")
    files.rename_into_place(act.path, new)


def _bytes(content: str) -> bytes:
    return content.encode("utf-8", "surrogateescape")


def _grant(act: Grant) -> None:
    with files.opened(act.path, os.O_PATH | os.O_DIRECTORY) as handle:
        files.set_acl(handle, files.DEFAULT, for_person(uid_of(act.person)))


def _put_file_back(path: str, kept: Kept | None) -> None:
    files.remove_new(path)
    if kept is None:
        files.remove_file(path)
    elif files.keep_path(path) != kept:
        files.rename_into_place(path, files.write_file(path, bytes.fromhex(kept.content), kept))


def _put_directory_back(path: str, kept: Kept | None) -> None:
    if kept is None:
        return
    if files.look(path) is None:
        files.make_directory(path, kept.uid, kept.gid, kept.mode)
    with files.opened(path, os.O_PATH | os.O_DIRECTORY) as handle:
        files.restore(handle, kept, is_directory=stat.S_ISDIR(os.fstat(handle).st_mode))


def _kept(saved: Saved) -> Kept | None:
    data = saved.get("kept")
    return Kept(**data) if isinstance(data, dict) else None
