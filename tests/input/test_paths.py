"""Paths of every shape work, or are refused in one paragraph; nothing is left half made, and nothing hangs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.input.test_arguments import check_refusal
from tests.machines import users
from tests.machines.jail import Jail, Result
from tests.machines.needs import need, need_root

NAMES = [
    "with space", "quote'", 'double"', "dollar$HOME", "back\\slash", "star*", "semi;colon", "-dash", "--help", "é", "日本語", "tab\there",
    "percent%s", "comma,", "colon:", "{brace}", "#hash", "~tilde", "=",
]  # fmt: skip
STRANGE = ["new\nline", "\udcff\udcfe", "bell\x07", "esc\x1b[31m"]


@pytest.fixture
def place(jail: Jail) -> Iterator[Path]:
    """A directory for projects of strange names."""
    path = jail.user.home / "places"
    path.mkdir()
    os.chown(path, jail.user.uid, jail.user.gid)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def make(jail: Jail, path: Path) -> Path:
    path.mkdir()
    os.chown(path, jail.user.uid, jail.user.gid)
    return path


@pytest.mark.parametrize("name", NAMES + STRANGE)
def test_a_project_of_any_name_works(jail: Jail, place: Path, name: str) -> None:
    project = make(jail, place / name)
    done = jail.run("sh", "-c", "echo made >file; pwd", cwd=project)
    assert (done.code, done.out) == (0, f"{project}\n"), done.err
    assert (project / "file").read_text() == "made\n"
    done = jail.run("sh", "-c", "cat file", options=["--quiet", f"--project-dir={name}"], cwd=place)
    assert (done.code, done.out) == (0, "made\n"), done.err


@pytest.mark.parametrize("name", [name for name in NAMES if name != "~tilde"])
def test_a_granted_and_a_hidden_path_of_any_name_work(jail: Jail, backend: str, place: Path, name: str) -> None:
    """What is hidden lies below the project, or – where nothing can be hidden below something writable – below the read-only grant."""
    granted = make(jail, place / name)
    jail.write(granted / "file", "content\n")
    hidden = jail.write((granted if backend == "landlock" else jail.project) / name, "secret\n")
    look = 'cat "$1/file"; cat "$2" 2>/dev/null; echo changed >"$1/file"; echo ran'
    words = ("sh", "-c", look, "sh", str(granted), str(hidden))
    done = jail.run(*words, options=["--quiet", f"--ro={granted}", f"--hide={hidden}"])
    assert (done.code, done.out) == (0, "content\nran\n"), done.err
    assert (granted / "file").read_text() == "content\n"
    done = jail.run("sh", "-c", 'echo changed >"$1/file"', "sh", str(granted), options=["--quiet", f"--rw={granted}"])
    assert (done.code, (granted / "file").read_text()) == (0, "changed\n"), done.err


@pytest.mark.parametrize("option", ["--ro", "--rw", "--hide"])
@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_path_as_an_option_works_or_is_refused(jail: Jail, place: Path, option: str, name: str) -> None:
    path = make(jail, place / name)
    done = jail.run("echo", "ran", options=["--quiet", f"{option}={path}"])
    if done.code:
        check_refusal(done)
    else:
        assert done.out == "ran\n"
    assert "\x1b" not in done.err


def test_links_that_go_in_circles_are_named(jail: Jail, place: Path) -> None:
    (place / "a").symlink_to("b")
    (place / "b").symlink_to("a")
    check_refusal(jail.ask("--quiet", "--project-dir", str(place / "a"), "true"), "symbolic links")
    check_refusal(jail.ask("--quiet", "--ro", str(place / "a"), "true"), "symbolic links")


def test_a_current_directory_that_vanished_is_named(jail: Jail, place: Path) -> None:
    gone = make(jail, place / "gone")
    done = jail.outside("bash", "-c", f"rmdir '{gone}'; exec '{jail.program}' --quiet -- true", cwd=gone)
    check_refusal(done, "current directory")


def test_a_vanished_current_directory_does_not_matter_with_a_project(jail: Jail, place: Path) -> None:
    gone = make(jail, place / "gone")
    done = jail.outside("bash", "-c", f"rmdir '{gone}'; exec '{jail.program}' --quiet --project-dir '{jail.project}' -- pwd", cwd=gone)
    if done.code:
        check_refusal(done, "current directory")
    else:
        assert done.out == f"{jail.project}\n"


def test_a_project_that_vanishes_during_the_start_ends_in_words(jail: Jail, place: Path) -> None:
    for milliseconds in range(0, 44, 4):
        project = make(jail, place / f"p{milliseconds}")
        argv = [jail.program, "--quiet", "--project-dir", project, "--", "true"]
        with users.start_as(jail.user, argv, cwd=jail.project, stderr=subprocess.PIPE, new_session=True) as process:
            time.sleep(milliseconds / 1000)
            project.rmdir()
            err = process.communicate(timeout=20)[1]
        assert process.returncode in (0, 125), (milliseconds, process.returncode, err)
        assert "Traceback" not in err
        assert not process.returncode or "agent-sandbox: " in err
        assert not project.exists()


def test_a_read_only_file_system_is_named(jail: Jail, place: Path) -> None:
    need_root()
    project = make(jail, place / "frozen")
    mount = f"mount -t tmpfs -o mode=777 none '{project}' && mkdir -m 777 '{project}/p' && mount -o remount,ro '{project}' || exit 99"
    switch = f"exec setpriv --reuid={jail.user.uid} --regid={jail.user.gid} --init-groups -- "
    switch += f"'{jail.program}' --quiet --project-dir '{project}/p' -- true"
    argv = ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", f"{mount}\n{switch}"]
    done = users.run_as(users.current_user(), argv, cwd="/", env=jail.user.environment)
    check_refusal(Result(code=done.returncode, out=done.stdout, err=done.stderr), "read-only")


def test_a_path_of_four_thousand_characters_is_named(jail: Jail, place: Path) -> None:
    """Too long to be given, and too long to be the current directory."""
    check_refusal(jail.ask("--quiet", "--project-dir", "/" + "x/" * 2000, "true"), "longer than")
    steps = "; ".join(["mkdir -p " + "d" * 200 + " && cd " + "d" * 200] * 20)
    done = jail.outside("bash", "-c", f"{steps}; exec '{jail.program}' --quiet -- true", cwd=place)
    check_refusal(done, "longer than")
    jail.outside("rm", "-rf", *[str(entry) for entry in place.iterdir()])


def test_a_long_path_below_the_limit_works(jail: Jail, place: Path) -> None:
    steps = "; ".join(["mkdir -p " + "d" * 200 + " && cd " + "d" * 200] * 15)
    done = jail.outside("bash", "-c", f"{steps}; exec '{jail.program}' --quiet -- sh -c 'echo x >file; echo ran'", cwd=place)
    assert (done.code, done.out) == (0, "ran\n"), done.err
    jail.outside("rm", "-rf", *[str(entry) for entry in place.iterdir()])


def test_what_cannot_be_a_project_is_refused(jail: Jail, place: Path) -> None:
    home = jail.user.home
    own = [home / ".config/agent-sandbox", home / ".local/state/agent-sandbox", home / ".local/share/agent-sandbox", jail.copy]
    for path in own[:3]:
        jail.write(path / "keep")
    for path in [home, home.parent, Path("/"), *own, *[path / "sub" for path in own if path != jail.copy]]:
        path.is_dir() or make(jail, path)
        check_refusal(jail.ask("--quiet", "--project-dir", str(path), "true"), str(path))


def test_a_file_a_fifo_and_a_missing_project_are_refused(jail: Jail, place: Path) -> None:
    file = jail.write(place / "file")
    os.mkfifo(place / "fifo", 0o666)
    check_refusal(jail.ask("--quiet", "--project-dir", str(file), "true"), "is not a directory")
    check_refusal(jail.ask("--quiet", "--project-dir", str(place / "fifo"), "true"), "is not a directory")
    check_refusal(jail.ask("--quiet", "--project-dir", str(place / "none"), "true"), "does not exist")
    check_refusal(jail.ask("--quiet", "--project-dir", f"{file}/below", "true"), "does not exist")


def test_a_project_without_permission_is_refused(jail: Jail, place: Path) -> None:
    need_root()
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    (closed / "below").mkdir()
    check_refusal(jail.ask("--quiet", "--project-dir", str(closed), "true"), str(closed))
    check_refusal(jail.ask("--quiet", "--project-dir", str(closed / "below"), "true"), "cannot be reached")


def test_a_missing_home_is_refused_or_does_without(jail: Jail) -> None:
    need_root()
    project = Path(f"/var/tmp/agent-sandbox-homeless-{os.getpid()}")
    with users.account() as homeless:
        shutil.rmtree(homeless.home)
        try:
            project.mkdir()
            os.chown(project, homeless.uid, homeless.gid)
            done = users.run_as(homeless, [jail.program, "--quiet", "--", "echo", "ran"], cwd=project)
            assert "Traceback" not in done.stderr
            assert (done.returncode, done.stdout) in ((0, "ran\n"), (125, "")), done.stderr
            assert not homeless.home.exists() or not list(homeless.home.rglob("*.json"))
        finally:
            shutil.rmtree(project)
            homeless.home.mkdir(exist_ok=True)  # the fixture removes it


def test_a_user_without_an_account_is_told(jail: Jail) -> None:
    need_root()
    argv = ["/usr/bin/setpriv", "--reuid=61234", "--regid=61234", "--clear-groups", "--", str(jail.program), "--quiet", "--", "true"]
    done = users.run_as(users.current_user(), argv, cwd="/var/tmp", env=jail.user.environment)
    check_refusal(Result(code=done.returncode, out=done.stdout, err=done.stderr), "61234")


def test_a_large_project_is_not_walked(jail: Jail, place: Path) -> None:
    """Every look at an entry is a system call, and none names one of them."""
    strace = need("strace")
    project = make(jail, place / "large")
    for number in range(20_000):
        (project / f"large-entry-{number}").touch()
    deep = project
    for _ in range(50):
        deep = make(jail, deep / "deep")
    trace = jail.project / "trace"
    done = jail.outside(strace, "-f", "-o", str(trace), "-y", "-e", "trace=file,getdents64", str(jail.program), "--quiet", "--", "true", cwd=project)
    assert done.code == 0, done.err
    text = trace.read_text(errors="replace")
    assert "execve" in text
    assert "large-entry-" not in text
    assert "/deep" not in text
    assert not [line for line in text.splitlines() if "getdents64" in line and "/large" in line]


@pytest.mark.parametrize("name", ["fifo", ".agent-sandbox.toml", ".git", ".envrc"])
def test_a_fifo_in_the_project_hangs_nothing(jail: Jail, name: str) -> None:
    os.mkfifo(jail.project / name, 0o666)
    os.chown(jail.project / name, jail.user.uid, jail.user.gid)
    done = jail.run("echo", "ran", timeout=15)
    if done.code:
        check_refusal(done)
    else:
        assert done.out == "ran\n"


def test_a_directory_in_home_that_nobody_asked_for_is_not_touched(jail: Jail) -> None:
    """As one would be that hangs when looked into."""
    strace = need("strace")
    slow = make(jail, jail.user.home / "automounted")
    make(jail, slow / "below")
    trace = jail.project / "trace"
    done = jail.outside(strace, "-f", "-o", str(trace), "-e", "trace=file", str(jail.program), "--quiet", "--", "true")
    assert done.code == 0, done.err
    assert "execve" in trace.read_text(errors="replace")
    assert "automounted" not in trace.read_text(errors="replace")
