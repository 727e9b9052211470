"""Envelopes on a real Slurm: the agent's script runs jailed, and otherwise as sbatch would have run it."""

from __future__ import annotations

import pytest

from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.slurm.cluster import Slurm
from tests.slurm.envelopes import Envelopes

SECRET = "BEGIN PRIVATE KEY hunter2"


@pytest.fixture
def envelopes(slurm: Slurm, member: users.TestUser, jail: Jail, backend: str) -> Envelopes:
    chosen = {"sandbox.backend": backend} if backend else {}
    return Envelopes(slurm=slurm, jail=jail, settings=chosen)


def test_first(envelopes: Envelopes) -> None:
    done = envelopes.run("#!/bin/bash\necho hello $0 \"$@\"; env | sort; pwd; ls -la; exit 3\n", environment={"AA": "1"})
    print(done.shown, done.out, done.log)
    assert 0
