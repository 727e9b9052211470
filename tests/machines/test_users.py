"""The throw-away accounts come, work and go."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.needs import need_root
from tests.machines.users import account, current_user, run_as, start_as, sweep

ROOT = Path(__file__).parents[2]


def test_a_program_runs_as_the_account_in_its_home_and_with_a_clean_environment() -> None:
    with account() as user:
        script = 'id -u; id -g; pwd; cat; echo "$HOME $X ${PYTEST_VERSION-clean}"; exit 7'
        done = run_as(user, ["/bin/sh", "-c", script], env={"X": "y"}, input="in\n")
        expected = f"{user.uid}\n{user.gid}\n{user.home}\nin\n{user.home} y clean\n"
        assert (done.returncode, done.stdout, done.stderr) == (7, expected, "")


def test_an_account_goes_with_its_home_and_its_processes() -> None:
    need_root()
    with account() as user:
        sleeper = start_as(user, ["/bin/sleep", "1000"], new_session=True)
        assert users.owner(sleeper.pid) == user.uid
        assert user.home.is_dir()
    assert sleeper.wait(10) == -9
    assert not user.home.exists()
    with pytest.raises(KeyError):
        pwd.getpwnam(user.name)


def test_accounts_made_at_once_are_all_made_and_differ() -> None:
    need_root()
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda _: users.create(), range(8)))
        list(pool.map(users.remove, made))
    assert len({user.uid for user in made}) == 8
    assert not [user for user in made if user.home.exists()]


def test_the_account_of_a_killed_run_is_swept_and_that_of_a_live_one_stays() -> None:
    need_root()
    make = "from tests.machines import users; print(users.create().name, flush=True); import time; time.sleep(1000)"
    maker = subprocess.Popen([sys.executable, "-c", make], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    with maker:
        name = maker.stdout.readline().strip()
        sweep()
        assert pwd.getpwnam(name)
        maker.kill()
    with account() as mine:
        sweep()
        assert pwd.getpwnam(mine.name)
    with pytest.raises(KeyError):
        pwd.getpwnam(name)


def test_a_time_out_ends_what_the_program_started() -> None:
    marker = f"{1000 + time.time() % 1:.9f}"
    with pytest.raises(subprocess.TimeoutExpired):
        run_as(current_user(), ["/bin/sh", "-c", f"sleep {marker} & sleep {marker}"], timeout=0.5)
    time.sleep(0.1)
    commands = [Path(f"/proc/{pid}/cmdline") for pid in users.processes() if users.state(pid) != "Z"]
    assert not [command for command in commands if command.exists() and marker.encode() in command.read_bytes()]


def test_become_changes_every_identity() -> None:
    with account() as user:
        printed = subprocess.run(["/usr/bin/id", "-u"], preexec_fn=users.become(user), capture_output=True, text=True)
        assert printed.stdout == f"{user.uid}\n"
    assert os.getuid() == os.geteuid()
