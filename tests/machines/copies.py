"""An installed copy of the package as the bootstrap makes it, where test users can read it."""

from __future__ import annotations

import compileall
import contextlib
import py_compile
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "agent_sandbox"
PYTHON = "/usr/bin/python3"
STARTER = """#!{python} -IS
import sys
sys.path.insert(0, {lib!r})
from agent_sandbox.launcher.__main__ import main
sys.exit(main())
"""


@contextlib.contextmanager
def make_copy(parent: str = "/var/tmp") -> Iterator[Path]:
    top = Path(tempfile.mkdtemp(prefix="agent-sandbox-copy-", dir=parent))
    try:
        fill_copy(top)
        yield top
    finally:
        shutil.rmtree(top, ignore_errors=True)


def fill_copy(top: Path) -> None:
    top.chmod(0o755)
    lib = top / "lib"
    shutil.copytree(SOURCE, lib / "agent_sandbox", ignore=shutil.ignore_patterns("__pycache__"))
    freeze = "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_module('agent_sandbox.config.freeze', run_name='__main__')"
    subprocess.run([PYTHON, "-I", "-S", "-B", "-c", freeze, str(lib)], check=True)
    compileall.compile_dir(lib, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    entry = top / "bin" / "agent-sandbox"
    entry.parent.mkdir()
    entry.write_text(STARTER.format(python=PYTHON, lib=str(lib)))
    entry.chmod(0o755)
