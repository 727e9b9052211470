"""`agent-sandbox audit show | verify`, over the log that real launches wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.machines.jail import Jail
from tests.machines.needs import need_root


@pytest.fixture
def lines(jail: Jail) -> Path:
    """The log after two launches, one of which was refused. Only where the home is the suite's own."""
    need_root()
    assert jail.run("sh", "-c", "exit 3").code == 3
    assert jail.run("true", cwd=jail.user.home).code == 125
    [path] = (jail.user.home / ".local/state/agent-sandbox/audit").iterdir()
    return path


def test_show_tells_start_end_and_refusal_newest_last(jail: Jail, lines: Path) -> None:
    shown = jail.ask("audit", "show")
    rows = shown.out.splitlines()
    assert [row.split()[:1] for row in rows[:1]] == [["TIME"]]
    assert [row.split()[2] for row in rows[1:]] == ["start", "end", "refused"]
    assert "sh -c 'exit 3' · bwrap" in rows[1]
    assert "exit 3" in rows[2]
    assert "cannot be the project" in rows[3]


def test_show_takes_the_last_lines_and_one_session(jail: Jail, lines: Path) -> None:
    events = [json.loads(line) for line in jail.ask("audit", "show", "--json").out.splitlines()]
    assert [event["event"] for event in events] == ["start", "end", "refused"]
    assert [json.loads(line) for line in jail.ask("audit", "show", "--json", "-n", "1").out.splitlines()] == events[-1:]
    session = events[0]["session"]
    chosen = jail.ask("--json", "audit", "show", "--session", session).out.splitlines()
    assert [json.loads(line)["event"] for line in chosen] == ["start", "end"]
    assert jail.ask("audit", "show", "--session", "none").out == "nothing is in the audit log about this session\n"


def test_an_intact_log_is_counted(jail: Jail, lines: Path) -> None:
    found = jail.ask("audit", "verify")
    assert (found.code, found.out) == (0, "intact: 3 lines in 1 files\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [(b'"code": 3', b'"code": 0'), (b'"event": "end"', b'"event": "fin"')],
    ids=["another status", "another event"],
)
def test_a_changed_line_breaks_the_chain_at_the_next(jail: Jail, lines: Path, old: bytes, new: bytes) -> None:
    text = lines.read_bytes()
    assert old in text
    lines.write_bytes(text.replace(old, new))
    found = jail.ask("audit", "verify")
    assert found.code == 1
    assert found.out.startswith(f"{lines}:3: does not follow the line before it")


def test_a_line_that_was_taken_out_breaks_the_chain(jail: Jail, lines: Path) -> None:
    text = lines.read_bytes().splitlines(keepends=True)
    lines.write_bytes(text[0] + text[2])
    found = jail.ask("audit", "verify", "--json")
    assert found.code == 1
    assert json.loads(found.out) == {
        "intact": False, "lines": 1, "files": 1, "broken": f"{lines}:2", "why": "does not follow the line before it",
    }  # fmt: skip


def test_what_is_no_line_of_the_log_breaks_the_chain(jail: Jail, lines: Path) -> None:
    lines.write_bytes(b"\xff\x00 not json\n" + lines.read_bytes())
    found = jail.ask("audit", "verify")
    assert (found.code, found.out.startswith(f"{lines}:1: not a line of this log")) == (1, True)


def test_an_empty_log_is_no_error(jail: Jail) -> None:
    need_root()
    assert jail.ask("audit", "show").out == "nothing is in the audit log\n"
    assert jail.ask("audit", "verify").out == "intact: 0 lines in 0 files\n"


@pytest.mark.parametrize("words", [[], ["list"], ["show", "-n", "x"], ["show", "-n"], ["verify", "now"]], ids=" ".join)
def test_a_wrong_word_gets_the_usage(jail: Jail, words: list[str]) -> None:
    asked = jail.ask("audit", *words)
    assert (asked.code, asked.out) == (125, "")
    assert "usage: agent-sandbox audit show" in asked.err


def test_the_log_is_neither_seen_nor_written_inside(jail: Jail, lines: Path) -> None:
    before = lines.read_bytes()
    assert jail.outside("cat", lines).code == 0
    for mode in ("tmpwrite", "write"):
        inside = jail.run("sh", "-c", 'echo ran; cat "$1"; echo x >> "$1"', "sh", lines, options=["--quiet", "--home", mode])
        assert inside.out == "ran\n"
        assert str(lines) in inside.err
    assert lines.read_bytes().startswith(before)
    assert jail.ask("audit", "verify").code == 0
