"""What a test needs of the machine. Absent, the test is skipped; with SANDBOX_TESTS=required it fails instead."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def need(tool: str) -> str:
    """The program in the system's directories: what is only on the caller's PATH, test users may not reach."""
    return shutil.which(tool, path=SYSTEM_PATH) or missing(f"{tool} is not installed")


def need_root() -> None:
    if os.geteuid() != 0:
        missing("only root can make test users")


def missing(what: str) -> NoReturn:
    if os.environ.get("SANDBOX_TESTS") == "required":
        pytest.fail(f"{what}, and SANDBOX_TESTS=required", pytrace=False)
    pytest.skip(what)
