"""Fixtures that every part shares: an installed copy, a throw-away user, a project, and the jail around it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.machines import users
from tests.machines.copies import make_copy
from tests.machines.jail import Jail
from tests.machines.needs import need

hypothesis.settings.register_profile("ours", deadline=None)  # a machine may be busy: no test is about one example's time
hypothesis.settings.load_profile("ours")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and os.geteuid() == 0:
        users.sweep()


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An installed copy that every user can read and only its owner can write."""
    with make_copy() as path:
        yield path


@pytest.fixture(scope="session")
def account() -> Iterator[users.TestUser]:
    """An ordinary user: fresh where root runs the suite, else whoever does."""
    with users.account() as user:
        yield user


@pytest.fixture
def user(account: users.TestUser) -> users.TestUser:
    """The user with an empty home (root's runs only: nobody's own home is emptied)."""
    if os.geteuid() == 0:
        for entry in account.home.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    return account


@pytest.fixture
def project(user: users.TestUser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = user.home / f"project {os.getpid()}"
    path.mkdir()
    os.chown(path, user.uid, user.gid)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> str:
    """The one that a suite is run with, where it is run with several; "" = as the settings say."""
    return str(getattr(request, "param", ""))


@pytest.fixture
def jail(copy: Path, user: users.TestUser, project: Path, backend: str) -> Jail:
    if backend != "landlock":
        need(backend or "bwrap")
    jail = Jail(copy=copy, user=user, project=project)
    if backend:
        accepted = ["pids", "ipc", "tmp", "users", "project-protect"]  # not said at every start, then
        jail.configure(f'[sandbox]\nbackend = "{backend}"\naccept_gaps = {accepted}\n', "conf.d/backend.toml")
    return jail
