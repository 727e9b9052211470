"""Which directory may be the project: never one that would hand out home, the code that enforces, or its settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.escapes.backends import only, stopped
from tests.machines.copies import fill_copy
from tests.machines.jail import Jail
from tests.machines.needs import need_root


def refused(jail: Jail, project: Path | str) -> str:
    """The words of the refusal; control: the same launch works in a real project."""
    assert jail.run("echo", "ran").out == "ran\n"
    inside = jail.run("echo", "ran", options=["--quiet", "--project-dir", project])
    assert (inside.code, inside.out) == (125, "")
    return inside.err


def test_home_cannot_be_the_project(jail: Jail, secret: Path) -> None:
    assert "home" in refused(jail, jail.user.home)


def test_root_and_the_directories_above_home_cannot_be_the_project(jail: Jail) -> None:
    for above in jail.user.home.parents:
        assert "home" in refused(jail, above)


def test_home_reached_by_a_link_cannot_be_the_project(jail: Jail) -> None:
    link = jail.project / "link"
    link.symlink_to(jail.user.home)
    assert "home" in refused(jail, link)
    assert "home" in refused(jail, f"{jail.project}/../.")


@pytest.mark.parametrize("own", [".config/agent-sandbox", ".local/state/agent-sandbox", ".local/share/agent-sandbox"])
def test_our_own_directories_and_what_is_below_cannot_be_the_project(jail: Jail, home: Path, own: str) -> None:
    jail.write(home / own / "below/file")
    assert "lies in" in refused(jail, home / own)
    assert "lies in" in refused(jail, home / own / "below")


def test_the_installed_copy_cannot_be_the_project(jail: Jail) -> None:
    assert "lies in" in refused(jail, jail.copy)
    assert "lies in" in refused(jail, jail.copy / "lib")


def test_a_directory_with_hidden_things_in_its_path_cannot_be_the_project(jail: Jail, secret: Path) -> None:
    jail.write(secret.parent / "work/file")
    assert "hidden" in refused(jail, secret.parent / "work")


def test_home_under_another_name_cannot_be_the_project(jail: Jail, secret: Path) -> None:
    """A bind mount is one more path to the same directory, which resolving links does not show."""
    run = run_with_alias(jail, "cd /mnt/alias && exec {program} --quiet -- cat .ssh/id_ed25519")
    assert run.returncode == 125
    assert "home" in run.stderr


def test_hidden_paths_stay_hidden_below_a_grant_that_is_another_name_of_home(jail: Jail, secret: Path) -> None:
    control = run_with_alias(jail, "cat /mnt/alias/.ssh/id_ed25519")
    assert control.stdout == "hunter2\n"
    run = run_with_alias(jail, "cd '{project}' && exec {program} --quiet --ro /mnt/alias -- cat /mnt/alias/.ssh/id_ed25519")
    assert "hunter2" not in run.stdout
    assert run.stderr.startswith(("cat:", "agent-sandbox:"))


def run_with_alias(jail: Jail, line: str) -> subprocess.CompletedProcess[str]:
    """A shell line of the user's where /mnt/alias is home, in a mount namespace of its own."""
    need_root()
    words = line.format(program=jail.program, project=jail.project)
    mount = f"mount -t tmpfs none /mnt && mkdir /mnt/alias && mount --bind {jail.user.home} /mnt/alias || exit 99"
    switch = f'exec setpriv --reuid={jail.user.uid} --regid={jail.user.gid} --clear-groups env -i PATH=/usr/bin:/bin sh -c "$0"'
    argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f"{mount}; {switch}", words]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def copy_in_project(jail: Jail, home: Path) -> Jail:
    """A jail whose own code lies in the project, as in a clone that is worked on."""
    copy = jail.project / "tools/sandbox"
    copy.mkdir(parents=True)
    fill_copy(copy)
    subprocess.run(["chown", "-R", f"{jail.user.uid}:{jail.user.gid}", jail.project], check=True)
    return Jail(copy=copy, user=jail.user, project=jail.project)


@only("landlock")
def test_landlock_does_not_start_from_a_copy_that_lies_in_the_project(copy_in_project: Jail) -> None:
    """It cannot be kept read-only there."""
    assert stopped(copy_in_project.run("echo", "ran"), "self-protection")


@only("bwrap")
def test_a_copy_that_lies_in_the_project_is_read_only(copy_in_project: Jail) -> None:
    jail = copy_in_project
    assert os.access(jail.program, os.W_OK)
    assert jail.outside("sh", "-c", f"echo '#' >> '{jail.program}'").code == 0
    inside = jail.run("sh", "-c", "echo '#' >> tools/sandbox/bin/agent-sandbox; echo x > tools/file && echo wrote")
    assert inside.out == "wrote\n"
    assert "Read-only file system" in inside.err


@only("bwrap")
@pytest.mark.parametrize("renamed", ["tools/sandbox/bin", "tools/sandbox", "tools"])
def test_a_copy_that_lies_in_the_project_cannot_be_replaced_by_renaming_a_directory_above_it(copy_in_project: Jail, renamed: str) -> None:
    """Else the person's next start runs what was put in its place."""
    jail = copy_in_project
    before = jail.program.read_text()
    jail.run("sh", "-c", f"mv {renamed} away; mkdir -p tools/sandbox/bin; echo planted > tools/sandbox/bin/agent-sandbox; touch ran")
    assert (jail.project / "ran").exists()
    assert jail.program.read_text() == before
