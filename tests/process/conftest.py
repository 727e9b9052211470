"""Every test here that starts a jail is run with each backend: a jail is a command, whatever builds it."""

from __future__ import annotations

import pytest

BACKENDS = ("bwrap", "firejail", "landlock")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        metafunc.parametrize("backend", BACKENDS, indirect=True)
