"""Links that somebody who can write the project puts in the way, before a launch and while it is being built.

bwrap before 0.12 resolves a link to /oldroot/… on the host: made into a mount point, it leaves files there.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.escapes.backends import only
from tests.escapes.inside import PYTHON
from tests.machines import users
from tests.machines.jail import Jail

SWAP = """
import os, sys, time
path, target = sys.argv[1:]
aside = path + ".aside"
print("swapping", flush=True)
while True:
    try:
        os.rename(path, aside); os.symlink(target, path)
        time.sleep(0.0007)
        os.unlink(path); os.rename(aside, path)
        time.sleep(0.0013)
    except OSError as problem:  # a mount of our own namespaces is never in the way here: outside, every rename works
        print(problem, flush=True)
        break
"""
ATTACK = "cat key; for d in . .git .git/hooks hidden; do echo planted > $d/planted; mkdir $d/made; done; echo ran"


@pytest.fixture
def outside(jail: Jail, home: Path) -> Path:
    """A directory of the user's that no jail is given."""
    return jail.write(home / "outside/key", "hunter2\n").parent


@contextlib.contextmanager
def swapped(jail: Jail, path: Path, target: str) -> Iterator[None]:
    """For as long as the block lasts, `path` is now itself and now a link."""
    pipe = subprocess.PIPE
    process = users.start_as(jail.user, [PYTHON, "-I", "-c", SWAP, path, target], stdout=pipe, stderr=pipe)
    try:
        assert process.stdout and process.stdout.readline() == "swapping\n"
        yield
        assert process.poll() is None, process.stdout.read()  # it was at it to the end
    finally:
        process.kill()
        process.communicate()
        aside = path.with_name(f"{path.name}.aside")
        if aside.exists():
            path.unlink(missing_ok=True)
            aside.rename(path)


def untouched(outside: Path) -> None:
    assert {entry.name: entry.read_text() for entry in outside.iterdir()} == {"key": "hunter2\n"}
    assert not os.path.lexists("/oldroot")


@pytest.fixture
def repository(jail: Jail) -> Path:
    jail.write(jail.project / ".git/config", "[core]\n")
    jail.write(jail.project / ".git/hooks/sample", "")
    jail.write(jail.project / "hidden/dir/key", "hunter2\n")
    return jail.project


@only("bwrap")
@pytest.mark.parametrize("target", ["{}", "/oldroot{}", "/newroot{}"])
@pytest.mark.parametrize("path", [".git", ".git/hooks", "hidden", "hidden/dir", ".vscode", ".envrc"])
def test_a_link_that_lies_there_before_the_launch_makes_nothing_outside(
    jail: Jail, repository: Path, outside: Path, path: str, target: str
) -> None:
    place = repository / path
    if place.exists():
        place.rename(repository / "aside")
    place.symlink_to(target.format(outside))
    inside = jail.run("sh", "-c", ATTACK, options=["--quiet", "--hide", repository / "hidden/dir"])
    assert inside.out == "ran\n" or inside.code == 125
    untouched(outside)


@only("bwrap")
@pytest.mark.parametrize("target", ["{}", "/oldroot{}"])
@pytest.mark.parametrize("path", [".git", ".git/hooks", "hidden", "hidden/dir"])
def test_a_link_swapped_in_during_the_launch_makes_nothing_outside(
    jail: Jail, repository: Path, outside: Path, path: str, target: str, rounds: Callable[[int, int], int]
) -> None:
    with swapped(jail, repository / path, target.format(outside)):
        for _ in range(rounds(10, 500)):
            inside = jail.run("sh", "-c", ATTACK, options=["--quiet", "--hide", repository / "hidden/dir"])
            assert (inside.code, inside.out) in ((0, "ran\n"), (125, "")), inside
            untouched(outside)
    assert not (repository / "hidden/dir/planted").exists()


@only("bwrap")
def test_control_without_swapping_every_launch_runs_and_protects(jail: Jail, repository: Path, outside: Path) -> None:
    for _ in range(3):
        inside = jail.run("sh", "-c", ATTACK, options=["--quiet", "--hide", repository / "hidden/dir"])
        assert (inside.code, inside.out) == (0, "ran\n")
    assert (repository / "planted").exists() and (repository / ".git/planted").exists()
    assert not (repository / ".git/hooks/planted").exists()
    assert not (repository / "hidden/dir/planted").exists()


@pytest.mark.parametrize("option", ["--project-dir", "--rw", "--ro"])
@pytest.mark.parametrize(
    ("backend", "target"), [("bwrap", "{}"), ("bwrap", "/oldroot{}"), ("landlock", "{}")], indirect=["backend"]
)
def test_a_grant_swapped_for_a_link_during_the_launch_shows_nothing_else(
    jail: Jail, outside: Path, option: str, target: str, rounds: Callable[[int, int], int]
) -> None:
    """A jail that runs in the directory above, or another user of a shared one, swaps what the next jail is given."""
    granted = jail.write(jail.project.parent / "shared/sub/file", "").parent
    options = ["--quiet", option, granted, "--hide", outside]
    attack = f"cat '{granted}/key'; echo planted > '{granted}/planted'; echo ran"
    assert jail.run("sh", "-c", attack, options=options).out == "ran\n"  # control: without swapping it works
    with swapped(jail, granted, target.format(outside)):
        for _ in range(rounds(25, 500)):
            inside = jail.run("sh", "-c", attack, options=options)
            assert "hunter2" not in inside.out
            untouched(outside)
