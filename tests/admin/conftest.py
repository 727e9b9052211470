"""Machines of their own with an installed copy, a person or two, and bots."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.needs import need, need_root
from tests.machines.site import Machine, install_into, machine


@pytest.fixture(scope="session")
def local() -> Iterator[Path]:
    """What `make install-system` makes of /usr/local."""
    need_root()
    for tool in ("sudo", "visudo", "useradd", "setfacl", "nsenter", "unshare"):
        need(tool)
    top = Path(tempfile.mkdtemp(prefix="sbxt-local-", dir="/var/tmp"))
    try:
        top.chmod(0o755)
        install_into(top)
        yield top
    finally:
        shutil.rmtree(top, ignore_errors=True)


@pytest.fixture
def site(local: Path) -> Iterator[Machine]:
    """With one person, alice, and nothing else of ours."""
    with machine(local) as one:
        one.add_person("alice")
        yield one


@pytest.fixture
def bots(site: Machine) -> Machine:
    """With `init` done and alice's bot clio."""
    site.must("init")
    site.must("create", "clio")
    return site
