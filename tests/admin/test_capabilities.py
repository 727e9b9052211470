"""What a bot can and cannot do, each with the same act by somebody who can: without a jail, by its UID alone, and in one of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.site import BOTADM, LAUNCHER, Machine, machine

HOWS = ("alone", "bwrap", "landlock")

# what is tried; who can, or "" for root
ALLOWED = {
    "its own namespace, to write": "echo x > ~/mine && rm ~/mine",  # in a jail a throw-away one
    "the shared project, to write": "echo x > /home/alice/work/new && rm /home/alice/work/new",
    "the shared project, to read": "grep -q one /home/alice/work/file",
    "the system, to read": "test -r /etc/hostname && /usr/bin/python3 -c ''",
}
REFUSED = {
    "another bot's namespace, to enter": ("cd /var/bot/dora", "dora"),
    "another bot's namespace, to read": ("cat /var/bot/dora/secret", "dora"),
    "another bot's namespace, to write": ("echo x > /var/bot/dora/planted", "dora"),
    "another bot's processes": ("kill -0 $(cat /tmp/dora.pid)", "dora"),
    "the human's ssh key": ("cat /home/alice/.ssh/id_ed25519", "alice"),
    "the human's ssh directory": ("ls /home/alice/.ssh", "alice"),
    "the human's cloud keys": ("cat /home/alice/.aws/credentials", "alice"),
    "the human's home, to list": ("ls -A /home/alice | grep other", "alice"),
    "the human's home, to write": ("echo x > /home/alice/.bashrc", "alice"),
    "the human's other project": ("cat /home/alice/other/file", "alice"),
    "the human's processes' variables": ("cat /proc/$(cat /tmp/alice.pid)/environ | tr '\\0' '\\n' | grep -q hunter2", "alice"),
    "/usr/local": ("echo x > /usr/local/planted && rm /usr/local/planted", ""),
    "our own code": ("echo x >> /usr/local/bin/botadm && false || test -w /usr/local/bin/botadm", ""),
    "/var/bot itself": ("mkdir /var/bot/planted && rmdir /var/bot/planted", ""),
    "the records": ("ls /var/lib/botadm/journal", ""),
    "sudo's rules": ("cat /etc/sudoers.d/bot-clio", ""),
    "the shadow file": ("cat /etc/shadow", ""),
    "the device of a disk": ("test -w /dev/mem -o -w /proc/sys/kernel/hostname", ""),
}


@pytest.fixture(scope="module")
def world(local: Path) -> Iterator[Machine]:
    with machine(local) as site:
        site.add_person("alice")
        site.must("init")
        site.must("create", "clio")
        site.must("create", "dora")
        site.shell("mkdir .ssh .aws work other; echo key | tee .ssh/id_ed25519 .aws/credentials other/file", user="alice", cwd="/home/alice")
        site.shell("echo one > work/file; chmod -R a+rwX .ssh .aws other", user="alice", cwd="/home/alice")  # the home alone is closed
        site.must("share", "-r", "/home/alice/work")
        site.run(BOTADM, "run", "dora", "sh", "-c", "echo x > ~/secret", user="alice")
        site.shell("AWS_SECRET=hunter2 nohup sleep 600 >/dev/null 2>&1 & echo $! > /tmp/alice.pid", user="alice")
        site.shell("nohup setpriv --reuid dora --regid dora --clear-groups sleep 600 >/dev/null 2>&1 & echo $! > /tmp/dora.pid")
        yield site


def act(site: Machine, script: str, who: str, how: str = "alone") -> int:
    """Its exit status; 99 would be a script that never ran."""
    words = ("sh", "-c", f"({script}) >/dev/null 2>&1 && exit 0 || exit 3")
    if who not in ("clio", "dora"):
        return site.run("/bin/sh", *words[1:], user=who or "root").returncode
    if how == "alone":
        return site.run(BOTADM, "run", who, *words, user="alice").returncode
    return site.run(LAUNCHER, "--bot", who, "--quiet", "--backend", how, "--", *words, user="alice", cwd="/home/alice/work").returncode


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("what", ALLOWED)
def test_a_bot_can(world: Machine, what: str, how: str) -> None:
    assert act(world, ALLOWED[what], "clio", how) == 0


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("what", REFUSED)
def test_a_bot_cannot(world: Machine, what: str, how: str) -> None:
    script, who = REFUSED[what]
    assert act(world, script, who) == 0, f"the control: {who or 'root'} can"
    assert act(world, script, "clio", how) == 3


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("words", [("-n", "true"), ("-n", "-u", "dora", "true"), ("-n", "-u", "alice", "true"), ("-n", "-l")])
def test_a_bot_has_no_sudo(world: Machine, words: tuple[str, ...], how: str) -> None:
    start = (BOTADM, "run", "clio") if how == "alone" else (LAUNCHER, "--bot", "clio", "--quiet", "--backend", how, "--")
    done = world.run(*start, "sudo", *words, user="alice", cwd="/home/alice/work")
    assert done.returncode == 1 and "sudo" in done.stderr
    assert world.run("/usr/bin/sudo", "-n", "-u", "clio", "true", user="alice").returncode == 0  # the control


def test_nobody_logs_in_as_a_bot(world: Machine) -> None:
    assert "This account is currently not available" in world.run("/usr/bin/su", "-", "clio", "-c", "id").stdout
    line = next(line for line in (world.root / "etc/shadow").read_text().splitlines() if line.startswith("clio:"))
    assert line.split(":")[1] == "!"
