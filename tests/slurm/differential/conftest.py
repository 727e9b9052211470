"""A cluster that nobody else uses, so that both sides find it in the same state, and one user with one project on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.needs import need
from tests.machines.slurm.cluster import cluster
from tests.slurm.differential.sides import Sides


@pytest.fixture(scope="package")
def sides(copy: Path) -> Iterator[Sides]:
    need("bwrap")
    with cluster(f"differential-{os.getpid()}") as slurm, users.account() as user:
        slurm.allow(user)
        project = user.home / "project"
        jail = Jail(copy=copy, user=user, project=project)
        jail.write(project / ".keep")
        jail.configure('[slurm]\nenabled = "on"\n')
        yield Sides(slurm=slurm, jail=jail)
        slurm.run(users.current_user(), "scancel", f"--user={user.name}")
