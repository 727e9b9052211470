"""The audit log as a file: one chain whoever writes, whatever happens to the disk."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from agent_sandbox.launcher import audit as module
from agent_sandbox.launcher.audit import FIRST, Audit, Log, hash_of
from agent_sandbox.launcher.seeing.audit import Verified, verify
from tests.machines.jail import Jail
from tests.seeing.changed import run_on_changed_machine

NOON = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC
DAY = 86_400


def log(directory: Path, keep_days: int | None = None, max_size: int | None = None, host: str = "node") -> Audit:
    return Audit(Log(directory=str(directory / "audit"), host=host, enabled=True, keep_days=keep_days, max_size=max_size))


def names(audit: Audit) -> list[str]:
    return [os.path.basename(path) for path in audit.files()]


def at(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr("time.time", lambda: seconds)


def write_some(audit: Audit, go: multiprocessing.synchronize.Event, lines: int) -> None:
    go.wait()
    for number in range(lines):
        assert audit.write("start", {"pid": os.getpid(), "number": number}) == ""


@pytest.mark.parametrize("max_size", [None, 100_000], ids=["one file", "set aside on the way"])
def test_forty_writers_at_once_make_one_chain(tmp_path: Path, max_size: int | None) -> None:
    audit = log(tmp_path, max_size=max_size)
    fork = multiprocessing.get_context("fork")
    go = fork.Event()
    writers = [fork.Process(target=write_some, args=(audit, go, 10)) for _ in range(40)]
    for writer in writers:
        writer.start()
    go.set()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 40
    found = verify(audit)
    assert (found.lines, found.broken) == (400, "")
    assert (len(audit.files()) > 3) == (max_size is not None)


def test_each_line_has_the_hash_of_the_one_before(tmp_path: Path) -> None:
    audit = log(tmp_path)
    audit.write("start", {"session": "a"})
    audit.write("end", {"session": "a"})
    [path] = audit.files()
    first, second = Path(path).read_bytes().splitlines()
    assert json.loads(first)["prev"] == FIRST
    assert json.loads(second)["prev"] == hash_of(first)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(audit.directory).st_mode & 0o777 == 0o700


def test_a_torn_last_line_is_dropped_and_the_chain_goes_on(tmp_path: Path) -> None:
    audit = log(tmp_path)
    audit.write("start", {})
    [path] = audit.files()
    with open(path, "ab") as file:
        file.write(b'{"time": "2026-')
    assert verify(audit) == Verified(lines=1, files=1)
    audit.write("end", {})
    assert verify(audit) == Verified(lines=2, files=1)
    assert len(Path(path).read_bytes().splitlines()) == 2


def test_a_line_that_lacks_only_its_end_is_no_line(tmp_path: Path) -> None:
    audit = log(tmp_path)
    audit.write("start", {})
    audit.write("end", {})
    path = Path(audit.files()[0])
    path.write_bytes(path.read_bytes()[:-1])
    audit.write("start", {})
    assert verify(audit) == Verified(lines=2, files=1)


def test_a_new_day_goes_on_with_the_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = log(tmp_path)
    for days in (0, 1, 2):
        at(monkeypatch, NOON + days * DAY)
        audit.write("start", {})
        audit.write("end", {})
    assert names(audit) == ["2023-11-14.node.jsonl", "2023-11-15.node.jsonl", "2023-11-16.node.jsonl"]
    assert verify(audit) == Verified(lines=6, files=3)
    os.unlink(audit.files()[1])
    broken = verify(audit)
    assert (broken.broken, broken.why) == (f"{audit.files()[1]}:1", "does not follow the line before it")


def test_who_finds_the_new_days_file_empty_goes_on_from_yesterday(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process has made it, and is not yet at its first line."""
    audit = log(tmp_path)
    at(monkeypatch, NOON)
    audit.write("start", {})
    at(monkeypatch, NOON + DAY)
    (tmp_path / "audit" / "2023-11-15.node.jsonl").touch()
    audit.write("end", {})
    assert verify(audit) == Verified(lines=2, files=2)


def test_midnight_while_waiting_for_the_lock_moves_the_line_to_the_new_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = log(tmp_path)
    at(monkeypatch, NOON)
    audit.write("start", {})
    really_lock = module.lock

    def slow_lock(handle: int) -> bool:
        at(monkeypatch, NOON + DAY)
        return really_lock(handle)

    monkeypatch.setattr(module, "lock", slow_lock)
    audit.write("end", {})
    assert names(audit) == ["2023-11-14.node.jsonl", "2023-11-15.node.jsonl"]
    assert verify(audit) == Verified(lines=2, files=2)


def test_a_file_that_was_set_aside_while_waiting_is_not_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, NOON)
    audit = log(tmp_path)
    audit.write("start", {})
    really_lock = module.lock

    def slow_lock(handle: int) -> bool:
        monkeypatch.setattr(module, "lock", really_lock)
        os.rename(audit.files()[0], audit.files()[0].replace(".jsonl", "+1.jsonl"))
        log(tmp_path).write("start", {})
        return really_lock(handle)

    monkeypatch.setattr(module, "lock", slow_lock)
    audit.write("end", {})
    assert names(audit) == ["2023-11-14.node+1.jsonl", "2023-11-14.node.jsonl"]
    assert verify(audit) == Verified(lines=3, files=2)


def test_old_files_go_and_the_rest_is_still_a_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = log(tmp_path, keep_days=2)
    for days in range(6):
        at(monkeypatch, NOON + days * DAY)
        audit.write("start", {})
    assert names(audit) == ["2023-11-17.node.jsonl", "2023-11-18.node.jsonl", "2023-11-19.node.jsonl"]
    assert verify(audit) == Verified(lines=3, files=3)


def test_the_log_stays_within_its_room_on_a_single_day(tmp_path: Path) -> None:
    audit = log(tmp_path, max_size=16_000)
    for _ in range(400):
        audit.write("start", {"command": ["x" * 100]})
    sizes = [os.path.getsize(path) for path in audit.files()]
    assert sum(sizes) <= 16_000 + 2_500  # the file that grows is an eighth of it
    assert sum(sizes) > 10_000
    assert verify(audit) == Verified(lines=verify(audit).lines, files=len(sizes))


def test_the_files_of_another_host_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, own = log(tmp_path, host="node.cluster"), log(tmp_path, keep_days=0)
    at(monkeypatch, NOON)
    other.write("start", {})
    at(monkeypatch, NOON + 9 * DAY)
    own.write("start", {})
    assert [names(own), names(other)] == [["2023-11-23.node.jsonl"], ["2023-11-14.node.cluster.jsonl"]]
    assert json.loads(Path(own.files()[0]).read_text())["prev"] == FIRST


def test_a_lock_that_is_never_given_back_leads_to_a_chain_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    audit = log(tmp_path)
    audit.write("start", {})
    holder = os.open(audit.files()[0], os.O_RDWR)
    assert module.lock(holder)
    assert [audit.write("start", {}), audit.write("end", {})] == ["", ""]
    os.close(holder)
    assert [os.path.basename(path).partition("~")[2] for path in audit.loose_files()] == [f"{os.getpid()}.jsonl"]
    assert verify(audit) == Verified(lines=3, files=2)


def test_a_log_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, NOON)
    audit = log(tmp_path)
    target = tmp_path / "bashrc"
    target.write_text("# mine\n")
    (tmp_path / "audit").mkdir()
    (tmp_path / "audit" / "2023-11-14.node.jsonl").symlink_to(target)
    assert "cannot be written (Too many levels of symbolic links)" in audit.write("start", {})
    assert target.read_text() == "# mine\n"


def test_a_directory_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file in its place")
    assert "the audit log cannot be written" in log(tmp_path).write("start", {})


def test_an_overlong_event_is_shortened(tmp_path: Path) -> None:
    audit = log(tmp_path)
    audit.write("start", {"command": ["\\" * 200_000]})
    audit.write("end", {})
    line = Path(audit.files()[0]).read_bytes().splitlines()[0]
    assert len(line) < module.LONGEST_LINE
    assert "shortened" in json.loads(line)
    assert verify(audit) == Verified(lines=2, files=1)


def test_no_log_is_written_where_it_is_switched_off(tmp_path: Path) -> None:
    audit = Audit(Log(directory=str(tmp_path / "audit"), host="node", enabled=False, keep_days=None, max_size=None))
    assert audit.write("start", {}) == ""
    assert not (tmp_path / "audit").exists()


SMALL_DISK = "mkdir -p $home/.local/state; mount -t tmpfs -o size=64k,mode=700,uid=$uid,gid=$gid none $home/.local/state"


def test_a_full_disk_warns_and_the_command_runs(jail: Jail) -> None:
    control = run_on_changed_machine(jail, SMALL_DISK, "--quiet", "--", "echo", "ran")
    assert (control.code, control.out, control.err) == (0, "ran\n", "")
    fill = f"{SMALL_DISK}; head -c 1M /dev/zero > $home/.local/state/full 2> /dev/null || true"
    full = run_on_changed_machine(jail, fill, "--quiet", "--", "echo", "ran")
    assert (full.code, full.out) == (0, "ran\n")
    assert "the audit log cannot be written (No space left on device)" in full.err


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = log(tmp_path)
    audit.write("start", {})
    before = Path(audit.files()[0]).read_bytes()
    really_write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: really_write(handle, data[:20]))
    assert "No space left" in audit.write("end", {})
    monkeypatch.undo()
    assert Path(audit.files()[0]).read_bytes() == before
    audit.write("end", {})
    assert verify(audit) == Verified(lines=2, files=1)
