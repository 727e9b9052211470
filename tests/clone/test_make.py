"""`make test` in a fresh clone by a normal user without root, and parts of the installer that few machines show."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.clone.conftest import ROOT, Person
from tests.machines.needs import need

FETCHING = re.compile(r"PIP_|SSL_CERT_|REQUESTS_CA|\w+_proxy$", re.IGNORECASE)  # how this machine reaches packages


def test_make_test_works_from_nothing_for_a_normal_user(user: Person, clone: Path) -> None:
    for path in (clone, *clone.rglob("*")):
        os.chown(path, user.user.uid, user.user.gid, follow_symlinks=False)
    assert user.run("/bin/sh", "-c", "git init --quiet && git add --all", cwd=clone).returncode == 0
    fetching = {name: value for name, value in os.environ.items() if FETCHING.match(name)}
    done = user.run(need("make"), "test", "PYTEST_ARGS=-m clone", cwd=clone, env=fetching, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = [line for line in done.stdout.splitlines() if line.startswith("== ")]
    assert steps[-4:] == ["== .venv", "== ruff", "== mypy", "== pytest"]
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout


def test_missing_packages_are_named_and_do_not_stop_who_cannot_install_them(user: Person, clone: Path) -> None:
    done = user.run(need("make"), "packages", "PACKAGES=no-such-package", cwd=clone, env={"PATH": "/usr/bin:/bin"})
    expected = "== missing packages, whose tests will be skipped: no-such-package\n"
    assert (done.returncode, done.stdout) == (0, expected)


def test_the_starter_works_with_an_interpreter_that_no_first_line_can_name(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("install", ROOT / "bootstrap/install.py")
    assert spec and spec.loader
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    launcher = tmp_path / "lib/agent_sandbox/launcher"
    launcher.mkdir(parents=True)
    (launcher / "__main__.py").write_text("import sys\ndef main():\n    print(sys.argv[1:])\n    return 7\n")
    for name in ("python", "it's python", "p" * 150):
        (tmp_path / name).symlink_to(os.path.realpath(sys.executable))
        starter = tmp_path / "starter"
        starter.write_bytes(install.starter(tmp_path, str(tmp_path / name), ""))
        starter.chmod(0o755)
        done = subprocess.run([starter, "a b", ""], capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (7, "['a b', '']\n", "")
