"""A machine that is not as it should be, for one run: changed by root in a mount namespace of the run's own."""

from __future__ import annotations

from pathlib import Path

from tests.machines import users
from tests.machines.jail import Jail, Result
from tests.machines.needs import need, need_root


def run_on_changed_machine(jail: Jail, change: str, *words: str | Path) -> Result:
    """The launcher as the jail's user, after root ran the shell text `change` ($home and $uid are the user's)."""
    need_root()
    script = f"home=$1 uid=$2 gid=$3; shift 3; {change}\nexec \"$@\""
    user = jail.user
    identity = [f"--reuid={user.uid}", f"--regid={user.gid}", "--init-groups"]
    unshare = [need("unshare"), "--mount", "--propagation", "private", "/bin/sh", "-ec", script, "sh"]
    facts = [str(user.home), str(user.uid), str(user.gid)]
    argv = [*unshare, *facts, need("setpriv"), *identity, "--", str(jail.program), *map(str, words)]
    done = users.run_as(users.current_user(), argv, env=user.environment, cwd=jail.project)
    return Result(code=done.returncode, out=done.stdout, err=done.stderr)
