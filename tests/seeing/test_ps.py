"""`agent-sandbox ps`: what runs, and nothing that ended."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_sandbox.launcher.seeing.ps import shown_age
from tests.machines.jail import Jail
from tests.machines.needs import need_root


@pytest.fixture
def running(jail: Jail) -> Iterator[subprocess.Popen[str]]:
    need_root()
    process = jail.start("sh", "-c", "echo up; exec sleep 60", stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    yield process
    process.terminate()
    process.wait(10)
    process.stdout.close()


def test_a_running_session_is_listed_with_its_facts(jail: Jail, running: subprocess.Popen[str]) -> None:
    [found] = json.loads(jail.ask("ps", "--json").out)
    assert {name: found[name] for name in ("pid", "backend", "project", "command")} == {
        "pid": running.pid, "backend": "bwrap", "project": str(jail.project), "command": ["sh", "-c", "echo up; exec sleep 60"],
    }  # fmt: skip
    head, row = jail.ask("ps").out.splitlines()
    assert head.split() == ["SESSION", "PID", "AGE", "BACKEND", "PROJECT", "COMMAND"]
    assert row.startswith(found["id"])
    assert row.endswith("sh -c 'echo up; exec sleep 60'")
    events = [json.loads(line) for line in jail.ask("audit", "show", "--json").out.splitlines()]
    assert [event["session"] for event in events] == [found["id"]]


def test_a_session_that_was_killed_is_not_listed(jail: Jail, running: subprocess.Popen[str]) -> None:
    assert len(jail.ask("ps").out.splitlines()) == 2
    running.kill()
    running.wait()
    deadline = time.monotonic() + 10
    while jail.ask("ps").out != "no session is running\n":
        assert time.monotonic() < deadline


def test_nothing_running_says_so(jail: Jail) -> None:
    need_root()
    assert jail.ask("ps").out == "no session is running\n"
    assert json.loads(jail.ask("--json", "ps").out) == []


def test_a_directory_that_another_process_left_is_not_a_session(jail: Jail) -> None:
    need_root()
    base = f"/tmp/agent-sandbox-{jail.user.uid}"
    left = f"{base}/{os.getpid()}-1-deadbeef"
    jail.outside("mkdir", "-p", "-m", "700", base)
    jail.outside("mkdir", "-m", "700", left)
    jail.write(Path(left, "session.json"), '{"id": "left", "pid": 1}')
    assert jail.ask("ps").out == "no session is running\n"
    assert jail.run("true").code == 0
    assert not os.path.exists(left)


def test_the_age_is_short() -> None:
    assert [shown_age(seconds) for seconds in (-1, 0.4, 61, 7200, 200_000)] == ["0s", "0s", "1m", "2h", "2d"]
