"""What jobs leave in the state directory goes when no run can need it, by what a real controller says of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agent_sandbox.chaperon import tidy
from agent_sandbox.chaperon.ledger import Ledger
from tests.machines import users
from tests.machines.slurm.cluster import Slurm
from tests.unit.chaperon.serving import orders_for

LONG_AGO = 2 * tidy.HOUR


class State:
    def __init__(self, slurm: Slurm, user: users.TestUser, top: Path) -> None:
        self.slurm, self.user, self.top = slurm, user, top
        self.ledger = Ledger(orders_for(top))
        self.jobs = top / "state/jobs/s1"

    def left(self, job: int | None, age: float = LONG_AGO, token: str = "") -> Path:
        """The variables of a submission; None = nothing came of it."""
        given = token or self.ledger.intend()
        if job is None:
            self.ledger.drop(given)
        elif not token:
            self.ledger.record(given, job, 1, "")
        return self.file(f"{given}.env", age)

    def file(self, name: str, age: float, text: str = "") -> Path:
        path = self.jobs / name
        self.jobs.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (time.time() - age,) * 2)
        return path

    def tidy(self, squeue: str = "/usr/bin/squeue") -> None:
        tidy.main(str(self.top / "state"), squeue, self.user.name, self.slurm.environment["SLURM_CONF"])


@pytest.fixture
def state(slurm: Slurm, member: users.TestUser, tmp_path: Path) -> State:
    return State(slurm, member, tmp_path)


def test_variables_stay_while_the_controller_knows_the_job_and_go_after_it(state: State) -> None:
    held = state.slurm.submit(state.user, "--hold", "--wrap=true", "--output=/dev/null", cwd=Path("/"))
    array = state.slurm.submit(state.user, "--hold", "--array=1-3", "--wrap=true", "--output=/dev/null", cwd=Path("/"))
    ended = state.slurm.submit(state.user, "--wrap=true", "--output=/dev/null", cwd=Path("/"))
    state.slurm.wait(ended)
    kept = [state.left(held), state.left(array), state.left(ended), state.left(99_000_000, age=60), state.left(5, token="other-host-1-1-1")]
    gone = [state.left(99_000_001), state.left(None), state.left(5, age=2 * tidy.ALL_KEPT, token="other-host-1-1-2")]
    state.tidy("/bin/false")  # nobody says anything: nothing goes
    assert [path for path in (*kept, *gone) if not path.exists()] == []
    state.tidy()
    state.slurm.run(state.user, "scancel", str(held), str(array))
    assert [path.name for path in kept if not path.exists()] == []
    assert [path.name for path in gone if path.exists()] == []


def test_logs_that_say_something_stay_longer(state: State) -> None:
    state.left(99_000_002)
    silent, spoken = state.file("99000002.log", LONG_AGO), state.file("99000003.log", LONG_AGO, "was not started")
    state.ledger.record(state.ledger.intend(), 99_000_003, 1, "")
    state.tidy()
    assert (silent.exists(), spoken.exists()) == (False, True)


def test_a_session_starts_it_once_in_a_while(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(os, "posix_spawn", lambda *words, **more: started.append(words))
    orders = orders_for(state.top)
    tidy.start_when_due(orders)
    assert started == []  # there is nothing
    state.left(5)
    for _ in range(2):
        tidy.start_when_due(orders)
    assert len(started) == 1


def test_a_host_whose_name_begins_with_ours_is_another(state: State) -> None:
    token = f"{os.uname().nodename}-2-1-1-1"
    kept, gone = state.left(5, token=token), state.left(99_000_004)
    state.ledger.record(token, 99_000_005, 1, "")
    state.tidy()
    assert (kept.exists(), gone.exists()) == (True, False)


def test_a_machine_without_a_process_left_is_no_reason_to_end(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: object, **more: object) -> None:
        raise BlockingIOError

    state.left(5)
    monkeypatch.setattr(os, "posix_spawn", fail)
    tidy.start_when_due(orders_for(state.top))
    assert (state.top / "state/tidied").exists()
