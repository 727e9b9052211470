"""The shell scripts are POSIX sh and clean by shellcheck."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.machines.needs import need

ROOT = Path(__file__).parents[2]


SCRIPTS = {"agent-sandbox": "sh", "bootstrap/python": "sh", ".ci/run": "bash"}


@pytest.mark.parametrize(("script", "dialect"), SCRIPTS.items())
def test_shellcheck_has_nothing_to_say(script: str, dialect: str) -> None:
    done = subprocess.run([need("shellcheck"), f"--shell={dialect}", ROOT / script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
