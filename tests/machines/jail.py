"""The launcher as a test sees it: a user, a project, settings of every rank, and what came out.

An admin's files appear at the real admin directory, in a mount namespace of the run's own: the product under test is not
changed, and tests that run at the same time do not meet.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machines import users
from tests.machines.needs import need_root

ADMIN_DIR = "/app/lib/agent-sandbox"
AS_ADMIN = f"""
mount -t tmpfs -o mode=755 none /app && mkdir -p {ADMIN_DIR} && cp -R "$1/." {ADMIN_DIR}/ || exit 99
shift
exec "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Jail:
    copy: Path
    user: users.TestUser
    project: Path

    @property
    def program(self) -> Path:
        return self.copy / "bin" / "agent-sandbox"

    def run(
        self,
        *command: str | Path,
        options: Sequence[str | Path] = ("--quiet",),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        input: str | None = None,
        admin: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Result:
        """Run `command` inside and wait; `admin` maps file names below the admin's directory to their text."""
        with self.argv(*options, "--", *command, admin=admin) as argv:
            done = users.run_as(self._runner(admin), argv, env=self._env(env), cwd=cwd or self.project, input=input, timeout=timeout)
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)

    def ask(
        self, *words: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, admin: Mapping[str, str] | None = None
    ) -> Result:
        """Run one of our own words, or the launcher with options of the test's own."""
        with self.argv(*words, admin=admin) as argv:
            done = users.run_as(self._runner(admin), argv, env=self._env(env), cwd=cwd or self.project)
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)

    def start(
        self, *command: str | Path, options: Sequence[str | Path] = ("--quiet",), cwd: Path | None = None, **more: int
    ) -> subprocess.Popen[str]:
        """Start and go on; `more` is stdin, stdout, stderr."""
        return users.start_as(self.user, [self.program, *options, "--", *command], cwd=cwd or self.project, **more)

    def outside(
        self, *command: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, input: str | None = None
    ) -> Result:
        """The control: the same act as the same user without a jail."""
        done = users.run_as(self.user, command, env=env, cwd=cwd or self.project, input=input)
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)

    def write(self, path: Path, text: str = "", mode: int = 0o644) -> Path:
        """A file of the user's, with its directories."""
        missing = [parent for parent in path.parents if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir()
            os.chown(parent, self.user.uid, self.user.gid)
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.user.uid, self.user.gid)
        return path

    def configure(self, text: str, name: str = "config.toml") -> Path:
        """The person's own settings, where the launcher reads them."""
        return self.write(self.user.home / ".config" / "agent-sandbox" / name, text)

    def argv(self, *words: str | Path, admin: Mapping[str, str] | None = None) -> _Argv:
        return _Argv(self, words, admin)

    def _runner(self, admin: Mapping[str, str] | None) -> users.TestUser:
        return users.current_user() if admin is not None else self.user

    def _env(self, env: Mapping[str, str] | None) -> Mapping[str, str]:
        return {**self.user.environment, **(env or {})}


class _Argv:
    """The command line, as root in a mount namespace first where an admin's files are wanted."""

    def __init__(self, jail: Jail, words: Sequence[str | Path], admin: Mapping[str, str] | None) -> None:
        self._words = [str(jail.program), *map(str, words)]
        self._admin, self._user = admin, jail.user
        self._files: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> list[str]:
        if self._admin is None:
            return self._words
        need_root()
        os.makedirs("/app", exist_ok=True)
        self._files = tempfile.TemporaryDirectory(prefix="agent-sandbox-admin-", dir="/var/tmp")
        os.chmod(self._files.name, 0o755)
        for name, text in self._admin.items():
            path = Path(self._files.name, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        identity = [f"--reuid={self._user.uid}", f"--regid={self._user.gid}", "--init-groups"]
        switch = ["setpriv", *identity, "--"] if self._user.uid else []
        apart = ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", AS_ADMIN, "sh", self._files.name]
        return [*apart, *switch, *self._words]

    def __exit__(self, *exception: object) -> None:
        if self._files is not None:
            self._files.cleanup()
