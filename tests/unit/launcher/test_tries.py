"""Backends are really run here; what can change under a remembered success is changed for real or in the value that is read."""

from __future__ import annotations

import itertools
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_sandbox.config.record import replace
from agent_sandbox.launcher import tries
from agent_sandbox.launcher.policy import Host, Tried
from agent_sandbox.launcher.probe import read_host
from agent_sandbox.launcher.seeing import facts
from agent_sandbox.launcher.tries import depends_on, find_out, run_bwrap, run_firejail, try_backend
from tests.machines.needs import missing, need

BACKENDS = ("bwrap", "firejail")
Program = Callable[[str], str]


@pytest.fixture(scope="module")
def host() -> Host:
    return read_host()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program of the test's in the place of a backend."""

    def write(text: str) -> str:
        path = tmp_path / "program"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    return write


def record_of(name: str, host: Host, state: Path) -> Path:
    return state / "tried" / host.name / name


def remember(name: str, host: Host, state: Path) -> Path:
    need(name)
    assert try_backend(name, host, str(state)) == Tried(backend=name, problem="")
    return record_of(name, host, state)


def runs_again(name: str, host: Host, state: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Is the backend run, or is the record believed?"""
    ran: list[Host] = []

    def run(asked: Host) -> str:
        ran.append(asked)
        return ""

    monkeypatch.setattr(tries, f"run_{name}", run)
    assert try_backend(name, host, str(state)) == Tried(backend=name, problem="")
    return bool(ran)


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backend_that_runs_is_run_once(name: str, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = remember(name, host, tmp_path)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert [path.name for path in record.parent.iterdir()] == [name]
    assert not runs_again(name, host, tmp_path, monkeypatch)
    record.unlink()  # the control
    assert runs_again(name, host, tmp_path, monkeypatch)


def test_nobody_else_can_write_where_it_is_kept_whatever_the_umask(host: Host, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        record = remember("bwrap", host, tmp_path / "a" / "state")
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    ways = [record, *itertools.takewhile(lambda path: path != tmp_path, record.parents)]
    assert [stat.S_IMODE(path.stat().st_mode) for path in ways] == [0o600, 0o700, 0o700, 0o700, 0o700]


def test_where_nothing_is_to_change_nothing_is_remembered(host: Host, tmp_path: Path) -> None:
    need("bwrap")
    assert try_backend("bwrap", host, str(tmp_path), remember=False).problem == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", BACKENDS)
def test_a_record_that_is_not_ours_or_not_whole_is_not_believed(name: str, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = remember(name, host, tmp_path)
    right = record.read_bytes()
    for wrong in (b"", right[:-1], right + b"\n", b"\xff" * 100_000, right.replace(name.encode(), b"other")):
        record.write_bytes(wrong)
        assert runs_again(name, host, tmp_path, monkeypatch), wrong[:80]
    for mode in (0o602, 0o620, 0o666):
        record.write_bytes(right)
        record.chmod(mode)
        assert runs_again(name, host, tmp_path, monkeypatch), oct(mode)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(right)
    elsewhere.chmod(0o600)
    record.unlink()
    record.symlink_to(elsewhere)
    assert runs_again(name, host, tmp_path, monkeypatch)
    record.unlink()
    os.mkfifo(record, 0o600)  # must not be waited for
    assert runs_again(name, host, tmp_path, monkeypatch)


def test_a_record_of_another_user_is_not_believed(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        missing("only root can give files away")
    record = remember("bwrap", host, tmp_path)
    assert not runs_again("bwrap", host, tmp_path, monkeypatch)
    os.chown(record, 12345, 12345)
    assert runs_again("bwrap", host, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(
    "path",
    [
        "/proc/sys/kernel/random/boot_id", "/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_net_namespaces",
        "/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "/proc/self/attr/current",
    ],
)  # fmt: skip
def test_a_success_ends_with_what_it_depends_on(name: str, path: str, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's files are read as if they had changed: simulated, since changing them would change the machine."""
    remember(name, host, tmp_path)
    real = tries.read
    monkeypatch.setattr(tries, "read", lambda asked: b"changed" if asked == path else real(asked))
    assert runs_again(name, host, tmp_path, monkeypatch)


def test_another_program_user_or_install_is_another_thing(host: Host, program: Program) -> None:
    fake = program("exit 0")
    first = depends_on("bwrap", replace(host, bwrap=fake))
    assert depends_on("bwrap", replace(host, bwrap=fake)) == first  # the control
    os.chmod(fake, 0o4755)
    setuid = depends_on("bwrap", replace(host, bwrap=fake))
    program("exit 1")
    rewritten = depends_on("bwrap", replace(host, bwrap=fake))
    others = [replace(host, bwrap=fake, uid=host.uid + 1), replace(host, bwrap=fake, package="/elsewhere")]
    keys = [first, setuid, rewritten, *(depends_on("bwrap", other) for other in others)]
    assert len(set(keys)) == len(keys)


def test_a_failure_is_not_remembered_and_takes_an_old_success_away(host: Host, tmp_path: Path, program: Program) -> None:
    record = remember("bwrap", host, tmp_path)
    broken = replace(host, bwrap=program("echo 'bwrap: no luck' >&2; exit 1"))
    assert try_backend("bwrap", broken, str(tmp_path)).problem.endswith("no luck")
    assert not record.exists()
    assert try_backend("bwrap", broken, str(tmp_path)).problem.endswith("no luck")
    program('exec /usr/bin/bwrap "$@"')  # somebody repairs it
    assert try_backend("bwrap", broken, str(tmp_path)).problem == ""


def test_a_state_directory_that_cannot_be_made_is_no_problem(host: Host, tmp_path: Path) -> None:
    need("bwrap")
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    for state in (str(in_the_way), "/proc/nowhere", "/with\0nul"):
        assert try_backend("bwrap", host, state).problem == ""
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("exit 0", "bwrap does not run: it ended with status 0"),  # says nothing of a command
        ("kill -9 $$", "bwrap does not run: it ended with status 137"),
        ("[ $1 = --version ] && echo bubblewrap 0.4.1 || { echo 'bwrap: Unknown option --perms' >&2; exit 1; }",
         "bwrap 0.4.1 is too old: 0.5 or later is needed"),
        ("[ $1 = --version ] && echo bubblewrap 0.9.0 || { echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1; }",
         "bwrap does not run: setting up uid map: Permission denied"),
    ],
)  # fmt: skip
def test_what_bwrap_says_becomes_a_reason(text: str, problem: str, host: Host, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "CONTAINERS", ())  # where the tests themselves run in one, that would be the reason
    found = find_out("bwrap", replace(host, bwrap=program(text)), "/nowhere")
    assert [one.what for one in found] == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("exit 0", "it ended with status 0"),
        ("shift 6; exec \"$@\"", "it ran the command without a jail"),
        ("echo 'Error: invalid --restrict-namespaces command line option' >&2; exit 1", "Error: invalid --restrict-namespaces command line option"),
    ],
)  # fmt: skip
def test_a_firejail_that_makes_no_jail_does_not_run(text: str, problem: str, host: Host, program: Program) -> None:
    need("firejail")
    assert run_firejail(host) == ""  # the control
    assert run_firejail(replace(host, firejail=program(text))) == problem


@pytest.mark.parametrize("name", BACKENDS)
def test_one_that_hangs_is_given_up(name: str, host: Host, program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tries, "SECONDS", 0.2)
    run = {"bwrap": run_bwrap, "firejail": run_firejail}[name]
    start = time.monotonic()
    assert run(replace(host, **{name: program("exec sleep 60")})) == "it did not end within 0.2 s"
    assert time.monotonic() - start < 5


def test_what_is_not_installed_is_said_with_the_way_to_get_it(host: Host) -> None:
    bare = replace(host, bwrap="", firejail="", landlock=0)
    hint = "apt install {0}, or dnf install {0}; `agent-sandbox doctor` says more"
    fix = "Linux 5.13 or later, built with Landlock, and landlock in the list that the kernel was started with (lsm=)"
    assert [try_backend(name, bare, "/nowhere") for name in (*BACKENDS, "landlock")] == [
        Tried(backend="bwrap", problem="bwrap is not installed", fix=hint.format("bubblewrap")),
        Tried(backend="firejail", problem="firejail is not installed", fix=hint.format("firejail")),
        Tried(backend="landlock", problem="this kernel has no Landlock, or it is switched off", fix=fix),
    ]


def test_landlock_is_there_where_the_kernel_has_it(host: Host) -> None:
    assert try_backend("landlock", replace(host, landlock=1), "/nowhere") == Tried(backend="landlock", problem="")


def test_looking_a_success_up_costs_less_than_a_third_of_a_millisecond(host: Host, tmp_path: Path) -> None:
    remember("bwrap", host, tmp_path)
    best = min(_seconds(host, tmp_path) for _ in range(50))
    assert best < 0.0003


def _seconds(host: Host, state: Path) -> float:
    start = time.perf_counter()
    try_backend("bwrap", host, str(state))
    return time.perf_counter() - start
