"""The rules of the design that a machine can check: pure modules, one-way imports, a light launch path."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.copies import PYTHON, SOURCE

TOP = Path(__file__).resolve().parents[2]
SIDES = ("launcher", "config", "chaperon", "admin")
MAY_IMPORT = {
    "config": {"config"}, "launcher": {"launcher", "config"},
    "chaperon": {"chaperon", "launcher", "config"}, "admin": {"admin", "launcher", "config"},
}  # fmt: skip
WORLD = {"os", "subprocess", "ctypes", "socket", "time", "shutil", "pathlib", "tempfile"}
HEAVY = {
    "dataclasses", "pathlib", "json", "argparse", "subprocess", "asyncio", "inspect", "tomlkit", "pyseccomp", "socket", "difflib", "hashlib",
    "ctypes", "tomllib",
}  # fmt: skip


def modules() -> list[Path]:
    return sorted(path for side in SIDES for path in (TOP / side).rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def is_pure(tree: ast.Module) -> bool:
    """A module whose docstring says `Pure` reads and changes nothing by itself."""
    return "Pure" in (ast.get_docstring(tree) or "")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(TOP)))
def test_imports_go_one_way_and_pure_modules_stay_pure(path: Path) -> None:
    tree = ast.parse(path.read_text())
    side = path.relative_to(TOP).parts[0]
    sides = {name.split(".")[1] for name in imports(tree) if name.startswith("agent_sandbox.")}
    assert sides <= MAY_IMPORT[side]
    if is_pure(tree):
        assert not {name.split(".")[0] for name in imports(tree)} & WORLD
    assert ast.get_docstring(tree), "a module docstring says what becomes what"


def test_some_modules_claim_to_be_pure() -> None:
    assert sum(is_pure(ast.parse(path.read_text())) for path in modules()) > 15


def test_a_launch_imports_nothing_heavy(tmp_path: Path) -> None:
    """Asked of Python itself: every module that is loaded by the time a plan is ready."""
    code = f"""
import sys; sys.path.insert(0, {str(SOURCE.parent)!r})
from agent_sandbox.launcher.cli import parse
from agent_sandbox.launcher import handover, launch, session, aftermath, summary
from agent_sandbox.launcher.backends import bwrap
print(*sys.modules)
"""
    done = subprocess.run([PYTHON, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & HEAVY


def test_every_property_has_one_name() -> None:
    from agent_sandbox.config.keys import PROPERTIES
    from agent_sandbox.launcher.policy import Property

    assert tuple(one.value for one in Property) == PROPERTIES
