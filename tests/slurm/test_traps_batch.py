"""Batch jobs attacked from inside a real jail over a real Slurm: whatever is submitted runs jailed or not at all, and nothing outside is reached."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines import users
from tests.slurm.attacks import BARE, IN_A_JAIL, SECRET, Range
from tests.slurm.conftest import Site
from tests.slurm.trap_tables import TABLES

BACKENDS = ("bwrap", "landlock", "firejail")


@pytest.fixture
def project(user: users.TestUser) -> Iterator[Path]:
    """Without a space in its name: some of what is attacked (LD_PRELOAD) would fail of that."""
    path = user.home / "project"
    path.mkdir()
    os.chown(path, user.uid, user.gid)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def place(site: Site) -> Range:
    made = Range(site=site)
    made.prepare()
    return made


@pytest.mark.parametrize("trap", TABLES)
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_no_job_leaves_the_jail(place: Range, trap: str) -> None:
    outcomes = place.run(TABLES[trap], jailed=True)
    assert "\n".join(f"{one.attack.name}: {one.became}" for one in outcomes if one.became != one.attack.expected) == ""
    assert "\n".join(one.attack.name for one in outcomes if one.reached) == ""
    reports = [path.read_text() for path in (place.project / "reports").iterdir()]
    assert {report.partition("\n")[0] for report in reports} <= {IN_A_JAIL}
    assert [path.name for path in place.outside.iterdir()] == []
    assert SECRET not in place.everything_written()


@pytest.mark.parametrize("trap", TABLES)
def test_control_with_slurm_alone_the_same_lines_reach_outside(place: Range, trap: str) -> None:
    tried = [attack for attack in TABLES[trap] if attack.works]
    outcomes = place.run(tried, jailed=False)
    assert "\n".join(f"{one.attack.name}: {one.became}" for one in outcomes if not one.reached) == ""
    reports = [path.read_text() for path in (place.project / "reports").iterdir()]
    assert {report.partition("\n")[0] for report in reports} <= {BARE}
    assert all(SECRET in report and "wrote" in report for report in reports)
