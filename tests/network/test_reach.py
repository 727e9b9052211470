"""What can be reached from each mode on each backend: every attempt at once, compared whole with the table beside this file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.internet.machine import Internet
from tests.machines.jail import Jail
from tests.machines.needs import need, need_root
from tests.machines.users import current_user
from tests.network.reaching import BACKENDS, DIRECT, MARKER, MODES, NO_CONTROL, Tables, as_text, look, read, words

EXPECTED = Path(__file__).with_name("expected.txt")
OPENS = "yes"
GAPS = '[sandbox]\naccept_gaps = ["pids", "ipc", "tmp", "users", "fs-write", "project-protect"]\n'


@pytest.fixture
def other(jail: Jail) -> Jail:
    """Another project of the same user's: its own settings close one host more, by which its proxy is known."""
    place = jail.user.home / f"other {os.getpid()}"
    jail.write(place / ".agent-sandbox.toml", f'[network]\nblock = ["{MARKER}"]\n')
    return Jail(copy=jail.copy, user=jail.user, project=place)


@pytest.fixture
def tables(net: Internet, jail: Jail, other: Jail) -> Iterator[Tables]:
    for tool in ("bwrap", "firejail"):
        need(tool)
    jail.configure(GAPS, "conf.d/gaps.toml")
    yield look(net, jail, other)


RAW = ("ICMP, raw", "ICMP, raw, IPv6", "raw IP", "raw packets")


@pytest.fixture
def of_root(copy: Path) -> Iterator[Jail]:
    """Outside root's home, which is nobody's project."""
    need_root()
    project = Path(f"/srv/agent-sandbox-reach-{os.getpid()}")
    project.mkdir()
    yield Jail(copy=copy, user=current_user(), project=project)
    project.rmdir()


def test_every_attempt_comes_out_as_the_table_says_and_works_outside(tables: Tables) -> None:
    print(as_text(tables))
    rows = [*tables.direct.items(), *tables.through.items()]
    lost = {says: row[0] for says, row in rows if row[0] != OPENS and says not in NO_CONTROL}
    assert lost == {}  # the controls: each can be done by this user without a jail
    closed = [mode != "open" for mode in MODES for _ in BACKENDS]
    assert [says for says in DIRECT for cell, is_closed in zip(tables.direct[says][1:], closed, strict=True) if is_closed and cell == OPENS] == []
    assert tables.without_proxy == {"no proxy"}
    assert as_text(tables).splitlines() == EXPECTED.read_text().splitlines()


@pytest.mark.parametrize("backend", ("bwrap", "landlock"))  # firejail cannot hide from root, and says so
def test_root_can_make_no_raw_packet_inside_either(net: Internet, of_root: Jail, backend: str) -> None:
    acts = [tuple(map(str, DIRECT[says])) for says in RAW]
    assert read(net.outside(of_root, *words(acts)).out) == [OPENS] * len(acts)
    inside = net.inside(of_root, *words(acts), options=("--quiet", "--backend", backend, "--network", "open"), admin={"config.toml": GAPS})
    assert inside.code == 0, inside
    assert read(inside.out) == ["EPERM", "EPERM", "EPERM", "EAFNOSUPPORT"], inside.err
