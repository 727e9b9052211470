"""A person with a home, a project and an admin's directory, in real files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_sandbox.config.layers import load
from agent_sandbox.config.location import Where
from agent_sandbox.config.record import replace
from agent_sandbox.config.settings import Settings
from tests.machines.needs import need_root

STRANGER = 4321  # a uid and gid that nobody here has


@dataclass(frozen=True)
class World:
    """Files of one person (the uid of `where`) and of the admin, each written as its owner would."""

    where: Where

    @property
    def user_dir(self) -> Path:
        return Path(self.where.user_dir())

    @property
    def user_file(self) -> Path:
        return self.user_dir / "config.toml"

    @property
    def admin_file(self) -> Path:
        return Path(self.where.admin_dir) / "config.toml"

    @property
    def project_file(self) -> Path:
        return Path(self.where.project) / ".agent-sandbox.toml"

    def user(self, text: str, name: str = "config.toml") -> Path:
        return self.own(self.user_dir / name, text)

    def project(self, text: str) -> Path:
        return self.own(self.project_file, text)

    def admin(self, text: str, name: str = "config.toml") -> Path:
        need_root()
        path = Path(self.where.admin_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def own(self, path: Path, text: str) -> Path:
        """Write a file as the person, with the directories on the way that are not there."""
        missing = [parent for parent in path.parents if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for made in (path, *missing):
            os.chown(made, self.where.uid, -1)
        return path

    def load(self, *, use_project_file: bool = True, **options: object) -> Settings:
        """`network__mode="open"` stands for the key network.mode on the command line."""
        command_line = {name.replace("__", "."): value for name, value in options.items()}
        return load(self.where, command_line, use_project_file=use_project_file)

    def at(self, **changes: object) -> World:
        return World(replace(self.where, **changes))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Root's run: below /var/lib, where nobody else can write on the way, for a person who is not root."""
    umask = os.umask(0o022)
    root = Path(tempfile.mkdtemp(prefix="agent-sandbox-test-", dir="/var/lib")) if os.geteuid() == 0 else tmp_path
    root.chmod(0o755)
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    home, project = root / "home", root / "home" / "project"
    project.mkdir(parents=True)
    for path in (home, project):
        os.chown(path, uid, -1)
    where = Where(
        user="ada", uid=uid, home=str(home), groups=("staff", "physics"), host="login1.cluster.example",
        project=str(project), cwd=str(project), admin_dir=str(root / "admin"),
    )  # fmt: skip
    yield World(where)
    os.umask(umask)
    if root != tmp_path:
        shutil.rmtree(root)
