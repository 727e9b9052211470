"""Connections become lines of the log, and a jail that makes very many leaves room for those of others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_sandbox.launcher.audit import Audit, Log
from agent_sandbox.launcher.proxy import journal as journals
from agent_sandbox.launcher.proxy.entry import REFUSED, Entry
from agent_sandbox.launcher.proxy.journal import Journal
from agent_sandbox.launcher.share import PART

ROOM = 4 << 20


def entry(number: int) -> Entry:
    host = f"{number}.{'a' * 60}.{'b' * 60}.{'c' * 60}.example.org"
    return Entry(protocol="connect", host=host, port=443, verdict=REFUSED, rule=f"network.block {host}", why=f"{host} is refused" * 2)


def lines(directory: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(directory.iterdir()) for line in file.read_text().splitlines()]


def test_a_patient_jail_does_not_wash_older_lines_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten connections a second for half an hour: never too many at once, and more than the log has room for."""
    clock = [1000.0]
    monkeypatch.setattr(journals.time, "monotonic", lambda: clock[0])
    audit = Audit(Log(directory=str(tmp_path), host="here", enabled=True, keep_days=90, max_size=ROOM))
    audit.write("start", {"session": "an older one"})
    journal = Journal(audit, "ours")
    asked = 20_000
    for number in range(asked):
        clock[0] += 0.1
        journal.note(entry(number))
    journal.close()
    found = lines(tmp_path)
    assert found[0]["session"] == "an older one"  # it is still there
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert ROOM / PART / 2 < size < ROOM / PART * 1.5
    listed = [one for one in found if one.get("verdict") == REFUSED]
    left_out = sum(int(str(one["connections"])) for one in found if one.get("verdict") == "left out")
    assert len(listed) > 50 and len(listed) + left_out == asked  # none is forgotten


def test_an_ordinary_session_has_every_line(tmp_path: Path) -> None:
    journal = Journal(Audit(Log(directory=str(tmp_path), host="here", enabled=True, keep_days=90, max_size=64 << 20)), "ours")
    for number in range(1500):
        journal.note(entry(number))
    journal.close()
    assert [one["host"] for one in lines(tmp_path)] == [entry(number).host for number in range(1500)]
