"""A failure at every step, and a kill -9 there: all is as before, and the message says what failed and what was taken back.

Nothing in botadm knows of these tests. A program of the system's fails because another lies over it that does, or that does the work and then fails;
a call of botadm's own fails because strace puts an error, or a SIGKILL, in its place.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.machines.needs import need
from tests.machines.site import BOTADM, Machine

SOAK = os.environ.get("SANDBOX_SOAK") == "1"
PROJECT = "/home/alice/work"
PLACES = ("/home", "/var/bot", "/var/lib/botadm/bots", "/var/lib/botadm/disabled", "/var/lib/botadm/shares")
TOOLS = {
    "create": ("/usr/sbin/groupadd", "/usr/sbin/useradd", "/usr/bin/gpasswd", "/usr/sbin/visudo"),
    "update": ("/usr/sbin/usermod", "/usr/bin/gpasswd", "/usr/sbin/visudo"), "disable": ("/usr/sbin/usermod",),
    "enable": ("/usr/sbin/visudo",), "destroy": ("/usr/sbin/userdel", "/usr/sbin/groupdel"),
}  # fmt: skip
WORDS = {
    "create": ("create", "dora"), "update": ("update", "clio"), "disable": ("disable", "clio"), "enable": ("enable", "clio"),
    "destroy": ("destroy", "clio", "--force"), "share": ("share", "-r", PROJECT),
}  # fmt: skip
# What changes the world; `?` since not every architecture has each of them.
CALLS = (
    "?mkdir,?mkdirat,?rename,?renameat,?renameat2,?unlink,?unlinkat,?rmdir,?chmod,?fchmod,?fchmodat,?chown,?fchown,?fchownat,"
    "?setxattr,?removexattr,?fsync"
)


@pytest.fixture
def ready(bots: Machine, request: pytest.FixtureRequest) -> Machine:
    """A bot, its project, and whatever gives the command something to do."""
    bots.shell("mkdir -p work/a/b; echo x > work/f; echo y > work/a/g; chmod 640 work/f; chmod 750 work/a", user="alice", cwd="/home/alice")
    bots.shell("setfacl -m u:nobody:rw work/a/g; setfacl -d -m u:nobody:rx work/a", user="alice", cwd="/home/alice")
    word = request.node.callspec.params["word"]
    if word == "update":
        bots.shell("chmod 700 /var/bot/clio; usermod --shell /bin/sh clio; gpasswd --delete clio bot; rm /var/bot/clio/env /etc/sudoers.d/bot-clio")
    if word == "enable":
        bots.must("disable", "clio")
    if word == "destroy":
        bots.shell("cp -a /var/bot/clio /tmp/kept")
    return bots


@pytest.mark.parametrize("mode", ["fails", "works and then fails"])
@pytest.mark.parametrize(("word", "tool"), [(word, tool) for word, tools in TOOLS.items() for tool in tools])
def test_a_program_that_fails_changes_nothing(ready: Machine, word: str, tool: str, mode: str) -> None:
    before = ready.state(*PLACES)
    work = "" if mode == "fails" else 'REAL "$@"; '
    ready.replace_program(tool, f"#!/bin/sh\n{work}echo 'disk on fire' >&2\nexit 9\n")
    done = ready.botadm(*WORDS[word])
    assert ready.state(*PLACES) == before
    assert (done.returncode, done.stdout) == (1, "")
    assert "failed:" in done.stderr and "disk on fire" in done.stderr
    assert "taken back:" in done.stderr or "nothing had to be taken back" in done.stderr
    ready.shell(f"umount {tool}")
    ready.must(*WORDS[word])


@pytest.mark.soak
@pytest.mark.parametrize("how", ["error=EIO", "signal=KILL"])
@pytest.mark.parametrize("word", list(WORDS))
def test_every_call_that_fails_or_is_the_last_changes_nothing(ready: Machine, word: str, how: str) -> None:
    """After an error at once; after a kill when the next command, here `init`, has found the journal."""
    need("strace")
    before = ready.state(*PLACES)
    tried = 0
    for call, number in calls_of(ready, word):
        known = entries(ready)
        done = strike(ready, WORDS[word], call, number, how)
        if how == "signal=KILL":
            assert done.returncode == -9, (call, number, done.stderr)
            ready.must("init")
        elif done.returncode == 0:
            pytest.fail(f"{call} {number} failed and nobody noticed: {done.stderr}")
        elif "failed" in done.stderr:
            assert "taken back" in done.stderr, done.stderr
        written = "".join(text for name, text in entries(ready).items() if name not in known)
        if '"end": "applied"' in written and '"end": "undone"' not in written:  # killed after its last word
            ready.must("undo")
        if '"Delete"' in written:
            continue_with_fresh_files(ready)
        assert ready.state(*PLACES) == before, f"{how} at {call} {number}: {done.stderr}"
        tried += 1
    assert tried >= 3
    ready.must(*WORDS[word])


def calls_of(site: Machine, word: str) -> list[tuple[str, int]]:
    """The command's calls that change something, by name and number; the command is taken back after.

    All of them in the long form. In the short one the last before each `fsync`: the one that makes a step count.
    """
    strace(site, WORDS[word], f"trace={CALLS}")
    names = [line.split("(")[0] for line in (site.root / "tmp/trace").read_text().splitlines() if "(" in line and "+++" not in line]
    site.must("undo")
    continue_with_fresh_files(site)
    calls = [(name, names[: place + 1].count(name)) for place, name in enumerate(names)]
    ends = [call for call, following in zip(calls, names[1:], strict=False) if following == "fsync" and call[0] != "fsync"]
    return calls if SOAK else [*ends, calls[-1]]


def strike(site: Machine, words: tuple[str, ...], call: str, number: int, how: str) -> subprocess.CompletedProcess[str]:
    return strace(site, words, f"trace={call}", f"inject={call}:{how}:when={number}")


def strace(site: Machine, words: tuple[str, ...], *expressions: str) -> subprocess.CompletedProcess[str]:
    """botadm alone, not what it starts."""
    given = [word for expression in (*expressions, "signal=none") for word in ("-e", expression)]
    caller = {"SUDO_USER": "alice", "SUDO_UID": str(site.uid("alice"))}
    return site.run("/usr/bin/strace", "-qq", "-o", "/tmp/trace", *given, BOTADM, *words, env=caller)


def entries(site: Machine) -> dict[str, str]:
    """Of the journal, as text; `init` with nothing to do writes none."""
    return {path.name: path.read_text() for path in (site.root / "var/lib/botadm/journal").iterdir()}


def continue_with_fresh_files(site: Machine) -> None:
    """A namespace that was deleted is not to be taken back; it was named, and the test puts one in its place."""
    site.shell("[ ! -e /tmp/kept ] || { rm -rf /var/bot/clio; cp -a /tmp/kept /var/bot/clio; }")


def test_a_plan_names_what_cannot_be_taken_back_and_puts_it_last(bots: Machine) -> None:
    for words in (("destroy", "clio"), ("disable", "clio")):
        steps = json.loads(bots.must(*words, "--dry-run", "--json").stdout)["steps"]
        order = [step["reversible"] for step in steps]
        assert order == sorted(order, reverse=True) and not order[-1]
        assert all(step["does"] and step["why"] and step["undo"] and step["check"] for step in steps)
        assert steps[-1]["undo"] == "cannot be taken back"


def test_a_dry_run_changes_nothing(bots: Machine) -> None:
    bots.shell("mkdir work; touch work/f", user="alice", cwd="/home/alice")
    before = bots.state("/home", "/var/bot", "/var/lib/botadm")
    for words in (("create", "dora"), ("disable", "clio"), ("destroy", "clio"), ("share", "-r", PROJECT), ("init", "--undo")):
        bots.botadm(*words, "--dry-run")
    assert bots.state("/home", "/var/bot", "/var/lib/botadm") == before


def test_missing_programs_are_named_before_anything_is_changed(site: Machine) -> None:
    before = site.state("/var/bot", "/var/lib/botadm")
    site.shell("for one in /usr/sbin/visudo /usr/sbin/userdel; do touch /tmp/none; mount --bind /tmp/none $one; done")
    done = site.botadm("init")
    assert done.returncode == 125 and "missing on this machine: userdel, visudo" in done.stderr
    assert site.state("/var/bot", "/var/lib/botadm") == before


def test_a_share_that_fills_the_disk_is_taken_back_whole(bots: Machine) -> None:
    """A write to a full disk may take half a line, and say so only by its length."""
    bots.shell("mkdir work; touch work/{1..2000}", user="alice", cwd="/home/alice")
    before = bots.state("/home")
    for size in (40, 44, 48):  # KiB: the last line is cut at different places
        bots.shell(f"mount -t tmpfs -o size={size}k,mode=700 small /var/lib/botadm/shares")
        done = bots.botadm("share", "-r", "/home/alice/work")
        assert (done.returncode, "No space left" in done.stderr, "NOT taken back" in done.stderr) == (1, True, False), done.stderr
        assert bots.state("/home") == before
        bots.shell("umount /var/lib/botadm/shares")
    bots.must("share", "-r", "/home/alice/work")


def test_a_record_whose_last_line_was_cut_off_is_used_without_it(bots: Machine) -> None:
    bots.shell("mkdir work; touch work/{1..9}", user="alice", cwd="/home/alice")
    before = bots.state("/home")
    bots.must("share", "-r", "/home/alice/work")
    bots.shell("printf '[\"10\", 12' >>/var/lib/botadm/shares/*.jsonl")
    bots.shell("touch work/new", user="alice", cwd="/home/alice")
    bots.must("share", "-r", "/home/alice/work")
    bots.must("noshare", "-r", "/home/alice/work")
    bots.shell("rm work/new", user="alice", cwd="/home/alice")
    assert bots.state("/home") == before
