"""The ledger: what is written is read again by everybody in the scope; what is torn, full or forged does no harm."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from pathlib import Path

import pytest

from agent_sandbox.chaperon import ledger as ledgers
from agent_sandbox.chaperon import projects
from agent_sandbox.chaperon.ledger import Ledger
from agent_sandbox.chaperon.views.lookup import Live
from agent_sandbox.chaperon.views.scope import NO_LOG
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace
from agent_sandbox.launcher import syscalls
from tests.unit.chaperon.serving import orders_for


def ledger(top: Path, session: str = "s1", project: str = "p1", scope: str = "project") -> Ledger:
    return Ledger(replace(orders_for(top), session=session, project_id=project, scope=scope))


def submit(book: Ledger, *jobs: int) -> None:
    for job in jobs:
        assert book.record(book.intend(), job, 1, "name")


def files(top: Path) -> list[Path]:
    return sorted(path for path in (top / "state/ledger").rglob("*") if path.is_file())


def test_a_scope_holds_its_own_jobs(tmp_path: Path) -> None:
    submit(ledger(tmp_path), 1, 2)
    submit(ledger(tmp_path, "s2"), 3)
    submit(ledger(tmp_path, "s3", "p2"), 4)
    seen = {scope: set(ledger(tmp_path, scope=scope).scope().jobs) for scope in ("session", "project", "user")}
    assert seen == {"session": {1, 2}, "project": {1, 2, 3}, "user": {1, 2, 3, 4}}


def test_what_another_process_adds_is_seen_at_once(tmp_path: Path) -> None:
    reader = ledger(tmp_path)
    assert reader.scope().jobs == frozenset()
    submit(ledger(tmp_path, "s2"), 7)
    assert reader.scope().jobs == {7}
    submit(ledger(tmp_path, "s2"), 8)
    assert reader.scope().jobs == {7, 8}


def test_nothing_in_the_state_directory_is_open_to_others(tmp_path: Path) -> None:
    submit(ledger(tmp_path), 1)
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "state").rglob("*")} == {0}


@pytest.mark.parametrize("rest", ["job\tt\t12", *["job\tt\t12\t1\t1.0\tname" + end for end in ("", "\t", "\t.\tmore\n")], "\0\0\0"])
def test_a_torn_line_says_nothing_and_hides_nothing(tmp_path: Path, rest: str) -> None:
    submit(ledger(tmp_path), 1)
    with files(tmp_path)[0].open("a") as file:
        file.write(rest)
    other = ledger(tmp_path)
    assert other.scope().jobs == {1}
    with files(tmp_path)[0].open("a") as file:
        file.write("\njob\tt\t13\t1\t1.0\tname\t.\n")
    assert other.scope().jobs == {1, 13}


def test_names_cannot_add_lines_or_fields(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.record(book.intend(), 5, 1, "a\njob\tt\t6\t1\t1.0\tx\t.\n\t.\ud800")
    assert ledger(tmp_path).scope().jobs == {5}


def test_without_a_record_there_is_no_submission(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a directory")
    with pytest.raises(UserError, match="nothing was submitted"):
        ledger(tmp_path).intend()


def test_a_full_disk_stops_the_next_submission_and_keeps_what_was_recorded(tmp_path: Path) -> None:
    """As a limit on the size of files: what is written of a line is torn."""
    book = ledger(tmp_path)
    submit(book, 1)
    token = book.intend()
    before, ignored = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (files(tmp_path)[0].stat().st_size + 5, before[1]))
        assert not book.record(token, 2, 1, "lost")
        with pytest.raises(UserError, match="could not be recorded"):
            book.intend()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    submit(book, 3)
    other = ledger(tmp_path)
    assert (other.scope().jobs, other.scope().interrupted) == ({1, 3}, True)  # and Slurm is asked for the lost one


def test_an_intent_that_nothing_followed_is_noticed_by_others_and_recovered(tmp_path: Path) -> None:
    dead = ledger(tmp_path, "s2")
    dead.intend()
    book = ledger(tmp_path)
    assert book.scope().interrupted
    book.recover([Live(id=11, base=10, session="s2"), Live(id=12, base=12, session="s9"), Live(id=13, base=13, session="")])
    assert ledger(tmp_path).scope().jobs == {10}
    assert ledger(tmp_path, "s2", scope="session").scope().jobs == {10}  # it is the other session's
    assert ledger(tmp_path, scope="session").scope().jobs == frozenset()


def test_logs_of_jobs_recover_them_when_the_controller_has_forgotten_them(tmp_path: Path) -> None:
    dead = ledger(tmp_path, "s2")
    dead.intend()
    for name in ("21.log", "x.log", "22.env", "-1.log", "٣.log"):
        (Path(dead.log_directory) / name).write_text("")
    ledger(tmp_path).recover([])
    assert ledger(tmp_path).scope().jobs == {21}


def test_an_old_intent_is_settled_and_a_young_one_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger(tmp_path, "s2").intend()
    book = ledger(tmp_path)
    book.recover([])
    assert ledger(tmp_path).scope().interrupted
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + ledgers.PATIENCE + 1)
    book.recover([])
    assert not ledger(tmp_path).scope().interrupted


def test_a_submission_that_failed_or_is_young_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = ledger(tmp_path)
    book.drop(book.intend())
    book.intend()
    assert not book.scope().interrupted
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + ledgers.SHORT + 1)
    assert book.scope().interrupted  # as `sbatch --wait` is


def test_tasks_are_counted_over_all_projects(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.record(book.intend(), 1, 40, "array")
    submit(ledger(tmp_path, "s3", "p2"), 4)
    assert (ledger(tmp_path, scope="session").submitted_since(time.time() - 60), book.submitted_since(time.time() + 60)) == (41, 0)


def test_a_reason_is_told_in_plain_words_and_a_link_is_not_followed(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.intend()
    logs = Path(book.log_directory)
    (logs / "1.log").write_bytes(b"noise\nagent-sandbox: job 1 was not started: \x1b[31m\xff\nmore\n")
    (logs / "2.log").symlink_to(logs / "1.log")
    (logs / "4.log").write_text("slurmstepd-n1: error: execve(): /spool/slurm_script: Permission denied\n")
    (logs / "5.log").write_text("agent-sandbox: the job's output file '/x': No such file or directory\n")
    (logs / "6.log").write_text("agent-sandbox: weak point in slurm: something\n")
    assert [book.reasons(job) for job in range(1, 7)] == [
        "agent-sandbox: job 1 was not started: \\x1b[31m�", NO_LOG.format(job=2), NO_LOG.format(job=3),
        "agent-sandbox: job 4 was not started: slurmstepd-n1: error: execve(): /spool/slurm_script: Permission denied",
        "agent-sandbox: job 5 was not started: the job's output file '/x': No such file or directory", "",
    ]  # fmt: skip


def test_many_sessions_are_read_in_little_time(tmp_path: Path) -> None:
    for session in range(300):
        place = tmp_path / f"state/ledger/p1/old{session}"
        place.mkdir(parents=True)
        (place / "f").write_text("".join(f"job\tt{n}\t{session * 100 + n + 1}\t1\t1.0\tname\t.\n" for n in range(100)))
    book = ledger(tmp_path)
    assert len(book.scope().jobs) == 30_000
    begun = time.monotonic()
    book.scope()
    assert time.monotonic() - begun < 0.5


def test_without_an_id_in_the_orders_the_projects_directory_has_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = [Ledger(replace(orders_for(tmp_path), project=str(tmp_path / name), project_id="")) for name in ("a", "b")]
    submit(first, 1)
    submit(second, 2)
    (tmp_path / "a").rename(tmp_path / "c")
    moved = Ledger(replace(orders_for(tmp_path), project=str(tmp_path / "c"), project_id="", session="s2"))
    assert (moved.scope().jobs, second.scope().jobs) == ({1}, {2})


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


def has_birth(tmp_path: Path) -> bool:
    return syscalls.birth(os.fsencode(tmp_path)) is not None


def test_a_project_keeps_its_id_when_it_is_moved_and_a_new_one_of_its_name_gets_another(tmp_path: Path, state: str) -> None:
    assert has_birth(tmp_path)
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    mine = projects.project_id(state, str(old))
    assert projects.project_id(state, str(old)) == mine
    old.rename(new)
    assert projects.project_id(state, str(new)) == mine
    old.mkdir()
    assert projects.project_id(state, str(old)) != mine
    assert projects.project_id(state, str(new)) == mine


def test_an_inode_that_is_used_again_is_another_project(tmp_path: Path, state: str) -> None:
    ids = set()
    for _ in range(5):
        (tmp_path / "p").mkdir()
        ids.add(projects.project_id(state, str(tmp_path / "p")))
        (tmp_path / "p").rmdir()
        time.sleep(0.02)  # more than a tick of the kernel's clock
    assert len(ids) == 5


def test_without_a_birth_time_the_path_decides_and_its_id_is_kept_where_there_is_one(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path)
    with monkeypatch.context() as blind:
        blind.setattr(syscalls, "birth", lambda path: None)
        mine = projects.project_id(state, path)
        assert projects.project_id(state, path) == mine
    assert projects.project_id(state, path) == mine
    with monkeypatch.context() as blind:
        blind.setattr(syscalls, "birth", lambda path: None)
        assert projects.project_id(state, path) == mine


def test_launches_at_the_same_time_agree_on_the_id(tmp_path: Path, state: str) -> None:
    results, ends = os.pipe()
    children = []
    for _ in range(12):
        if (pid := os.fork()) == 0:
            os.write(ends, projects.project_id(state, str(tmp_path)).encode())
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 12
    os.close(ends)
    found = os.read(results, 4096).decode()
    os.close(results)
    assert {found[at : at + 16] for at in range(0, len(found), 16)} == {projects.project_id(state, str(tmp_path))}
    assert not [name for name in os.listdir(f"{state}/projects") if name.startswith("new-")]


def test_a_state_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(UserError, match="no id"):
        projects.project_id(str(tmp_path / "state"), str(tmp_path))


def test_the_ledger_imports_lightly() -> None:
    """In a process of its own: this one has everything."""
    import subprocess

    program = "import sys; sys.path.insert(0, sys.argv[1]); import agent_sandbox.chaperon.views.answer; print(*sys.modules)"
    source = str(Path(__file__).resolve().parents[3] / "src")
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", program, source], capture_output=True, text=True, check=True).stdout.split()
    assert {"json", "subprocess", "argparse", "asyncio", "hashlib", "dataclasses", "typing"}.isdisjoint(loaded)
