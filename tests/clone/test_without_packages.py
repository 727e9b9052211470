"""`./agent-sandbox bash` in a fresh clone on a machine that has neither bwrap nor firejail: the kernel alone makes the jail."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.clone.conftest import Person
from tests.machines.needs import need, need_root
from tests.machines.users import current_user, run_as

# Something that cannot be executed lies where the programs were, in a mount namespace of this run's own.
WITHOUT_PROGRAMS = """
for program in /usr/bin/bwrap /usr/bin/firejail /usr/local/bin/bwrap /usr/local/bin/firejail; do
  [ ! -e $program ] || mount --bind /dev/null $program || exit 99
done
exec "$@"
"""
INSIDE = """
bwrap --version 2>/dev/null || echo no bwrap
cat ~/.ssh/id_ed25519 "$1"
echo made > new && chmod 700 new && cat new
echo > "$1".copy
exit 5
"""


def test_the_first_command_gives_a_working_landlock_jail_and_says_so(user: Person, clone: Path) -> None:
    need_root()
    key = user.home / ".ssh/id_ed25519"
    key.parent.mkdir(mode=0o700)
    key.write_text("hunter2\n")
    project = user.home / "work"
    project.mkdir()
    for path in (key.parent, key, project):
        shutil.chown(path, user.user.uid, user.user.gid)
    assert user.run("cat", key).stdout == "hunter2\n"  # the control

    identity = (f"--reuid={user.user.uid}", f"--regid={user.user.gid}", "--init-groups")
    apart = (need("unshare"), "--mount", "--propagation", "private", "/bin/sh", "-c", WITHOUT_PROGRAMS, "sh")
    words = (*apart, need("setpriv"), *identity, "--", clone / "agent-sandbox", "bash", "-c", INSIDE, "bash", key)
    done = run_as(current_user(), words, env=user.user.environment, cwd=project)
    assert (done.returncode, done.stdout) == (5, "no bwrap\nmade\n"), done.stderr
    first, line, *refused = done.stderr.splitlines()
    assert "first use of this clone" in first
    assert line.startswith(f"agent-sandbox: landlock · project {project} · home tmpwrite · network proxied (filtered is not available")
    assert "not enforced: pids, ipc, users" in line
    assert [one.partition(": ")[2].rpartition(": ")[2] for one in refused].count("Permission denied") == 2
    assert key.read_text() == "hunter2\n"
    assert not Path(f"{key}.copy").exists()
