"""No credential can be read in any home mode: not as it is, not after it was replaced outside, not by another path to it.

Hard links are out of scope: a second name of the same file is a file of its own for every mount.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.backends import choose, only, stopped
from tests.escapes.credential_paths import IN_HOME, IN_SYSTEM, READ_THEM, SECRET, hidden_entries, secret_files
from tests.escapes.inside import python
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.needs import need_root

MODES = ["restricted", "tmpwrite", "read", "write"]


@pytest.fixture
def secrets(jail: Jail, home: Path) -> list[Path]:
    files = secret_files(IN_HOME, home)
    for path in files:
        jail.write(path, SECRET, mode=0o600)
    jail.write(home / ".config/agent-sandbox/config.toml", "")
    jail.write(home / "notes", SECRET)
    return files


def readable(jail: Jail, paths: list[Path], *options: str | Path) -> set[Path]:
    """Which of them a jail can read, in one launch."""
    inside = jail.run(*python(READ_THEM), options=["--quiet", *options], input="\n".join(map(str, paths)))
    assert inside.out.startswith("ready\n") and "\ndone " in inside.out  # it ran, and to the end
    return {path for path in paths if f"{path} hunter" in inside.out}


def stops(jail: Jail, backend: str, mode: str, *options: str | Path) -> bool:
    """Landlock makes no exception below something writable: with credentials there, nothing starts."""
    if backend != "landlock" or mode != "write":
        return False
    assert stopped(jail.run("echo", "ran", options=["--quiet", "--home", mode, *options]), "hidden")
    return True


@pytest.mark.parametrize("mode", MODES)
def test_no_credential_can_be_read(jail: Jail, backend: str, secrets: list[Path], mode: str) -> None:
    notes = jail.user.home / "notes"
    control = jail.outside(*python(READ_THEM), input="\n".join(map(str, secrets)))
    assert control.out.count(" hunter2") == len(secrets) > 80
    shown = {notes} if mode in ("read", "write") else set()
    assert stops(jail, backend, mode) or readable(jail, [*secrets, notes], "--home", mode) == shown


@pytest.mark.parametrize("mode", MODES)
def test_no_credential_can_be_read_below_a_grant(jail: Jail, backend: str, secrets: list[Path], mode: str) -> None:
    home = jail.user.home
    jail.write(home / ".config/open", SECRET)
    options = ["--home", mode, "--ro", home / ".config", "--ro" if backend == "landlock" else "--rw", home / ".local/share"]
    assert stops(jail, backend, mode, *options) or readable(jail, [*secrets, home / ".config/open"], *options) == {home / ".config/open"}


@only("landlock")
def test_a_writable_grant_with_a_credential_below_it_stops_the_launch(jail: Jail, secrets: list[Path]) -> None:
    inside = jail.run("echo", "ran", options=["--quiet", "--rw", jail.user.home / ".local/share"])
    assert stopped(inside, "hidden")


@pytest.mark.parametrize("mode", MODES)
def test_our_own_settings_cannot_be_changed_from_inside(jail: Jail, backend: str, secrets: list[Path], mode: str) -> None:
    path = jail.configure("# mine\n")
    before = sorted(path.parent.iterdir())
    if stops(jail, backend, mode):
        return
    jail.run("sh", "-c", f"echo planted > {path}; echo planted > {path.parent}/planted; touch ran", options=["--quiet", "--home", mode])
    assert (jail.project / "ran").exists()
    assert path.read_text() == "# mine\n"
    assert sorted(path.parent.iterdir()) == before


def replace(path: Path, user: users.TestUser) -> None:
    """The file by a rename over it; a directory by a new one in its place."""
    if path.is_dir():
        gone = path.with_name("gone")
        path.rename(gone)
        shutil.rmtree(gone)
        path.mkdir()
        os.chown(path, user.uid, user.gid)
        path /= "secret"
    new = path.with_name("new")
    new.write_text("hunter3\n")
    os.chown(new, user.uid, user.gid)
    new.rename(path)


@pytest.mark.parametrize("mode", MODES)
def test_no_credential_can_be_read_after_it_was_replaced_outside(
    jail: Jail, backend: str, secrets: list[Path], mode: str
) -> None:
    """`write` mode can only mask, and a mask goes with the file it covers: there the end of the session names each."""
    if stops(jail, backend, mode):
        return
    entries = [entry for entry in hidden_entries(IN_HOME, jail.user.home) if "agent-sandbox" not in str(entry)]
    pipe = subprocess.PIPE
    process = jail.start(*python(READ_THEM), options=["--quiet", "--home", mode], stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout and process.stdout.readline() == "ready\n"
    for entry in entries:
        replace(entry, jail.user)
    files = [path for path in secrets if "agent-sandbox" not in str(path)]
    assert jail.outside(*python(READ_THEM), input="\n".join(map(str, files))).out.count(" hunter3") == len(files)
    out, err = process.communicate("\n".join(map(str, files)), timeout=60)
    assert "\ndone " in f"\n{out}"
    leaked = {entry for entry in entries if f"{entry} hunter3" in out or f"{entry}/secret hunter3" in out}
    if mode == "write":
        assert "hidden path(s) lie below something writable" in err
        assert {entry for entry in leaked if f"{entry} was replaced outside" not in err} == set()
    else:
        assert leaked == set()


@pytest.mark.parametrize("mode", ["restricted", "tmpwrite", "read"])
def test_a_credential_that_is_stored_while_the_jail_runs_cannot_be_read(jail: Jail, home: Path, mode: str) -> None:
    """`cargo login`, `huggingface-cli login` in another window: the directory was there before, the file was not."""
    files = [path for path in secret_files(IN_HOME, home) if "agent-sandbox" not in str(path)]
    for path in files:
        if path.parent != home and path.name != "secret":
            jail.write(path.parent / "other", "")
    pipe = subprocess.PIPE
    process = jail.start(*python(READ_THEM), options=["--quiet", "--home", mode], stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout and process.stdout.readline() == "ready\n"
    for path in files:
        jail.write(path, SECRET, mode=0o600)
    out, _ = process.communicate("\n".join(map(str, files)), timeout=60)
    assert "done " in out
    assert [line for line in out.splitlines() if "hunter" in line] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_linked_credential_directory_is_hidden_by_both_paths(jail: Jail, backend: str, home: Path, mode: str) -> None:
    real = jail.write(home / "elsewhere/ssh/id_ed25519", SECRET)
    (home / ".ssh").symlink_to("elsewhere/ssh")
    jail.write(home / "elsewhere/open", SECRET)
    paths = [real, home / ".ssh/id_ed25519"]
    assert jail.outside(*python(READ_THEM), input="\n".join(map(str, paths))).out.count(" hunter2") == 2
    opened = home / "elsewhere/open"
    options = ["--home", mode, "--ro", home / "elsewhere"]
    assert stops(jail, backend, mode) or readable(jail, [*paths, opened], *options) == {opened}


@pytest.mark.parametrize("mode", MODES)
def test_a_credential_directory_that_is_linked_to_another_file_system_is_hidden_by_both_paths(
    jail: Jail, backend: str, home: Path, mode: str
) -> None:
    with users.account() as other:  # only for a directory outside this home that is swept away with it
        real = jail.write(other.home / "ssh/id_ed25519", SECRET)
        opened = jail.write(other.home / "open", SECRET)
        other.home.chmod(0o755)
        (home / ".ssh").symlink_to(real.parent)
        paths = [real, home / ".ssh/id_ed25519"]
        assert jail.outside(*python(READ_THEM), input="\n".join(map(str, paths))).out.count(" hunter2") == 2
        options = ["--home", mode, "--ro", other.home]
        assert stops(jail, backend, mode) or readable(jail, [*paths, opened], *options) == {opened}


@pytest.fixture
def moved(copy: Path, backend: str) -> Iterator[Jail]:
    """A user whose home in the passwd database is a link, as on clusters where /home/x → /data/x."""
    need_root()
    with users.account() as user:
        real = Path(f"/srv/agent-sandbox-test-{user.name}")
        user.home.rename(real)
        user.home.symlink_to(real)
        project = real / "project"
        project.mkdir()
        os.chown(project, user.uid, user.gid)
        try:
            yield choose(Jail(copy=copy, user=user, project=project), backend)
        finally:
            user.home.unlink()
            real.rename(user.home)


@pytest.mark.parametrize("mode", MODES)
def test_in_a_linked_home_credentials_are_hidden_by_both_paths(moved: Jail, backend: str, mode: str) -> None:
    home, real = moved.user.home, moved.project.parent
    moved.write(real / ".gitconfig", "[user]\n\tname = me\n[credential]\n\thelper = store\n")
    moved.write(real / ".config/agent-sandbox/config.toml", "")
    for path in secret_files(IN_HOME, real):
        moved.write(path, SECRET)
    paths = [*secret_files(IN_HOME, real), *secret_files(IN_HOME, home)]
    control = moved.outside(*python(READ_THEM), input="\n".join(map(str, paths)))
    assert control.out.count(" hunter2") == len(paths)
    if stops(moved, backend, mode):
        return
    assert readable(moved, paths, "--home", mode) == set()
    inside = moved.run("sh", "-c", "cat ~/.gitconfig", options=["--quiet", "--home", mode])
    assert "name = me" in inside.out or mode == "restricted"


def test_system_credentials_that_a_careless_admin_left_readable_are_hidden(jail: Jail) -> None:
    """In a mount namespace where everybody may read them: the control reads all, the jail none."""
    need_root()
    files = secret_files(IN_SYSTEM, Path("/"))
    make = "".join(f'mkdir -p "{path.parent}"; echo hunter2 > "{path}"; chmod 755 "{path.parent}"; chmod 644 "{path}"\n' for path in files)
    tops = "".join(
        f"mkdir -p /mnt{top}; cp -a {top}/. /mnt{top}/; mount --bind /mnt{top} {top}\n" for top in ("/etc", "/var/spool", "/var/lib/munge")
    )
    script = f'mount -t tmpfs none /mnt; mkdir -p /var/lib/munge; {tops} mount -t tmpfs -o mode=755 none /root\n{make}\nexec "$@"'
    user = jail.user
    switch = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups", "env", "-i", "PATH=/usr/bin:/bin"]
    around = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", *switch]
    had = Path("/var/lib/munge").exists()
    try:
        outside = subprocess.run(
            [*around, *python(READ_THEM)], input="\n".join(map(str, files)), capture_output=True, text=True, check=False
        )
        assert outside.stdout.count(" hunter2") == len(files), outside
        words = [*around, str(jail.program), "--quiet", "--", *python(READ_THEM)]
        inside = subprocess.run(words, input="\n".join(map(str, files)), capture_output=True, text=True, cwd=jail.project, check=False)
        assert "done " in inside.stdout, inside
        assert [line for line in inside.stdout.splitlines() if "hunter" in line] == []
    finally:
        if not had:
            Path("/var/lib/munge").rmdir()
