"""Which backend is taken, with which gaps and words, as the machine loses one feature after the other.

The machines are simulated: a Host and what trying each backend would have given are values made here, as the probe would have
made them; the reasons, the choice, the gaps and the messages are the real ones. `choices.txt` beside this file is the table.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.layers import load
from agent_sandbox.config.location import Where
from agent_sandbox.config.record import record, replace
from agent_sandbox.config.settings import Settings
from agent_sandbox.launcher.backends import choose as choosing
from agent_sandbox.launcher.backends.choose import Choice, check_gaps, choose
from agent_sandbox.launcher.policy import Access, Environment, Gap, Host, Limits, Masking, Network, Policy, Property, Rooms, Shape, Syscalls, Tried
from agent_sandbox.launcher.seeing.reasons import Facts, why_no_bwrap, why_no_firejail, why_no_landlock
from agent_sandbox.launcher.tries import tried
from agent_sandbox.launcher.view import Carve, Carving, Kind, Mount, View

if TYPE_CHECKING:
    from agent_sandbox.launcher.plan import Backend, Plan

EXPECTED = Path(__file__).with_name("choices.txt")
HOST = Host(  # noqa: S604 - `shell` is the name of one
    user="ann", uid=1000, gid=1000, home="/home/ann", shell="/bin/sh", groups=((1000, "ann"),), name="node", machine="x86_64", landlock=7,
    bwrap="/usr/bin/bwrap", install="/opt/x", entry="/opt/x/bin/agent-sandbox", package="/opt/x/lib/agent_sandbox", python="/usr/bin/python3",
    environment={}, cwd="/home/ann/project",
)  # fmt: skip
OLD = "bwrap: Unknown option --perms"
REFUSED = "No permissions to create a new namespace"


@record
class Machine:
    """What is there; `bwrap` and `firejail` as the facts that trying them would have given."""

    words: str
    bwrap: Facts = Facts(program="/usr/bin/bwrap")
    firejail: Facts = Facts()
    landlock: int = 7
    notify: bool = True
    yama: int = 0
    own_group: bool = True

    def host(self) -> Host:
        return replace(
            HOST, bwrap=self.bwrap.program, firejail=self.firejail.program, landlock=self.landlock, notify=self.notify, yama=self.yama,
            own_group=self.own_group,
        )  # fmt: skip

    def attempt(self, name: str) -> Tried:
        reasons = {"bwrap": why_no_bwrap(self.bwrap), "firejail": why_no_firejail(self.firejail), "landlock": ()}[name]
        return tried(name, why_no_landlock() if name == "landlock" and not self.landlock else reasons)


def failing(problem: str, **facts: object) -> Facts:
    return replace(Facts(program="/usr/bin/bwrap", version=(0, 8, 0), entry=HOST.entry), problem=problem, **facts)


def machines() -> Iterator[Machine]:
    yield Machine(words="all there")
    for version in range(6, -1, -1):
        yield Machine(words=f"Landlock ABI {version}", landlock=version)
    yield Machine(words="Landlock ABI 5, group shared", landlock=5, own_group=False)
    yield Machine(words="no userns (max_user_namespaces)", bwrap=failing(REFUSED, switches=(("user.max_user_namespaces", "user"),)))
    yield Machine(words="no userns (userns_clone)", bwrap=failing(REFUSED, switches=(("kernel.unprivileged_userns_clone", "user"),)))
    yield Machine(words="no userns (AppArmor)", bwrap=failing(REFUSED, apparmor="1"))
    yield Machine(words="no userns (container)", bwrap=failing(REFUSED, container=True))
    yield Machine(words="old bwrap", bwrap=failing(OLD, version=(0, 4, 1)))
    yield Machine(words="no bwrap", bwrap=Facts())
    for version in range(6, -1, -1):
        yield Machine(words=f"no bwrap, Landlock ABI {version}", bwrap=Facts(), landlock=version)
    yield Machine(words="no bwrap, no notify", bwrap=Facts(), notify=False)
    for scope in (1, 2, 3):
        yield Machine(words=f"no bwrap, Yama {scope}", bwrap=Facts(), yama=scope)


    firejail = Facts(program="/usr/bin/firejail", version=(0, 9, 72), setuid=True)
    yield Machine(words="all there, firejail too", firejail=firejail)
    yield Machine(words="firejail", bwrap=Facts(), firejail=firejail)
    yield Machine(words="firejail, Landlock ABI 5", bwrap=Facts(), firejail=firejail, landlock=5)
    yield Machine(words="firejail, no Landlock", bwrap=Facts(), firejail=firejail, landlock=0)
    failed = replace(firejail, problem="Error: it failed")
    yield Machine(words="firejail without setuid", bwrap=Facts(), firejail=replace(failed, setuid=False))
    yield Machine(words="firejail in a user namespace", bwrap=Facts(), firejail=replace(failed, setuid=False, mapped=True))
    yield Machine(words="firejail under no_new_privs", bwrap=Facts(), firejail=replace(failed, no_new_privileges=True))
    yield Machine(words="old firejail", bwrap=Facts(), firejail=replace(failed, version=(0, 9, 62)))


# On which machines each is asked for by name: those that differ in what it depends on.
NAMED: dict[str, Callable[[Machine], object]] = {
    "auto": lambda machine: True,
    "bwrap": lambda machine: machine.words == "no bwrap" or machine.bwrap.program,
    "landlock": lambda machine: machine.words == "all there" or machine.words.startswith("no bwrap"),
    "firejail": lambda machine: machine.words == "no bwrap" or machine.firejail.program,
}  # fmt: skip
FEW = ("all there", "Landlock ABI 5, group shared", "no bwrap", "no bwrap, Landlock ABI 5", "no bwrap, Yama 2", "firejail")


LISTS: dict[str, dict[str, object]] = {
    "require users": {"sandbox.require": ["users"]},
    "require users, accept it": {"sandbox.require": ["users"], "sandbox.accept_gaps": ["users"]},
    "require pids ipc": {"sandbox.require": ["pids", "ipc"]},
    "require pids, accept it": {"sandbox.require": ["pids"], "sandbox.accept_gaps": ["pids"]},
    "require abstract-sockets, open": {"sandbox.require": ["abstract-sockets"], "network.mode": "open"},
    "require project-protect": {"sandbox.require": ["project-protect"]},
}


def read_settings(home: Path, options: Mapping[str, object]) -> Settings:
    """The real merge, with no file but the shipped defaults."""
    where = Where(
        user="ann", uid=1000, home=str(home), groups=("ann",), host="node", project=str(home / "project"), cwd=str(home),
        admin_dir=str(home / "admin"),
    )  # fmt: skip
    return load(where, options)


def make_policy(settings: Settings, backend: Backend, host: Host) -> Policy:
    shape = backend.shape(host, "/run/user/1000/agent-sandbox/room")
    usual = (Mount(path="/usr", kind=Kind.BIND, origin="x"), Mount(path="/home/ann/project", kind=Kind.BIND, access=Access.WRITE, origin="x"))
    protected = Carve(root="/home/ann/project", path="/home/ann/project/.git/hooks", carving=Carving.READ, origin="project.protect")
    mode = settings.text("network.mode")
    return Policy(
        project="/home/ann/project", cwd="/home/ann/project", home=host.home, real_home=host.home, home_mode="tmpwrite", rooms=shape.rooms,
        view=View(mounts=usual), carves=(protected,) if "project-protect" in settings.names("sandbox.require") else (),
        environment=Environment(values={}, removed=(), changed=()), network=Network(mode="open" if mode == "open" else "isolated", asked=mode),
        syscalls=Syscalls(mode="hpc", nested=False), limits=Limits(), required=settings.names("sandbox.require"),
        accepted=settings.names("sandbox.accept_gaps"),
    )  # fmt: skip


def decide(machine: Machine, settings: Settings) -> Choice:
    host = machine.host()
    found = choose(settings, lambda: host, machine.attempt, lambda backend: make_policy(settings, backend, host))
    check_gaps(found.gaps, found.policy, found.backend.name)
    return found


def outcome(machine: Machine, settings: Settings, said: dict[str, None]) -> str:
    """One line; what is said in full goes to `said`."""
    try:
        found = decide(machine, settings)
    except UserError as error:
        said[f"{error.problem} [{error.hint}]"] = None
        return f"refused: {error.problem}"
    said.update(dict.fromkeys(gap.line() for gap in found.gaps))
    names = dict.fromkeys(f"({gap.property})" if gap.weak else str(gap.property) for gap in found.gaps)
    return " ".join([f"{found.backend.name}:", *names] if names else [found.backend.name])


def table(home: Path) -> Iterator[str]:
    said: dict[str, None] = {}
    yield "Which backend, and which properties it does not enforce; in brackets: it does, but for a weak point."
    for backend, differs in NAMED.items():
        yield f"\nsandbox.backend = {backend}"
        for machine in filter(differs, machines()):
            yield f"  {machine.words:34} {outcome(machine, read_settings(home, {'sandbox.backend': backend}), said)}"
    for (name, options), backend in itertools.product(LISTS.items(), ("auto", "landlock")):
        yield f"\nsandbox.backend = {backend}, {name}"
        for machine in (one for one in machines() if one.words in FEW):
            yield f"  {machine.words:34} {outcome(machine, read_settings(home, {'sandbox.backend': backend, **options}), said)}"
    yield "\nWhat is said"
    yield from (f"  {line}" for line in said)


def test_choices_gaps_and_messages_are_those_of_the_table(tmp_path: Path) -> None:
    assert "\n".join(table(tmp_path)) + "\n" == EXPECTED.read_text()


class Fake:
    """A backend with the gaps that a test gives it."""

    def __init__(self, name: str, gaps: tuple[Gap, ...]) -> None:
        self.name, self._gaps = name, gaps

    def shape(self, host: Host, room: str) -> Shape:
        return Shape(masking=Masking.SOME, rooms=Rooms(home=host.home, tmp="/tmp", own="/run/x"))

    def gaps(self, policy: Policy, host: Host) -> tuple[Gap, ...]:
        return self._gaps

    def plan(self, policy: Policy, host: Host, command: object) -> Plan:
        raise NotImplementedError


def gap(name: str, weak: bool = False) -> Gap:
    return Gap(property=Property(name), reason="so", weak=weak)


@pytest.mark.parametrize(
    ("gaps", "accepted", "taken", "tried_too"),
    [
        ({}, [], "bwrap", "bwrap"),
        ({"bwrap": [gap("hidden", weak=True)]}, [], "bwrap", "bwrap"),
        ({"bwrap": [gap("users")]}, [], "bwrap", "bwrap"),  # not required
        ({"bwrap": [gap("hidden")]}, [], "firejail", "bwrap firejail"),
        ({"bwrap": [gap("hidden")], "firejail": [gap("slurm"), gap("network")]}, [], "landlock", "bwrap firejail landlock"),
        ({"bwrap": [gap("hidden")], "firejail": [gap("slurm")], "landlock": [gap("slurm")]}, [], "bwrap", "bwrap firejail landlock"),
        ({"bwrap": [gap("hidden")], "firejail": [gap("slurm")], "landlock": [gap("slurm")]}, ["slurm"], "firejail", "bwrap firejail landlock"),
        ({"bwrap": [gap("hidden"), gap("network")], "firejail": [gap("slurm")], "landlock": [gap("slurm")]}, [], "firejail",
         "bwrap firejail landlock"),
    ],
)  # fmt: skip
def test_auto_takes_the_fewest_gaps_in_what_is_required(
    gaps: dict[str, list[Gap]], accepted: list[str], taken: str, tried_too: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "load", lambda name: Fake(name, tuple(gaps.get(name, []))))
    asked: list[str] = []
    settings = read_settings(tmp_path, {"sandbox.accept_gaps": accepted})

    def attempt(name: str) -> Tried:
        asked.append(name)
        return Tried(backend=name, problem="")

    found = choose(settings, lambda: HOST, attempt, lambda backend: make_policy(settings, backend, HOST))
    assert (found.backend.name, asked) == (taken, tried_too.split())


def test_what_does_not_run_is_remembered_with_the_choice(tmp_path: Path) -> None:
    settings = read_settings(tmp_path, {})
    machine = Machine(words="", bwrap=Facts())
    assert [one.problem for one in decide(machine, settings).passed_over] == ["bwrap is not installed", "firejail is not installed"]
    assert decide(Machine(words=""), settings).passed_over == ()
