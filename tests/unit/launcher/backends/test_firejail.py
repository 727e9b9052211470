"""A policy as the lines of a firejail profile, what the stage inside is told to look at, and what is said to be missing."""

from __future__ import annotations

import pytest

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace
from agent_sandbox.launcher.backends.firejail import ALWAYS, Firejail, check_path
from agent_sandbox.launcher.plan import Plan
from agent_sandbox.launcher.policy import Access, Environment, Host, Limits, Network, Policy, Rooms, Syscalls
from agent_sandbox.launcher.view import Carve, Carving, Kind, Mount, View, in_order

HOME, PROJECT, OWN = "/home/ann", "/home/ann/my project", "/tmp/room/own"
HOST = Host(  # noqa: S604 - `shell` is the name of one
    user="ann", uid=1000, gid=1000, home=HOME, shell="/bin/sh", groups=((1000, "ann"),), name="node", machine="x86_64", landlock=7,
    bwrap="", firejail="/usr/bin/firejail", install="/opt/x", entry="/opt/x/bin/agent-sandbox", package="/opt/x/lib/agent_sandbox",
    python="/usr/bin/python3", environment={}, cwd=PROJECT,
)  # fmt: skip
EMPTY = "agent-sandbox-nothing"
NO_LIMITS = Limits()
EMPTIED = [f"whitelist {top}/{EMPTY}" for top in ("/run", "/var", "/srv", "/mnt", "/media")]
OWN_PLACE = [f"whitelist {OWN}", f"read-only {OWN}"]
OWN_HOME = [f"whitelist {HOME}/{EMPTY}", f"blacklist {HOME}/.Xauthority", f"blacklist {HOME}/.asoundrc"]


def bind(path: str, access: Access = Access.READ) -> Mount:
    return Mount(path=path, kind=Kind.BIND, access=access, origin="x")


def scratch(path: str, access: Access = Access.WRITE) -> Mount:
    return Mount(path=path, kind=Kind.SCRATCH, access=access, origin="x")


def policy(*mounts: Mount, carves: tuple[Carve, ...] = (), network: str = "isolated", home: str = HOME, limits: Limits = NO_LIMITS) -> Policy:
    return Policy(
        project=PROJECT, cwd=PROJECT, home=home, real_home=HOME, home_mode="tmpwrite", view=View(mounts=in_order(list(mounts))), carves=carves,
        rooms=Rooms(home=home, tmp="/tmp", own=OWN, session="/tmp/room"), network=Network(mode=network, asked=network), limits=limits,
        environment=Environment(values={"HOME": home}, removed=(), changed=()), syscalls=Syscalls(mode="off", nested=False),
        required=(), accepted=(),
    )  # fmt: skip


def plan(asked: Policy) -> Plan:
    return Firejail().plan(asked, HOST, ("echo", "a b"))


def rules(asked: Policy) -> list[str]:
    """After what every profile begins with."""
    return [line for line in plan(asked).options if "/" in line and line not in (*ALWAYS, *EMPTIED, *OWN_PLACE)]


def checks(asked: Policy) -> dict[str, str]:
    inner = plan(asked).inner
    assert inner is not None
    return {path: check for path, check in inner.checks if path not in ("/dev/log", "/dev/shm", "/run", OWN)}


def test_a_throw_away_home_with_a_project_and_a_grant() -> None:
    asked = policy(bind("/usr"), bind("/opt"), scratch(HOME), scratch("/tmp"), bind(PROJECT, Access.WRITE), bind(f"{HOME}/.vimrc"))
    assert rules(asked) == [
        *OWN_HOME, f"whitelist {HOME}/.vimrc", f"read-only {HOME}/.vimrc", f"whitelist {PROJECT}", "read-only /opt", f"whitelist /tmp/{EMPTY}",
    ]  # fmt: skip
    assert checks(asked) == {
        f"{HOME}/.Xauthority": "hidden", f"{HOME}/.asoundrc": "hidden", HOME: "scratch", f"{HOME}/.vimrc": "read", PROJECT: "write",
        "/opt": "read", "/tmp": "scratch", "/usr": "read",
    }  # fmt: skip


def test_a_read_only_home_is_opened_again_where_it_may_be_written() -> None:
    asked = policy(bind(HOME), bind(PROJECT, Access.WRITE), Mount(path=f"{HOME}/.ssh", kind=Kind.MASK, origin="x"))
    assert rules(asked) == [f"whitelist {HOME}", f"read-only {HOME}", f"blacklist {HOME}/.ssh", f"read-write {PROJECT}"]
    restricted = policy(scratch(HOME, Access.READ), bind(PROJECT, Access.WRITE))
    assert rules(restricted) == [*OWN_HOME, f"read-only {HOME}", f"whitelist {PROJECT}", f"read-write {PROJECT}"]


def test_exceptions_below_the_project_come_last_and_from_the_top_down() -> None:
    made = tuple(
        Carve(root=PROJECT, path=f"{PROJECT}/{name}", carving=carving, origin="x")
        for name, carving in ((".git", Carving.PIN), (".git/hooks", Carving.READ), ("data", Carving.WRITE), ("key", Carving.HIDE))
    )
    asked = policy(scratch(HOME), bind(PROJECT, Access.WRITE), carves=made)
    assert rules(asked)[-4:] == [f"pin {PROJECT}/.git", f"read-only {PROJECT}/.git/hooks", f"read-write {PROJECT}/data", f"blacklist {PROJECT}/key"]
    assert [checks(asked)[one.path] for one in made] == ["pinned", "read", "write", "hidden"]


def test_nothing_is_emptied_that_is_shown_as_a_whole() -> None:
    asked = policy(bind("/tmp", Access.WRITE), bind("/srv"), bind("/srv/data"))
    lines = plan(asked).options
    assert f"whitelist {OWN}" not in lines and f"read-only {OWN}" in lines
    assert [line for line in lines if "/srv" in line] == ["read-only /srv"]


def test_beside_a_home_that_is_not_in_home_nothing_stays() -> None:
    asked = replace(policy(scratch("/data/people/ann")), real_home="/data/people/ann")
    assert rules(asked)[:2] == [f"whitelist /data/{EMPTY}", f"whitelist /data/people/ann/{EMPTY}"]


def test_files_that_firejail_puts_its_own_in_the_place_of_are_copied() -> None:
    seed = Mount(path=f"{HOME}/.gitconfig", kind=Kind.FILE, content=b"x", origin="x")
    link = Mount(path=f"{HOME}/near", kind=Kind.LINK, target="far", origin="x")
    inner = plan(policy(scratch(HOME), bind(f"{HOME}/.bashrc"), seed, link)).inner
    assert inner is not None
    assert (inner.copies, inner.files, inner.links) == ((f"{HOME}/.bashrc",), ((seed.path, b"x"),), ((link.path, "far"),))


def test_the_settings_follow_the_policy() -> None:
    shown = Mount(path="/dev/nvidia0", kind=Kind.DEVICE, origin="x")
    asked = policy(scratch("/var/tmp"), bind("/var/tmp/x"), bind("/home/lab/data"), shown, network="open")
    lines = plan(asked).options[len(ALWAYS) :]
    assert [line for line in lines if "/" not in line] == ["restrict-namespaces", "allusers", "keep-var-tmp"]
    alone = plan(policy(scratch("/var/tmp"))).options[len(ALWAYS) :]
    assert [line for line in alone if "/" not in line] == ["net none", "restrict-namespaces", "no3d"]
    assert "whitelist /var/tmp" in alone and "whitelist /var/tmp" not in lines


def test_neither_the_command_nor_a_path_is_on_the_command_line() -> None:
    made = plan(policy(scratch(HOME), bind(PROJECT, Access.WRITE)))
    assert made.words == (
        "--quiet", "--profile=/proc/self/fd/11", "--keep-fd=10,12,13", "/usr/bin/python3", "-I", "-S",
        "/opt/x/lib/agent_sandbox/launcher/firejailed.py", "10", "12", "13",
    )  # fmt: skip


def gaps(asked: Policy, host: Host = HOST) -> list[str]:
    """But for those that are always there."""
    return [f"{gap.property}{' (weak)' if gap.weak else ''}" for gap in Firejail().gaps(asked, host) if not gap.always]


def test_what_it_cannot_give_is_named() -> None:
    device = Mount(path="/dev/infiniband/uverbs0", kind=Kind.DEVICE, origin="x")
    assert gaps(policy(scratch(HOME))) == []
    assert gaps(policy(scratch(HOME)), replace(HOST, uid=0)) == ["fs-write"]
    assert gaps(policy(scratch(HOME), home="/home/link")) == ["fs-write"]
    assert gaps(policy(scratch(HOME), bind("/sys/class"))) == ["fs-read"]
    assert gaps(policy(scratch(HOME), bind("/home/lab/data"))) == ["users"]
    assert gaps(policy(scratch(HOME), device)) == ["devices (weak)"]
    assert gaps(policy(bind(HOME))) == ["hidden (weak)"]
    assert gaps(policy(scratch(HOME), limits=Limits(processes=5))) == ["limits (weak)"]
    assert gaps(policy(scratch(HOME), network="open"), replace(HOST, landlock=5)) == ["abstract-sockets"]


@pytest.mark.parametrize("path", ["/a b", "/it's", "/$HOME", "/ä/💥", "/\udcff", "/~x", "/a=b:c@d+e|f(g)", "/`"])
def test_a_path_that_it_takes(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize("path", [*(f"/x/a{one}b" for one in '!"#%&,;<>\\^{}*?[]\t\n\r\x01\x7f'), "/a ", "/a  b"])
def test_a_path_that_it_does_not_take_is_refused(path: str) -> None:
    with pytest.raises(UserError, match="firejail cannot take this path"):
        check_path(path)


def test_a_grant_and_a_hidden_path_are_both_held_against_that() -> None:
    for mount in (bind("/srv/a#b"), Mount(path="/etc/a#b", kind=Kind.MASK, origin="x")):
        with pytest.raises(UserError, match="the character #"):
            plan(policy(mount))
