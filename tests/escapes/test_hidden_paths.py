"""Hidden wins: over every grant, under every spelling of the path, and whatever happens outside while the jail runs.

Hard links are out of scope: a second name of the same file is a file of its own for every mount.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.backends import only, stopped
from tests.machines.jail import Jail
from tests.machines.needs import need_root


def not_seen(jail: Jail, path: Path | str, *options: str | Path) -> None:
    """Outside it can be read; inside `cat` runs, fails and shows nothing. Read-only or not, the jail itself works."""
    assert jail.outside("cat", path).out == "hunter2\n"
    inside = jail.run("cat", path, options=["--quiet", *options])
    assert (inside.code, inside.out) == (1, "")
    assert "cat:" in inside.err


@pytest.fixture
def key(jail: Jail) -> Path:
    return jail.write(jail.project / "sub/key", "hunter2\n")


@pytest.fixture
def elsewhere(jail: Jail, home: Path) -> Path:
    """A directory outside the project, to be granted."""
    return jail.write(home / "data/sub/key", "hunter2\n").parents[1]


@only("landlock")
@pytest.mark.parametrize("hidden", ["sub", "sub/key"])
def test_landlock_starts_nothing_where_it_cannot_hide(jail: Jail, key: Path, elsewhere: Path, hidden: str) -> None:
    """Below something writable, be it the project or a grant."""
    for options in (["--hide", jail.project / hidden], ["--rw", elsewhere, "--hide", elsewhere / hidden]):
        assert stopped(jail.run("cat", key, options=["--quiet", *options]), "hidden")


@only("bwrap")
def test_a_hidden_file_below_the_project_stays_hidden(jail: Jail, key: Path) -> None:
    assert jail.run("cat", key).out == "hunter2\n"  # control: only hiding takes it away
    not_seen(jail, key, "--hide", key)


@only("bwrap")
def test_a_hidden_directory_below_the_project_stays_hidden(jail: Jail, key: Path) -> None:
    not_seen(jail, key, "--hide", key.parent)


@only("bwrap")
def test_the_rest_of_the_project_is_still_there(jail: Jail, key: Path) -> None:
    jail.write(key.parent / "open", "seen\n")
    assert jail.run("cat", key.parent / "open", options=["--quiet", "--hide", key]).out == "seen\n"


@pytest.mark.parametrize(("backend", "grant"), [("bwrap", "--ro"), ("bwrap", "--rw"), ("landlock", "--ro")], indirect=["backend"])
@pytest.mark.parametrize("hidden", ["sub", "sub/key"])
def test_a_hidden_path_below_a_grant_stays_hidden(jail: Jail, elsewhere: Path, grant: str, hidden: str) -> None:
    key = elsewhere / "sub/key"
    assert jail.run("cat", key, options=["--quiet", grant, elsewhere]).out == "hunter2\n"
    not_seen(jail, key, grant, elsewhere, "--hide", elsewhere / hidden)


def test_a_hidden_path_stays_hidden_whichever_option_comes_last(jail: Jail, elsewhere: Path) -> None:
    not_seen(jail, elsewhere / "sub/key", "--hide", elsewhere / "sub/key", "--ro", elsewhere)


@only("bwrap")
def test_a_hidden_file_in_a_read_only_part_of_a_writable_grant_stays_hidden(jail: Jail, elsewhere: Path) -> None:
    key = elsewhere / "sub/key"
    not_seen(jail, key, "--rw", elsewhere, "--ro", elsewhere / "sub", "--hide", key)


@pytest.mark.parametrize("grant", ["--ro", "--rw"])
def test_a_grant_below_a_hidden_directory_is_an_error_and_exposes_nothing(jail: Jail, elsewhere: Path, grant: str) -> None:
    inside = jail.run("cat", elsewhere / "sub/key", options=["--quiet", "--hide", elsewhere, grant, elsewhere / "sub"])
    assert (inside.code, inside.out) == (125, "")
    assert "hidden" in inside.err


@pytest.mark.parametrize(
    "spelling", ["{d}//sub///key", "{d}/./sub/./key", "{d}/sub/key/", "{d}/sub/../sub/key", "./{r}", "{d}/s?b/k*", "{d}/[a-s]ub/key"]
)
def test_every_spelling_of_a_hidden_path_hides_it(jail: Jail, elsewhere: Path, spelling: str) -> None:
    key = elsewhere / "sub/key"
    written = spelling.format(d=elsewhere, r=os.path.relpath(key, jail.project))
    not_seen(jail, key, "--ro", elsewhere, "--hide", written)


@pytest.mark.parametrize(
    "spelling", ["{d}//sub//key", "{d}/./sub/./key", "{d}/sub/../sub/key", "/proc/self/root{d}/sub/key", "{d}/link", "{d}/sub/key/."]
)
def test_no_spelling_of_a_hidden_path_reads_it(jail: Jail, elsewhere: Path, spelling: str) -> None:
    (elsewhere / "link").symlink_to("sub/key")
    path = spelling.format(d=elsewhere)
    if not path.endswith("/."):
        assert jail.outside("cat", path).out == "hunter2\n"
    inside = jail.run("cat", path, options=["--quiet", "--ro", elsewhere, "--hide", elsewhere / "sub/key"])
    assert (inside.code, inside.out) == (1, "")
    assert "cat:" in inside.err


def test_a_name_in_another_case_is_another_file(jail: Jail, elsewhere: Path) -> None:
    """On a file system that tells cases apart: hiding `key` says nothing about `KEY`, and does not fail on it."""
    jail.write(elsewhere / "sub/KEY", "other\n")
    options = ["--quiet", "--ro", elsewhere, "--hide", elsewhere / "sub/key"]
    assert jail.run("cat", elsewhere / "sub/KEY", options=options).out == "other\n"


def test_a_hidden_entry_below_a_linked_directory_hides_both_paths(jail: Jail, elsewhere: Path, home: Path) -> None:
    (home / "way").symlink_to("data/sub")
    for path in (home / "way/key", elsewhere / "sub/key"):
        not_seen(jail, path, "--ro", home / "data", "--hide", home / "way/key")
        not_seen(jail, path, "--home", "read", "--hide", home / "way/key")


def test_a_hidden_link_hides_what_it_points_to(jail: Jail, elsewhere: Path, home: Path) -> None:
    (home / "alias").symlink_to("data/sub/key")
    for path in (home / "alias", elsewhere / "sub/key"):
        not_seen(jail, path, "--home", "read", "--hide", home / "alias")


def replaced(path: Path) -> None:
    """As editors and credential helpers do it: a new file, renamed over the old one."""
    new = path.with_name("new")
    new.write_text("hunter3\n")
    status = path.stat() if path.exists() else path.parent.stat()
    os.chown(new, status.st_uid, status.st_gid)
    new.chmod(0o644)
    new.rename(path)


def read_after(jail: Jail, path: Path, *options: str | Path) -> tuple[str, str]:
    """What a running jail can read at `path` after it was replaced outside."""
    loop = f"echo ready; read go; cat '{path}'; echo done"
    process = jail.start(
        "sh", "-c", loop, options=["--quiet", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout and process.stdout.readline() == "ready\n"
    replaced(path)
    assert jail.outside("cat", path).out == "hunter3\n"
    out, err = process.communicate("go\n", timeout=30)
    assert out.endswith("done\n")
    return out, err


def test_a_hidden_file_below_a_read_only_grant_stays_hidden_when_it_is_replaced_outside(jail: Jail, elsewhere: Path) -> None:
    key = elsewhere / "sub/key"
    assert "hunter3" in read_after(jail, key, "--ro", elsewhere)[0]  # control: without hiding, the new one is seen
    assert "hunter3" not in read_after(jail, key, "--ro", elsewhere, "--hide", key)[0]


def test_a_hidden_file_stays_hidden_when_it_is_made_outside_while_the_jail_runs(jail: Jail, elsewhere: Path) -> None:
    key = elsewhere / "sub/absent"
    assert "hunter3" in read_after(jail, key, "--ro", elsewhere)[0]
    key.unlink()
    assert "hunter3" not in read_after(jail, key, "--ro", elsewhere, "--hide", key)[0]


@pytest.fixture
def of_root() -> Iterator[Path]:
    """A file of the system's that everybody can read, in a directory that only root can write."""
    need_root()
    top = Path(f"/opt/agent-sandbox-test-{os.getpid()}")
    top.mkdir()
    (top / "key").write_text("hunter2\n")
    yield top / "key"
    subprocess.run(["rm", "-r", str(top)], check=True)


def test_a_hidden_file_of_the_system_stays_hidden_when_root_replaces_it(jail: Jail, of_root: Path) -> None:
    assert "hunter3" in read_after(jail, of_root)[0]
    of_root.write_text("hunter2\n")
    not_seen(jail, of_root, "--hide", of_root)
    assert "hunter3" not in read_after(jail, of_root, "--hide", of_root)[0]


@only("bwrap")
def test_below_something_writable_the_replacement_is_named_at_the_end(jail: Jail, elsewhere: Path) -> None:
    """Only a mask is possible there: the weakness is said at the start, and what happened at the end."""
    _, err = read_after(jail, elsewhere / "sub/key", "--rw", elsewhere, "--hide", elsewhere / "sub/key")
    assert "1 hidden path(s) lie below something writable" in err
    assert f"{elsewhere}/sub/key was replaced outside while the jail ran" in err


def test_launching_opens_no_directory_of_the_project_but_itself(jail: Jail, home: Path) -> None:
    """A tree may be huge or an automount: looking for files to mask in it would take minutes."""
    jail.write(jail.project / "deep/deeper/file")
    jail.write(home / "tree/deep/file")
    watched = [jail.project / "deep", jail.project / "deep/deeper", home / "tree", home / "tree/deep"]
    assert opened(watched, lambda: jail.outside("ls", jail.project / "deep")) == {str(jail.project / "deep")}
    assert opened(watched, lambda: jail.run("true")) == set()


def opened(directories: list[Path], act: object) -> set[str]:
    """Which of the directories are opened during the act."""
    import ctypes
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    names = {libc.inotify_add_watch(queue, os.fsencode(path), 0x20): str(path) for path in directories}  # IN_OPEN
    try:
        act()  # type: ignore[operator]
        time.sleep(0.05)
        found, data = set(), os.read(queue, 65536)
        while data:
            watch, _, _, length = struct.unpack_from("iIII", data)
            found.add(names[watch])
            data = data[16 + length :]
        return found
    except BlockingIOError:
        return set()
    finally:
        os.close(queue)
