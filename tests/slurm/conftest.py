"""A cluster that all test processes share, users whom it lets in, and jails on a machine where Slurm is where it is everywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.jail import Jail, Result
from tests.machines.slurm.cluster import Slurm, cluster


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    with cluster() as running:
        yield running


@pytest.fixture
def own_slurm() -> Iterator[Slurm]:
    """For a test that takes daemons down."""
    with cluster(str(os.getpid())) as running:
        yield running


@pytest.fixture(scope="session")
def association(slurm: Slurm, account: users.TestUser) -> None:
    slurm.allow(account)


@pytest.fixture
def member(association: None, user: users.TestUser) -> users.TestUser:
    """The ordinary user, who may submit."""
    return user


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The launcher, and the control, where /etc/slurm, /etc/munge and /run/munge are the cluster's."""

    slurm: Slurm
    jail: Jail

    def inside(self, *command: str | Path, options: tuple[str, ...], env: Mapping[str, str] | None = None) -> Result:
        return self.outside(self.jail.program, "--quiet", *options, "--", *command, env=env)

    def outside(self, *command: str | Path, env: Mapping[str, str] | None = None) -> Result:
        user, project = self.jail.user, self.jail.project
        argv = self.slurm.at_default_places(user, project, command)
        done = users.run_as(users.current_user(), argv, env={**user.environment, **(env or {})}, cwd=project)
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)


@pytest.fixture
def site(slurm: Slurm, member: users.TestUser, jail: Jail) -> Site:
    return Site(slurm=slurm, jail=jail)
