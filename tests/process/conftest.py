"""Every test here that starts a jail is run with each backend: a jail is a command, whatever builds it."""

from __future__ import annotations

import os

import pytest

BACKENDS = ("bwrap", "firejail", "landlock")
NOT_WITH = {
    # a named gap: the kernel counts all of the user's processes
    "test_processes_are_counted_in_the_jail_alone": ("firejail", "landlock"),
    # firejail is setuid and hears of nobody's death: with both of ours gone at one moment nothing ends it
    "test_the_next_launch_removes_what_a_launcher_and_guard_killed_together_left": ("firejail",),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Long repetitions with all three only where there is time: firejail is the slowest to start."""
    if "backend" in metafunc.fixturenames:
        is_long = metafunc.definition.get_closest_marker("soak") and os.environ.get("SANDBOX_SOAK") != "1"
        without = (*NOT_WITH.get(metafunc.function.__name__, ()), *(("firejail",) if is_long else ()))
        metafunc.parametrize("backend", [name for name in BACKENDS if name not in without], indirect=True)
