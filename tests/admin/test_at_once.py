"""Several botadm at once, and one that is killed in the middle: what is left is a state that one of them wanted."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.machines.site import BOTADM, Machine

SLOW = '#!/bin/sh\ntouch /tmp/started\nsleep 1\nREAL "$@"\n'


def start(site: Machine, *words: str) -> subprocess.Popen[str]:
    return site.start("/usr/bin/env", "SUDO_USER=alice", f"SUDO_UID={site.uid('alice')}", BOTADM, *words)


def strike(site: Machine, name: str, *words: str) -> subprocess.Popen[str]:
    """The command gets a signal while the program that was made slow is at work."""
    process = start(site, *words)
    deadline = time.monotonic() + 20
    while not (site.root / "tmp/started").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    site.run("/bin/kill", f"-{name}", site.run("/usr/bin/pgrep", "-f", "-o", f"botadm {words[0]} {words[1]}").stdout.split()[0])
    return process


def test_two_that_create_the_same_bot_make_one(site: Machine) -> None:
    site.must("init")
    both = [start(site, "create", "clio") for _ in range(4)]
    said = sorted(process.communicate(timeout=60)[0].splitlines()[0] for process in both)
    assert [process.returncode for process in both] == [0, 0, 0, 0]
    assert said == ["create clio: done, 11 steps", *["create clio: nothing to do"] * 3]
    assert site.must("status", "clio").returncode == 0
    assert (site.root / "etc/passwd").read_text().count("\nclio:") == 1


def test_create_and_destroy_at_once_leave_a_whole_bot_or_none(bots: Machine) -> None:
    for words in (("destroy", "clio", "--force"), ("create", "clio")) * 3:
        start(bots, *words)
    deadline = time.monotonic() + 60
    while bots.run("/usr/bin/pgrep", "-f", "botadm (create|destroy)").returncode == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    if bots.uid("clio") >= 0:
        assert bots.must("status", "clio").returncode == 0
    else:
        assert "there is no bot" in bots.botadm("status", "clio").stderr
        assert not (bots.root / "var/bot/clio").exists() and not (bots.root / "etc/sudoers.d/bot-clio").exists()


@pytest.mark.parametrize("tool", ["/usr/sbin/groupadd", "/usr/sbin/useradd", "/usr/bin/gpasswd", "/usr/sbin/visudo"])
def test_a_killed_create_and_the_same_again(site: Machine, tool: str) -> None:
    """Killed while a program of the system's works, which goes on: the next one waits for it, takes back, and does it all."""
    site.must("init")
    site.replace_program(tool, SLOW)
    strike(site, "KILL", "create", "clio").wait(10)
    again = site.must("create", "clio")
    assert "«create clio» was interrupted" in again.stderr
    assert again.stdout.startswith("create clio: done, 11 steps")
    assert site.must("status", "clio").returncode == 0
    assert site.run(BOTADM, "run", "clio", "id", "-un", user="alice").stdout == "clio\n"


def test_a_killed_destroy_and_the_same_again(bots: Machine) -> None:
    bots.replace_program("/usr/sbin/groupdel", SLOW)
    strike(bots, "KILL", "destroy", "clio", "--force").wait(10)
    assert bots.uid("clio") == -1  # half gone
    assert "was interrupted" in bots.must("destroy", "clio", "--force").stderr
    assert bots.uid("clio") == -1 and not (bots.root / "var/bot/clio").exists() and not (bots.root / "etc/sudoers.d/bot-clio").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_being_asked_to_stop_takes_back(site: Machine, number: signal.Signals) -> None:
    site.must("init")
    before = site.state("/var/bot", "/var/lib/botadm/bots")
    site.replace_program("/usr/sbin/useradd", SLOW)
    first = strike(site, number.name.removeprefix("SIG"), "create", "clio")
    _, err = first.communicate(timeout=20)
    assert first.returncode == 1 and f"stopped by {number.name}" in err and "taken back: add the user clio; add the group clio" in err
    assert site.state("/var/bot", "/var/lib/botadm/bots") == before


def test_other_programs_that_change_accounts_do_not_get_in_the_way(site: Machine) -> None:
    """useradd of somebody else's holds and releases the lock of the account files all the time."""
    site.must("init")
    noise = site.start("/bin/bash", "-c", "for n in $(seq 40); do useradd person$n; done")
    for name in ("clio", "dora", "erin"):
        site.must("create", name)
        site.must("destroy", name, "--force")
    assert noise.wait(60) == 0
    people = [line for line in (site.root / "etc/passwd").read_text().splitlines() if line.startswith("person")]
    assert len(people) == 40
    assert site.run("/usr/sbin/pwck", "-qr").returncode in (0, 2)
