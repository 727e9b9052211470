"""What is wanted and what was found become steps. Pure: a step is data, so it can be shown, written down, done and taken back.

    Part    one thing that should be so: what it should be, what it is, and the steps that make it so (none = it is so)
    Step    an act, with what it does and why; how it is taken back and checked follows from the act
    Act     the data of one change; `acts.py` does it, takes it back and looks whether it holds
"""

from __future__ import annotations

from agent_sandbox.admin.accountlines import Line
from agent_sandbox.config.record import record


@record
class Tool:
    """A program of the system's changes the account files. `names` are those whose lines may change."""

    argv: tuple[str, ...]
    names: tuple[str, ...]
    present: tuple[str, ...] = ()  # "passwd:clio": has a line afterwards; "group:bot:clio": with this member
    absent: tuple[str, ...] = ()
    fine: tuple[int, ...] = (0,)  # exit statuses that mean well


@record
class Lines:
    """Lines of account files are put in place as they are given, under the passwd lock."""

    lines: tuple[Line, ...]


@record
class Put:
    """A file gets this content, owner and mode, in one rename; sudo's rules only if visudo takes them."""

    path: str
    content: str
    owner: str = "root"
    group: str = "root"
    mode: int = 0o644
    visudo: str = ""  # the program that must accept it first


@record
class Drop:
    """A file goes."""

    path: str


@record
class Make:
    """A directory is made."""

    path: str
    owner: str = "root"
    group: str = "root"
    mode: int = 0o755


@record
class Unmake:
    """An empty directory goes."""

    path: str


@record
class Set:
    """A directory gets this owner, group and mode. -1 = the mode stays."""

    path: str
    owner: str
    group: str
    mode: int


@record
class Grant:
    """A person gets all rights on what will be made in a directory, whatever the umask of who makes it."""

    path: str
    person: str


@record
class End:
    """All processes of a user end. Not to be taken back."""

    uid: int
    name: str


@record
class Sweep:
    """What a user left in the system's spools and in System V IPC goes. Not to be taken back."""

    uid: int
    name: str


@record
class Delete:
    """A directory goes with all that is in it, never through a link. Not to be taken back."""

    path: str


@record
class ShareTree:
    """A directory is given to the group; how everything was is recorded first."""

    path: str
    owner: str
    recursive: bool


@record
class UnshareTree:
    """Everything gets back what was recorded. Not to be taken back: sharing again does that."""

    path: str
    owner: str
    group: str
    recursive: bool


Act = Tool | Lines | Put | Drop | Make | Unmake | Set | Grant | End | Sweep | Delete | ShareTree | UnshareTree
UNKNOWN = "cannot be seen without root"
FINAL = (End, Sweep, Delete, UnshareTree)  # these come last in every plan


@record
class Step:
    does: str
    why: str
    act: Act

    @property
    def reversible(self) -> bool:
        return not isinstance(self.act, FINAL)


@record
class Part:
    what: str
    should: str
    found: str
    steps: tuple[Step, ...] = ()

    @property
    def known(self) -> bool:
        return self.found != UNKNOWN

    @property
    def right(self) -> bool:
        """As far as we can tell: what cannot be read is not called wrong."""
        return self.found in (self.should, UNKNOWN)


def steps_of(parts: tuple[Part, ...]) -> tuple[Step, ...]:
    """What is not to be taken back comes last, whatever asked for it."""
    steps = [step for part in parts if not part.right for step in part.steps]
    return tuple(sorted(steps, key=lambda step: not step.reversible))


def undo_of(act: Act) -> str:
    """How an act is taken back, in words."""
    match act:
        case Tool() | Lines():
            names = act.names if isinstance(act, Tool) else tuple(dict.fromkeys(line.name for line in act.lines))
            return f"the saved lines of {', '.join(names)} go back into the account files, under the passwd lock"
        case Put() | Drop():
            return f"{act.path} as it was before, or gone if it was not there"
        case Make():
            return f"remove {act.path} if it is empty"
        case Unmake():
            return f"make {act.path} again, with its owner and mode"
        case Set() | Grant():
            return f"owner, mode and ACLs of {act.path} as they were before"
        case ShareTree():
            return "every file gets back its recorded owner, group, mode and ACLs"
    return "cannot be taken back"


def check_of(act: Act) -> str:
    """What is looked at afterwards, in words."""
    match act:
        case Tool():
            there = [f"/etc/{one.replace(':', ' has ', 1).replace(':', ' with ')}" for one in act.present]
            gone = [f"/etc/{one.replace(':', ' has no ')}" for one in act.absent]
            return ", ".join([*there, *gone])
        case Lines():
            return "the lines are there"
        case Put():
            return f"{act.path} has that content, {act.owner}:{act.group} {act.mode:04o}" + (", and visudo takes it" if act.visudo else "")
        case Drop() | Unmake() | Delete():
            return f"{act.path} is not there"
        case Make() | Set():
            return f"{act.path} is {act.owner}:{act.group}" + (f" {act.mode:04o}" if act.mode >= 0 else "")
        case Grant():
            return f"{act.path} has a default ACL for {act.person}"
        case End():
            return f"no process of {act.name} runs"
        case Sweep():
            return f"no crontab, job of at or System V IPC of {act.name} is there"
        case ShareTree() | UnshareTree():
            return "each file by its descriptor, as it is changed"
