"""Where measurements run: an installed copy, an ordinary user, a project that is a git repository, settings of every rank."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.machines import users
from tests.machines.copies import make_copy
from tests.machines.jail import Jail

HERE = Path(__file__).resolve().parent
ADMIN = {"config.toml": '[filesystem]\ndeny_writable = ["/opt"]\n\n[limits]\nprocesses = 4000\n\n[defaults.network]\nmode = "isolated"\n'}
USER = {
    "config.toml": '[filesystem]\nreadonly = ["/srv"]\n\n[environment]\nallow = ["MY_KEY"]\n',
    "conf.d/10-limits.toml": "[limits]\nopen_files = 4096\n",
    "conf.d/20-project.toml": '[match]\nproject = "~"\n\n[environment.set]\nEDITOR = "vi"\n',
}


@contextlib.contextmanager
def make_place() -> Iterator[Jail]:
    """As root a throw-away account; otherwise the caller's own, with the settings that it has."""
    with make_copy() as copy, users.account() as user:
        project = user.home / "bench-project"
        shutil.rmtree(project, ignore_errors=True)
        project.mkdir()
        os.chown(project, user.uid, user.gid)
        jail = Jail(copy=copy, user=user, project=project)
        subprocess.run(["/usr/bin/git", "init", "-q", str(project)], user=user.uid, group=user.gid, env=user.environment, check=True)
        if os.geteuid() == 0:
            for name, text in USER.items():
                jail.configure(text, name)
        try:
            yield jail
        finally:
            shutil.rmtree(project, ignore_errors=True)


def measure_there(jail: Jail, *words: str) -> str:
    """Run measure.py as the jail's user, from the copy, with the admin's file in place: what it prints."""
    scripts = jail.copy / "bench"
    shutil.copytree(HERE, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    argv = ["/usr/bin/python3", "-I", str(scripts / "measure.py"), str(jail.copy), *words]
    with jail.argv(admin=admin_files()) as command:
        runner = users.current_user() if admin_files() else jail.user
        done = users.run_as(runner, [*command[:-1], *argv], env=jail.user.environment, cwd=jail.project, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def admin_files() -> dict[str, str] | None:
    """An admin's file, where we may show one to the run."""
    return ADMIN if os.geteuid() == 0 else None
