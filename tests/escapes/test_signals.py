"""A jail's process group is the caller's, for Ctrl-C to work: what is sent to the group from inside must stay inside."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.escapes.inside import PYTHON
from tests.escapes.test_left_behind import gone
from tests.machines import users
from tests.machines.jail import Jail

SEND = """
import os, signal, sys, time
number, how = int(sys.argv[1]), sys.argv[2]
if how == "kill":
    os.kill(0, number)
elif how == "killpg":
    os.killpg(os.getpgrp(), number)
elif how == "setown":  # the kernel sends for us when the pipe becomes ready
    import fcntl
    signal.signal(signal.SIGIO, signal.SIG_IGN)
    r, w = os.pipe()
    fcntl.fcntl(r, fcntl.F_SETOWN, 0); fcntl.fcntl(r, 10, number); fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(w, b"x")
time.sleep(0.3)
"""


def in_a_script(jail: Jail, *command: str | Path, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """A shell script that starts the jail and goes on: script and jail are one process group, as in a Makefile or a job."""
    words = " ".join(f"'{word}'" for word in (jail.program, "--quiet", *options, "--", *command))
    return users.run_as(jail.user, ["bash", "-c", f"{words}; sleep 0.2; echo script goes on"], cwd=jail.project, timeout=30)


@pytest.fixture
def sender(jail: Jail) -> Path:
    return jail.write(jail.project / "send.py", SEND)


@pytest.mark.parametrize("how", ["kill", "killpg", "setown"])
@pytest.mark.parametrize("number", [9, 15, 1, 10])
def test_a_signal_to_the_group_does_not_reach_the_callers_script(jail: Jail, sender: Path, number: int, how: str) -> None:
    assert "goes on" in in_a_script(jail, PYTHON, "-I", sender, "0", "none").stdout  # control: the script itself is fine
    done = in_a_script(jail, PYTHON, "-I", sender, str(number), how)
    assert done.stdout == "script goes on\n"


def test_a_killed_group_leaves_no_process_and_no_session(jail: Jail, home: Path, sender: Path) -> None:
    in_a_script(jail, PYTHON, "-I", sender, "9", "kill")
    assert gone(jail.user) == ([], [])


STOP = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for _ in range(80):
        open("alive", "w").write(str(time.time()))
        time.sleep(0.1)
    os._exit(0)
time.sleep(0.2)
os.kill(0, signal.SIGSTOP)
time.sleep(100)
"""


def test_stopping_the_group_does_not_stop_the_clock_of_the_time_limit(jail: Jail, home: Path) -> None:
    """The guard must not sleep while something in the jail, in a session of its own, goes on."""
    script = jail.write(jail.project / "stop.py", STOP)
    process = jail.start(
        PYTHON, "-I", script, options=["--quiet", "--limit", "wall_time=1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        process.wait(12)
        assert process.returncode == 124
        last = float((jail.project / "alive").read_text())
        time.sleep(0.3)
        assert float((jail.project / "alive").read_text()) == last
    finally:
        users.end_processes(jail.user.uid)
        process.communicate()


def test_no_process_outside_can_be_seen_or_signalled_by_number(jail: Jail, backend: str) -> None:
    """Seen it can be on Landlock (`pids`), but not looked into."""
    victim = users.start_as(jail.user, ["sleep", "100"])
    try:
        inside = jail.run("sh", "-c", f"kill -9 {victim.pid}; kill -9 -1; echo ran", options=["--quiet"])
        assert inside.out in ("ran\n", "")  # -1 may have ended the shell itself
        seen = "ls /proc/{}/cwd/; cat /proc/{}/environ /proc/{}/fd/0; readlink /proc/{}/exe" if backend == "landlock" else "ls -d /proc/{}"
        look = seen.replace("{}", str(victim.pid))
        assert jail.outside("sh", "-c", look).out != ""
        assert jail.run("sh", "-c", f"{look}; echo ran").out == "ran\n"
        assert victim.poll() is None
        assert jail.outside("kill", "-0", str(victim.pid)).code == 0  # control: outside the same user may
    finally:
        victim.kill()
        victim.wait()
