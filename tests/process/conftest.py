"""Every test here that starts a jail is run with each backend: a jail is a command, whatever builds it."""

from __future__ import annotations

import os

import pytest

BACKENDS = ("bwrap", "firejail", "landlock")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Long repetitions with all three only where there is time: firejail is the slowest to start."""
    if "backend" in metafunc.fixturenames:
        is_short = os.environ.get("SANDBOX_SOAK") != "1" and metafunc.definition.get_closest_marker("soak")
        metafunc.parametrize("backend", [name for name in BACKENDS if not (is_short and name == "firejail")], indirect=True)
