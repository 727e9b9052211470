"""On which backends an attack is tried, and the other right answer to one: what cannot be held is named, and stops the launch.

Every attack is tried on each of BACKENDS (fixture `backend`, in conftest.py). `only("bwrap")` is for what is the business of one of
them; where another has a named gap instead, a test beside it says so.
"""

from __future__ import annotations

import pytest

from tests.machines.jail import Jail, Result

BACKENDS = ("bwrap", "landlock")
# Named at the start of every Landlock jail: what stands beside the tests that only a backend with namespaces passes.
GAPS_OF_LANDLOCK = ("project-protect", "pids", "ipc", "users")


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("backend", names, indirect=True)


def stopped(result: Result, *gaps: str) -> bool:
    """Nothing ran, because of one of these gaps."""
    return (result.code, result.out) == (125, "") and any(f" cannot give {gap} here: " in result.err for gap in gaps)


def choose(jail: Jail, backend: str) -> Jail:
    """A jail of a test's own, on the backend of the test."""
    jail.configure(f'[sandbox]\nbackend = "{backend}"\naccept_gaps = {[*GAPS_OF_LANDLOCK]}\n', "conf.d/backend.toml")
    return jail
