"""Scratch clones, and people who use one for the first time: a normal user, and root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machines.needs import need, need_root
from tests.machines.users import TestUser, account, current_user, run_as

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody whose home is ours to spoil: an account of ours, or a real one with another directory over its home."""

    user: TestUser
    home: Path  # as the tests see it
    mounted: tuple[str, ...] = ()  # the command that puts it where passwd says

    @property
    def data(self) -> Path:
        return self.home / ".local/share/agent-sandbox"

    def run(
        self, *argv: str | Path, env: Mapping[str, str] | None = None, cwd: str | Path = "/", timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        return run_as(self.user, [*self.mounted, *argv], env=env, cwd=cwd, timeout=timeout)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that every user can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="sbxt-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def user(shared: Path) -> Iterator[Person]:
    with account() as one:
        if os.geteuid() == 0:
            yield Person(user=one, home=one.home)
        else:
            (shared / "home").mkdir()
            mounted = (need("bwrap"), "--dev-bind", "/", "/", "--bind", str(shared / "home"), str(one.home), "--")
            yield Person(user=one, home=shared / "home", mounted=mounted)


@pytest.fixture
def superuser(shared: Path) -> Person:
    need_root()
    (shared / "home").mkdir()
    return mounted_root(shared, f"--bind '{shared}/home'")


def mounted_root(shared: Path, what: str) -> Person:
    me = current_user()
    script = f'mount {what} "$1" && shift && exec "$@"'
    mounted = (need("unshare"), "--mount", "--", "/bin/sh", "-c", script, "sh", str(me.home))
    return Person(user=me, home=shared / "home", mounted=mounted)


@pytest.fixture(params=["user", "superuser"])
def person(request: pytest.FixtureRequest) -> Person:
    who: Person = request.getfixturevalue(request.param)
    return who


@pytest.fixture
def make_clone(shared: Path) -> Callable[[str], Path]:
    """Copies what a commit of the working tree would hold into a directory of that name, for all to read."""

    def make(name: str) -> Path:
        listed = [need("git"), "-c", "safe.directory=*", "ls-files", "-coz", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0")
        clone = shared / name
        for file in filter(os.path.lexists, (ROOT / name for name in names if name)):
            target = clone / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target, follow_symlinks=False)
        return clone

    return make


@pytest.fixture
def clone(make_clone: Callable[[str], Path]) -> Path:
    return make_clone("a clone")
