"""Signals that Slurm sends to a job reach the agent's script, once, and the job ends as it would have without us."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.escapes.backends import BACKENDS
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for
from tests.slurm.envelopes import Envelopes, text_of

# In Python, since a handler is run at once there: a shell waits for its child, and two signals become one meanwhile.
TRAPS = """#!/usr/bin/python3 -u
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: print("usr1"))
signal.signal(signal.SIGTERM, lambda *_: (print("term"), time.sleep(0.3), sys.exit(5)))
print("ready")
for _ in range(25): time.sleep(0.1)
sys.exit(7)
"""
NO_TRAPS = "#!/bin/bash\necho ready\nfor i in {1..40}; do sleep 0.1; done\nexit 7\n"


@pytest.fixture
def envelopes(slurm: Slurm, member: users.TestUser, jail: Jail, backend: str) -> Iterator[Envelopes]:
    given = Envelopes(slurm=slurm, jail=jail, settings={"sandbox.backend": backend} if backend else {})
    yield given
    given.settle()


def ended_by(envelopes: Envelopes, job: int, *words: str) -> tuple[str, str, list[str]]:
    """State, exit code and what the script itself said, after scancel with these words."""
    wait_for(lambda: "ready\n" in text_of(envelopes.jail.project / f"slurm-{job}.out"), "the script")
    assert envelopes.slurm.run(envelopes.jail.user, "scancel", *words, str(job)).returncode == 0
    ended = envelopes.wait(job)
    said = [line for line in ended.out.splitlines() if line in ("ready", "usr1", "term")]
    return ended.shown["JobState"], ended.code, said


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize(
    ("words", "end"),
    [
        (("--signal=USR1", "--batch"), ("FAILED", "7:0", ["ready", "usr1"])),
        (("--signal=USR1", "--full"), ("FAILED", "7:0", ["ready", "usr1"])),
        (("--signal=USR1",), ("FAILED", "7:0", ["ready"])),
        (("--signal=TERM", "--batch"), ("FAILED", "5:0", ["ready", "term"])),
        ((), ("CANCELLED", "5:0", ["ready", "term"])),
    ],
    ids=["batch", "full", "steps", "term", "cancel"],
)
def test_a_script_with_traps_hears_each_signal_once(envelopes: Envelopes, words: tuple[str, ...], end: tuple[str, str, list[str]]) -> None:
    assert ended_by(envelopes, envelopes.directly(TRAPS), *words) == end
    assert ended_by(envelopes, envelopes.submit(TRAPS), *words) == end


@pytest.mark.parametrize(("words", "number"), [(("--signal=USR1", "--batch"), signal.SIGUSR1), ((), signal.SIGTERM)], ids=["usr1", "cancel"])
def test_a_script_without_traps_dies_of_it_in_slurms_eyes(envelopes: Envelopes, words: tuple[str, ...], number: int) -> None:
    end = ("CANCELLED" if number == signal.SIGTERM else "FAILED", f"0:{number}", ["ready"])
    assert ended_by(envelopes, envelopes.directly(NO_TRAPS), *words) == end
    assert ended_by(envelopes, envelopes.submit(NO_TRAPS), *words) == end


def test_a_warning_before_the_time_limit_comes_to_the_script(envelopes: Envelopes) -> None:
    """Slurm looks at time limits now and then: the signal comes between 60 s before it is due and then."""
    script = "#!/bin/bash\ntrap 'echo warned; exit 4' USR1\necho ready\nfor i in {1..300}; do sleep 0.1; done\n"
    job = envelopes.submit(script, "--time=1", "--signal=B:USR1@59")
    wait_for(lambda: envelopes.slurm.job(job)["JobState"] == "FAILED", "the warning", 60)
    ended = envelopes.wait(job)
    assert (ended.code, ended.out) == ("4:0", "ready\nwarned\n")


def test_a_job_that_is_killed_leaves_no_process(envelopes: Envelopes) -> None:
    job = envelopes.submit("#!/bin/bash\ntrap '' TERM\nsetsid sleep 300 &\necho ready\nwait\n")
    wait_for(lambda: "ready\n" in text_of(envelopes.jail.project / f"slurm-{job}.out"), "the script")
    user = envelopes.jail.user
    assert [pid for pid in users.processes() if users.owner(pid) == user.uid]  # it is there, and ours to be seen
    envelopes.slurm.run(user, "scancel", "--signal=KILL", "--full", str(job))
    envelopes.wait(job)
    envelopes.settle()
