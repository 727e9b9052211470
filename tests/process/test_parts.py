"""The parts that rarely work: the other way to find children, and whose runtime directory it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher import processes, session
from tests.machines.jail import Jail
from tests.machines.needs import need_root


def test_children_are_found_without_the_kernels_list() -> None:
    made = [subprocess.Popen(["/bin/sleep", "60"]) for _ in range(3)]
    try:
        wanted = [one.pid for one in made]
        assert [pid for pid in processes.scan_children(os.getpid()) if pid in wanted] == wanted
        assert [pid for pid in processes.children(os.getpid()) if pid in wanted] == wanted
    finally:
        for one in made:
            one.kill()
            one.wait()
    assert not set(wanted) & set(processes.scan_children(os.getpid()))


def test_a_process_that_is_gone_has_no_children_and_no_command_line() -> None:
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    assert (processes.children(gone.pid), processes.command_line(gone.pid), processes.state(gone.pid)) == ([], [], "")


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(session, "base_directory", lambda uid: str(tmp_path / "base"))
    return tmp_path / "base"


def test_a_session_is_made_private_and_goes_with_its_directory(base: Path) -> None:
    mine = session.name_session(os.getuid(), session.new_name(), {"command": ["x"]}, has_room=False)
    assert not base.exists()
    session.make_session(mine)
    assert [path.stat().st_mode & 0o777 for path in (base, Path(mine.directory), Path(mine.directory, session.RECORD))] == [0o700, 0o700, 0o600]
    assert session.sessions(os.getuid()) == [(mine.directory, True)]
    session.close_session(mine)
    assert not base.exists()


def test_a_locked_session_lives_though_its_launcher_is_in_no_proc_of_ours(base: Path) -> None:
    mine = session.name_session(os.getuid(), session.new_name(), {}, has_room=False)
    elsewhere = session.Session(id=mine.id, directory=f"{base}/99999999-1-abc", text=mine.text)
    session.make_session(elsewhere)
    session.sweep(os.getuid())
    assert session.sessions(os.getuid()) == [(elsewhere.directory, True)]


def test_a_dead_session_is_swept_and_a_link_in_it_is_not_followed(base: Path, tmp_path: Path) -> None:
    dead = base / "99999999-1-abc"
    dead.mkdir(parents=True)
    base.chmod(0o700)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (dead / "link").symlink_to(kept)
    (dead / "session.json").write_text("{}")
    session.sweep(os.getuid())
    assert (base.exists(), (kept / "file").exists()) == (False, True)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
def test_a_runtime_directory_that_others_reach_is_refused(base: Path, mode: int) -> None:
    base.mkdir()
    base.chmod(mode)
    with pytest.raises(UserError, match="not yours alone"):
        session.make_session(session.name_session(os.getuid(), session.new_name(), {}, has_room=False))
    assert list(base.iterdir()) == []


def test_a_runtime_directory_that_somebody_else_made_first_is_refused(jail: Jail) -> None:
    need_root()
    squatted = Path(f"/tmp/agent-sandbox-{jail.user.uid}")
    squatted.mkdir(mode=0o777)
    try:
        done = jail.run("true")
        assert (done.code, "not yours alone" in done.err, "Traceback" in done.err) == (125, True, False)
        assert list(squatted.iterdir()) == []
    finally:
        squatted.rmdir()
    assert jail.run("true").code == 0
