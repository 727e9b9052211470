"""What the attacks share: a home that may be filled with secrets, a program that makes any system call, the length of a soak."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.escapes.backends import BACKENDS
from tests.machines.jail import Jail
from tests.machines.needs import need, need_root

ATTEMPT = Path(__file__).parents[1] / "machines/attempt.c"


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """Every attack is tried on each."""
    name: str = request.param
    return name


@pytest.fixture
def home(jail: Jail) -> Path:
    """A throw-away user's: nobody's own keys are written over, so only where root runs the suite."""
    need_root()
    return jail.user.home


@pytest.fixture
def secret(jail: Jail, home: Path) -> Path:
    """A key where everybody keeps theirs, readable outside."""
    path = jail.write(home / ".ssh/id_ed25519", "hunter2\n", mode=0o600)
    assert jail.outside("cat", path).out == "hunter2\n"
    return path


@pytest.fixture(scope="session")
def attempt_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("attempt") / "attempt"
    subprocess.run((need("gcc"), "-Wall", "-Werror", "-O1", "-static", "-o", str(path), str(ATTEMPT)), check=True)
    return path.read_bytes()


@pytest.fixture
def attempt(jail: Jail, attempt_bytes: bytes) -> str:
    """`attempt - native NUMBER ARGUMENTS…` prints a call's result and errno; it lies in the project."""
    path = jail.write(jail.project / "attempt", mode=0o755)
    path.write_bytes(attempt_bytes)
    return str(path)


@pytest.fixture
def rounds() -> Callable[[int, int], int]:
    """How often to repeat what is a matter of luck: the short form, or the long one with SANDBOX_SOAK=1."""
    return lambda short, long: long if os.environ.get("SANDBOX_SOAK") == "1" else short
