"""An installed copy of the package, made by the installer itself, where test users can read it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bootstrap import install

SOURCE = Path(__file__).resolve().parents[2] / "src" / "agent_sandbox"
PYTHON = "/usr/bin/python3"


@contextlib.contextmanager
def make_copy(parent: str = "/var/tmp") -> Iterator[Path]:
    top = Path(tempfile.mkdtemp(prefix="agent-sandbox-copy-", dir=parent))
    top.chmod(0o755)
    try:
        yield fill_copy(top / "copy")
    finally:
        shutil.rmtree(top, ignore_errors=True)


def fill_copy(path: Path) -> Path:
    install.make_copy(path, install.read_library(), PYTHON)
    return path
