"""The table of keys and the shipped lists fit together; a launch imports nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_sandbox.config import defaults, kinds, patterns, reference, shipped
from agent_sandbox.config.defaults import load_defaults, read_lists
from agent_sandbox.config.freeze import freeze
from agent_sandbox.config.keys import KEYS, PRESETS, PROPERTIES
from agent_sandbox.config.merge import merge
from agent_sandbox.config.rules import RULES

PACKAGE = Path(reference.__file__).resolve().parent


def test_every_key_has_a_rule_a_kind_and_a_line_of_help() -> None:
    for key in KEYS.values():
        assert key.rule in RULES and key.kind in kinds.CHECKS, key
        assert key.help and "\n" not in key.help and len(key.help) <= 100, key
        assert key.name.count(".") == 1, key


def test_every_default_may_be_written() -> None:
    for key in KEYS.values():
        if key.default is not None:
            assert kinds.check(key, key.default) == key.default, key


def test_keys_that_name_other_keys_name_keys() -> None:
    for key in KEYS.values():
        assert (key.rule == "vetoed") is bool(key.veto), key
        for other in (key.veto, key.takes_off, key.at_most):
            assert not other or other in KEYS, key
        if key.veto:
            assert KEYS[key.veto].rule in ("union", "admin"), key


def test_choices_for_admins_only_are_the_loosest_and_never_the_default() -> None:
    for key in KEYS.values():
        if key.admin_values:
            assert key.choices[-len(key.admin_values) :] == key.admin_values, key
            assert key.default not in key.admin_values, key


def test_a_strictest_key_has_an_order_and_a_default() -> None:
    for key in KEYS.values():
        if key.rule == "strictest":
            assert len(key.choices) > 1 and (key.default in key.choices or key.at_most), key


def test_every_shipped_entry_may_be_written() -> None:
    for name, entries in read_lists().items():
        assert kinds.check(KEYS[name], entries), name
        assert len(set(entries)) == len(entries), name


def test_no_shipped_entry_denies_another() -> None:
    layer = load_defaults("/home/u")
    assert merge([layer]).values == layer.values


def test_required_properties_are_properties() -> None:
    assert set(read_lists()["sandbox.require"]) < set(PROPERTIES)


def test_roots_own_home_is_not_hidden_from_root() -> None:
    def hidden(home: str) -> set[str]:
        return {entry.value for entry in load_defaults(home).values["filesystem.hidden"].entries}

    assert "/root" in hidden("/home/u") and "/home/u/.ssh" in hidden("/home/u")
    assert "/root" not in hidden("/root") and "/root/.ssh" in hidden("/root")


LEAKED = (
    "MYPASS", "DB_PASSWD", "SLACK_WEBHOOK", "HF_HUB_KEY", "WANDB_KEY", "MY_PASSPHRASE", "STRIPE_SK", "HUGGING_JWT",
    "my_Secret_x", "SSH_AUTH_SOCK", "AWS_PROFILE",
)  # fmt: skip
NEEDED = (
    "PATH", "HOME", "LANG", "LC_ALL", "TERM", "PWD", "SLURM_JOB_ID", "LD_LIBRARY_PATH", "MODULEPATH", "LMOD_DIR",
    "CONDA_PREFIX",
)  # fmt: skip


@pytest.mark.parametrize("name", LEAKED)
def test_variables_that_leaked_elsewhere_are_blocked(name: str) -> None:
    assert any(patterns.names_variable(pattern, name) for pattern in read_lists()["environment.block"])


@pytest.mark.parametrize("name", NEEDED)
def test_variables_that_work_needs_are_not(name: str) -> None:
    assert not any(patterns.names_variable(pattern, name) for pattern in read_lists()["environment.block"])


def test_frozen_lists_are_those_of_the_toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = load_defaults("/home/u")
    presets, floor = [shipped.load_preset(name) for name in PRESETS], shipped.load_floor()
    for module in (defaults, shipped):
        monkeypatch.setattr(module, "FROZEN", f"{tmp_path}/{module.__name__}")
    freeze()
    for module, source in ((defaults, "TOML"), (shipped, "HERE")):
        monkeypatch.setattr(module, source, "/nonexistent")
    shipped.load_files.cache_clear()
    assert load_defaults("/home/u") == plain
    assert ([shipped.load_preset(name) for name in PRESETS], shipped.load_floor()) == (presets, floor)
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o644, 0o644]


def test_a_source_tree_has_no_frozen_lists() -> None:
    assert not list(PACKAGE.rglob("*.marshal"))


def test_the_reference_page_is_up_to_date() -> None:
    assert Path(reference.PAGE).read_text() == reference.render(), "run `make docs`"


def test_the_reference_page_names_every_key() -> None:
    page = reference.render()
    assert all(f"| `{name}`" in page for name in KEYS)


SLOW = ("dataclasses", "pathlib", "typing", "json", "argparse", "difflib", "subprocess", "fnmatch", "tomlkit", "re",
        "tomllib", "tempfile", "inspect")  # fmt: skip
PROGRAM = """
import sys
sys.path.insert(0, {source!r})
from agent_sandbox.config import defaults
from agent_sandbox.config.layers import load
from agent_sandbox.config.location import Where
defaults.load_lists = lambda: {lists!r}
load(Where(user="u", uid=1, home="/nonexistent", groups=(), host="h", project="/nonexistent", cwd="/",
           admin_dir="/nonexistent"), {{"network.mode": "open", "filesystem.writable": ["x"]}})
print(*sys.modules)
"""


def test_a_launch_without_files_imports_nothing_slow() -> None:
    program = PROGRAM.format(source=str(PACKAGE.parent / "src"), lists=read_lists())
    python = subprocess.run((sys.executable, "-I", "-S", "-c", program), capture_output=True, check=True, text=True)
    assert not set(SLOW) & set(python.stdout.split())


PURE = ("keys", "kinds", "merge", "paths", "patterns", "record", "rules", "settings", "tables", "template", "errors", "typed")  # fmt: skip
WORLD = {"os", "subprocess", "ctypes", "socket", "time", "tempfile", "pathlib"}


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_imports_nothing_of_the_world(name: str) -> None:
    import ast

    tree = ast.parse((PACKAGE / f"{name}.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & WORLD
