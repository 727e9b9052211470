"""The page inside: what holds there, and nothing about what is hidden."""

from __future__ import annotations

import json

import pytest

from agent_sandbox.config.record import replace
from agent_sandbox.config.settings import Settings
from agent_sandbox.launcher import own as own_place
from agent_sandbox.launcher.policy import Access, Environment, Limits, Network, Policy, Rooms, Syscalls
from agent_sandbox.launcher.summary import summarise
from agent_sandbox.launcher.view import Carve, Carving, Kind, Mount, View
from tests.machines.jail import Jail
from tests.machines.needs import need_root

SUMMARY = f"{own_place.USUAL}/{own_place.SUMMARY}"
POLICY = Policy(
    project="/p", cwd="/p", home="/h", real_home="/h", home_mode="tmpwrite", rooms=Rooms(home="/h", tmp="/tmp", own=own_place.USUAL),
    view=View(mounts=(
        Mount(path="/etc", kind=Kind.BIND, origin="system"),
        Mount(path="/etc/secret", kind=Kind.MASK, origin="hidden"),
        Mount(path="/h", kind=Kind.SCRATCH, access=Access.WRITE, origin="home"),
        Mount(path="/link", kind=Kind.LINK, target="/h/target", origin="link"),
        Mount(path="/p", kind=Kind.BIND, access=Access.WRITE, origin="project"),
    )),
    carves=(), environment=Environment(values={"A": "value"}, removed=(("T", "rule"),), changed=(), renamed=("HOME",)),
    network=Network(mode="isolated", asked="isolated"), syscalls=Syscalls(mode="hpc", nested=False), limits=Limits(),
    required=(), accepted=(),
)  # fmt: skip
NOTHING_SET = Settings(values={}, clamps=(), layers=())


def carve(path: str, carving: Carving) -> Carve:
    return Carve(root="/p", path=path, carving=carving, origin="rule")


def summary(policy: Policy) -> dict[str, object]:
    found = json.loads(summarise(policy, NOTHING_SET, "bwrap", ()))
    assert isinstance(found, dict)
    return found


def test_masks_and_links_are_left_out() -> None:
    assert summary(POLICY)["paths"] == [["/etc", "bind", "read"], ["/h", "scratch", "write"], ["/p", "bind", "write"]]


def test_exceptions_are_told_unless_they_hide() -> None:
    carves = (carve("/p/a", Carving.READ), carve("/p/a/b", Carving.WRITE), carve("/p/c", Carving.PIN), carve("/p/x", Carving.HIDE))
    paths = summary(replace(POLICY, carves=carves))["paths"]
    assert isinstance(paths, list)
    assert paths[3:] == [["/p/a", "read-only", "read"], ["/p/a/b", "writable", "write"]]


def test_what_lies_below_something_hidden_is_left_out() -> None:
    carves = (carve("/p/x", Carving.HIDE), carve("/p/x/hooks", Carving.READ), carve("/p/xy", Carving.READ))
    paths = summary(replace(POLICY, carves=carves))["paths"]
    assert isinstance(paths, list)
    assert paths[3:] == [["/p/xy", "read-only", "read"]]


def test_names_of_variables_are_told_and_no_values() -> None:
    text = summarise(POLICY, NOTHING_SET, "bwrap", ())
    assert json.loads(text)["removed"] == {"T": "rule"}
    assert "value" not in text


@pytest.mark.parametrize("mode", ["restricted", "tmpwrite", "read", "write"])
def test_no_hidden_path_is_in_it(jail: Jail, mode: str) -> None:
    need_root()
    home = jail.user.home
    jail.configure("[filesystem]\nhidden = ['~/tax', '~/plans/b']\n")
    hidden = [home / ".ssh", home / ".netrc", home / ".aws", home / "tax", home / "plans/b", jail.project / "inner secret"]
    for path in hidden:
        jail.write(path if path.name in (".netrc", "b", "inner secret") else path / "file", "private\n")
        assert jail.outside("ls", path).code == 0
    page = jail.run("cat", SUMMARY, options=["--quiet", "--home", mode, "--hide", "inner secret"])
    assert page.code == 0
    assert json.loads(page.out)["home"] == mode  # the control: it is this session's page
    own = [home / ".config/agent-sandbox", home / ".local/state/agent-sandbox"]
    assert [path for path in (*hidden, *own) if str(path) in page.out] == []
    assert "tax" not in page.out


def test_it_cannot_be_written_inside(jail: Jail) -> None:
    inside = jail.run("sh", "-c", f"echo ran; echo x >> {SUMMARY}; rm {SUMMARY}; mv /run/agent-sandbox /run/x")
    assert inside.out == "ran\n"
    assert inside.err.count("Read-only file system") + inside.err.count("Permission denied") >= 2
