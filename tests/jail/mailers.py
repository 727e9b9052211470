"""A machine with mailers on it: programs in system directories, in a mount namespace of the run's own, so that no other test meets them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machines import users
from tests.machines.jail import Jail, Result
from tests.machines.needs import need_root

PROGRAM = "#!/bin/sh\necho sent by ${0##*/}\n"
INSTALLED = ("/usr/sbin/msmtp", "/usr/sbin/exim4", "/usr/lib/sendmail.postfix", "/usr/local/sbin/mailx")
LINKS = {"/usr/sbin/sendmail": "exim4", "/usr/lib/sendmail": "sendmail.postfix", "/usr/sbin/swaks": "/usr/bin/env"}
# Over each directory a layer with ours in it.
WITH_MAILERS = """
set -e
mount -t tmpfs none "$1.layers"
cp -R "$1/." "$1.layers/"
for place in usr/sbin usr/lib usr/local/sbin; do
    mkdir -p "$1.layers/work/$place"
    mount -t overlay none -o "lowerdir=/$place,upperdir=$1.layers/$place,workdir=$1.layers/work/$place" "/$place"
done
shift
exec "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    jail: Jail

    def inside(
        self, *command: str, options: Sequence[str] = (), admin: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None
    ) -> Result:
        with self.jail.argv("--quiet", *options, "--", *command, admin=admin or {}) as argv:
            return self._run(argv, env)

    def outside(self, *command: str, env: Mapping[str, str] | None = None) -> Result:
        user = self.jail.user
        return self._run(["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--init-groups", "--", *command], env)

    def _run(self, argv: Sequence[str], env: Mapping[str, str] | None) -> Result:
        need_root()
        with tempfile.TemporaryDirectory(prefix="agent-sandbox-mailers-", dir="/var/tmp") as top:
            files = _fill(Path(top))
            apart = ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", WITH_MAILERS, "sh", str(files)]
            environment = {**self.jail.user.environment, **(env or {})}
            done = users.run_as(users.current_user(), [*apart, *argv], env=environment, cwd=self.jail.project)
        return Result(code=done.returncode, out=done.stdout, err=done.stderr)


def _fill(top: Path) -> Path:
    """Files and links below a directory that the script lays over /."""
    top.chmod(0o755)
    files = top / "files"
    (top / "files.layers").mkdir()
    for path in INSTALLED:
        place = files / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(PROGRAM)
        place.chmod(0o755)
    for path, target in LINKS.items():
        (files / path.lstrip("/")).symlink_to(target)
    return files
