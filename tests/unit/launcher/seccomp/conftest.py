"""The program that makes any system call under any filter."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.machines.needs import need
from tests.unit.launcher.seccomp.kernel import SOURCE, Kernel


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("attempt") / "attempt"
    subprocess.run((need("gcc"), "-Wall", "-Werror", "-O1", "-o", str(path), str(SOURCE)), check=True)
    return path


@pytest.fixture
def kernel(program: Path, tmp_path: Path) -> Kernel:
    return Kernel(program, tmp_path)
