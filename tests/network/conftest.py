"""One made internet for the tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.machines.internet.machine import Internet, internet


@pytest.fixture(scope="session")
def net() -> Iterator[Internet]:
    with internet() as made:
        yield made
