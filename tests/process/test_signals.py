"""What is sent to the launcher reaches the command, at any moment; what the command inherits is what it would without us."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.jail import Jail
from tests.process.shell import alive, generations, started, until

TRAP = 'trap "echo caught; exit 9" {name}; echo running; while :; do sleep 0.05; done'
PIPE = subprocess.PIPE


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == f"{line}\n"


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT", "QUIT", "USR1", "USR2", "ALRM"])
def test_a_signal_to_the_launcher_runs_the_commands_trap(jail: Jail, name: str) -> None:
    with started(jail, "bash", "-c", TRAP.format(name=name)) as process:
        wait_for(process, "running")
        process.send_signal(signal.Signals[f"SIG{name}"])
        wait_for(process, "caught")
        assert process.wait(10) == 9


def test_a_signal_to_the_whole_group_runs_the_commands_trap(jail: Jail) -> None:
    with started(jail, "bash", "-c", TRAP.format(name="TERM")) as process:
        wait_for(process, "running")
        os.killpg(process.pid, signal.SIGTERM)
        wait_for(process, "caught")
        assert process.wait(10) == 9


@pytest.mark.parametrize("name", ["TERM", "HUP", "USR1", "KILL"])
def test_a_command_without_a_trap_ends_with_128_and_the_signal(jail: Jail, name: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    done = jail.run("sh", "-c", f"kill -{name} $$")
    assert done.code == 128 + number


def test_an_alarm_that_was_set_before_us_reaches_the_command(jail: Jail) -> None:
    argv = ["/usr/bin/python3", "-c", "import os, signal, sys; signal.alarm(1); os.execv(sys.argv[1], sys.argv[1:])"]
    began = time.monotonic()
    done = users.run_as(jail.user, [*argv, jail.program, "--quiet", "--", "sleep", "20"], cwd=jail.project)
    assert (done.returncode, time.monotonic() - began < 10) == (128 + signal.SIGALRM, True)


def test_timeout_ends_it(jail: Jail) -> None:
    began = time.monotonic()
    done = jail.outside("timeout", "1", str(jail.program), "--quiet", "--", "sleep", "20")
    assert (done.code, time.monotonic() - began < 10) == (124, True)


def test_sigterm_at_any_moment_of_the_start_ends_it(jail: Jail) -> None:
    for milliseconds in range(0, 80, 2):
        with started(jail, "sleep", "100") as process:
            time.sleep(milliseconds / 1000)
            process.terminate()
            assert process.wait(10) in (143, -signal.SIGTERM), milliseconds
    assert until(lambda: not alive_in_jails(jail)), alive_in_jails(jail)


def test_sigterm_while_a_process_is_becoming_the_command_ends_it(jail: Jail, backend: str) -> None:
    """From its first moment, when it is still ours and ignores what the group gets."""
    most = 3 if backend == "landlock" else 4  # which has one process of its own less
    for _ in range(20):
        with started(jail, "sleep", "100") as process:
            assert until(lambda process=process: generations(process.pid) == most, pause=0)
            process.terminate()
            assert process.wait(10) == 143


def test_hangup_while_a_nohup_jail_is_being_built_does_not_end_it(jail: Jail) -> None:
    for milliseconds in (5, 15, 20, 25, 30, 35):
        argv = ["/usr/bin/nohup", jail.program, "--quiet", "--", "sh", "-c", "sleep 0.2; echo done"]
        with users.start_as(jail.user, argv, cwd=jail.project, stdout=PIPE, stderr=PIPE, new_session=True) as process:
            assert until(lambda: ignores(process.pid, signal.SIGHUP))
            time.sleep(milliseconds / 1000)
            process.send_signal(signal.SIGHUP)
            assert process.communicate(timeout=10)[0] == "done\n"


def ignores(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(re.findall(r"^SigIgn:\t(\w+)$", status, re.MULTILINE)[0], 16) >> number - 1 & 1)


def test_a_stopped_launcher_still_reports_the_code(jail: Jail) -> None:
    with started(jail, "sh", "-c", "echo running; read line; exit 6", stdin=PIPE) as process:
        wait_for(process, "running")
        process.send_signal(signal.SIGSTOP)
        assert until(lambda: users.state(process.pid) == "T")
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        assert process.wait(10) == 6


def test_dispositions_and_masks_inside_are_those_outside(jail: Jail) -> None:
    look = ("grep", "-E", "^Sig(Ign|Blk|Cgt):", "/proc/self/status")
    inside = jail.run(*look)
    assert inside.code == 0
    assert inside.out == jail.outside(*look).out


@pytest.mark.parametrize("name", ["INT", "HUP", "QUIT", "TERM", "USR1", "TSTP"])
def test_what_the_caller_ignores_is_ignored_inside(jail: Jail, name: str) -> None:
    script = f'trap "" {name}; exec "$@"'
    look = ("grep", "^SigIgn:", "/proc/self/status")
    outside = jail.outside("sh", "-c", script, "sh", *look)
    inside = jail.outside("sh", "-c", script, "sh", str(jail.program), "--quiet", "--", *look)
    assert inside.out == outside.out
    assert int(outside.out.split()[1], 16) & 1 << signal.Signals[f"SIG{name}"] - 1  # whatever else the runner was started with


def test_a_broken_pipe_kills_inside_as_it_does_outside(jail: Jail) -> None:
    script = 'set -o pipefail; {} yes | head -1'
    began = time.monotonic()
    outside = jail.outside("bash", "-c", script.format(""))
    inside = jail.outside("bash", "-c", script.format(f"'{jail.program}' --quiet --"))
    assert (inside.code, inside.out) == (outside.code, outside.out) == (141, "y\n")
    assert time.monotonic() - began < 10


def test_umask_priority_and_limits_are_the_callers(jail: Jail) -> None:
    look = "umask; nice; ulimit -a | grep -v 'user processes'"
    script = f"umask 027; ulimit -n 512; ulimit -c 0; ulimit -s 4096; exec nice -n 7 \"$@\" bash -c '{look}'"
    outside = jail.outside("bash", "-c", script, "sh", "env")
    inside = jail.outside("bash", "-c", script, "sh", str(jail.program), "--quiet", "--")
    assert outside.out.splitlines()[:2] == ["0027", "7"]
    assert inside.out == outside.out


def alive_in_jails(jail: Jail) -> list[tuple[int, str]]:
    return [one for one in alive(jail.user.uid) if "agent-sandbox" in one[1] or "bwrap" in one[1] or "sleep 100" in one[1]]
