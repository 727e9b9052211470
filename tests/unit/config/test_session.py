"""A session's settings on another machine: they hold there as they did here, and that machine's admin can only clamp."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.session import load_session
from agent_sandbox.config.settings import Rank, Settings
from tests.unit.config.cases import HOME, Case, cases
from tests.unit.config.conftest import World
from tests.unit.config.oracle import held, is_wider
from tests.unit.config.test_law import QUICK


def sent(before: Settings) -> object:
    return json.loads(json.dumps(before.as_data()))


def on_node(world: World, case: Case) -> Settings:
    return load_session(world.at(home=HOME).where, sent(case.settle()))


@settings(QUICK, suppress_health_check=[*QUICK.suppress_health_check, HealthCheck.function_scoped_fixture])
@given(cases())
def test_what_arrives_is_never_wider_than_what_was_sent(world: World, case: Case) -> None:
    assert not is_wider(on_node(world, case), case.settle())


def test_everything_a_person_and_a_repository_said_arrives(world: World) -> None:
    case = Case(
        person=({"network.mode": "open", "limits.memory": "4G", "environment.set": {"A": "b=c"}, "project.parents": []},
                {"filesystem.hidden": ["/x"], "filesystem.reveal": ["/home/nobody-here/.aws"]}),
        repository={"limits.processes": 100}, command_line={"filesystem.writable": ["/w"], "limits.core_size": "unlimited"},
    )  # fmt: skip
    here, there = case.settle(), on_node(world, case)
    assert {name: held(there, KEYS[name]) for name in KEYS} == {name: held(here, KEYS[name]) for name in KEYS}
    assert there.clamps == ()
    assert there.origin("network.mode") == "session"


def test_this_machines_admin_clamps_the_session(world: World) -> None:
    admin = world.admin("network.mode = 'isolated'\nlimits.memory = '1G'\nfilesystem.deny_writable = ['/w']\n")
    there = on_node(world, Case(person=({"network.mode": "open", "limits.memory": "4G", "filesystem.writable": ["/w/x"]},)))
    assert (there.text("network.mode"), there.number("limits.memory")) == ("isolated", 1 << 30)
    assert "/w/x" not in there.names("filesystem.writable")
    assert [(told.layer, told.key, told.why) for told in there.clamps] == [
        ("session", "limits.memory", f"{admin} sets it"),
        ("session", "network.mode", f"{admin} sets it"),
        ("session", "filesystem.writable", f"filesystem.deny_writable holds /w ({admin})"),
    ]


def test_this_machines_admin_does_not_loosen_what_the_other_admin_set(world: World) -> None:
    world.admin("network.mode = 'open'\nlimits.memory = '8G'\nproject.parents = ['/']\n")
    case = Case(admin=({"network.mode": "isolated", "limits.memory": "1G", "project.parents": ["/a"]},))
    there = on_node(world, case)
    assert (there.text("network.mode"), there.number("limits.memory")) == ("isolated", 1 << 30)
    assert there.names("project.parents") == ("/a",)


def test_what_the_other_admin_denies_is_denied_here(world: World) -> None:
    case = Case(admin=({"filesystem.deny_writable": ["/home/nobody-here/.cache"], "environment.block": ["LANG"]},))
    there = on_node(world, case)
    assert there.names("filesystem.writable") == ()
    assert "LANG" not in there.names("environment.keep")
    assert [e.rank for e in there.entries("environment.block") if e.value == "LANG"] == [Rank.ADMIN]


def test_a_list_that_permits_is_this_machines_admins_alone(world: World) -> None:
    case = Case(admin=({"slurm.partitions": ["gpu"], "slurm.accounts": ["a"], "sockets.deny": ["/s"]},))
    world.admin("slurm.partitions = ['debug']\nsockets.deny = ['/t']\n")
    there = on_node(world, case)
    assert there.names("slurm.partitions") == ("debug",)
    assert there.names("slurm.accounts") == ("a",)
    assert set(there.names("sockets.deny")) == {"/s", "/t"}


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"environment.set": [["PATH=/evil", 3]]}, "environment.set"),
        ({"seccomp.mode": "off"}, "seccomp.mode"),
        ({"network.fallback": "weaker"}, "network.fallback"),
        ({"filesystem.deny_devices": [], "filesystem.devices": [["/dev/fuse", 3]]}, "filesystem.devices"),
    ],
)
def test_a_forged_session_gains_nothing(world: World, data: object, key: str) -> None:
    """The job script is its user's: a rank that it claims is not believed."""
    world.admin("environment.set = { PATH = '/usr/bin' }\n")
    assert [told.key for told in load_session(world.where, data).clamps] == [key]
    there = load_session(world.where, data)
    assert there.table("environment.set") == {"PATH": "/usr/bin"}
    assert (there.text("seccomp.mode"), there.text("network.fallback")) == ("hpc", "stricter")
    assert "/dev/fuse" not in there.names("filesystem.devices")


@pytest.mark.parametrize(
    "data",
    [
        None, [], {"no.key": 1}, {"network.mode": "closed"}, {"network.mode": None}, {"filesystem.hidden": "x"},
        {"filesystem.hidden": [["relative", 2]]}, {"filesystem.hidden": [["/a/../b", 2]]}, {"filesystem.hidden": [["/a", 9]]},
        {"filesystem.hidden": [["/a"]]}, {"filesystem.hidden": [[1, 2]]}, {"environment.set": [["A", 2]]}, {"limits.memory": -1},
        {"filesystem.hidden": [5]}, {"filesystem.hidden": [{"a": 1, "b": 2}]},
    ],
)  # fmt: skip
def test_data_that_is_not_what_we_send_is_refused(world: World, data: object) -> None:
    with pytest.raises(UserError, match="the settings that came with the session cannot be used"):
        load_session(world.where, data)


def test_shipped_defaults_do_not_travel() -> None:
    assert Case().settle().as_data() == {}


def test_what_opens_the_floor_comes_from_this_machines_admin_alone(world: World) -> None:
    case = Case(admin=({"network.floor_open": ["10.0.0.0/8"]},))
    assert case.settle().names("network.floor_open") == ("10.0.0.0/8",)
    assert on_node(world, case).names("network.floor_open") == ()
    world.admin("network.floor_open = ['10.1.0.0/16']\n")
    assert on_node(world, case).names("network.floor_open") == ("10.1.0.0/16",)
