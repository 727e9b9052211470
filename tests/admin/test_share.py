"""Sharing a tree, and giving it back: each kind of file, links that are swapped in meanwhile, and a hundred thousand files."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.machines.needs import need
from tests.machines.site import BOTADM, Machine

SOAK = os.environ.get("SANDBOX_SOAK") == "1"
HOME = "/home/alice"
PROJECT = f"{HOME}/work"


@pytest.fixture
def tree(bots: Machine) -> Iterator[Machine]:
    """One of each kind."""
    need("chattr")
    bots.add_person("bob")
    script = """
    umask 022; mkdir -p work/a/b work/closed; cd work
    echo 1 > plain; echo 2 > a/run.sh; chmod 755 a/run.sh; echo 3 > a/b/own; chmod 600 a/b/own; chmod 700 closed; echo 4 > closed/in
    echo 5 > acl; setfacl -m u:bob:rwx,g:users:r,m::r acl; setfacl -d -m u:bob:rx,g::---,o::r a; ln -s /etc/passwd link; ln -s a folder
    echo 6 > hard; ln hard hard2; mkfifo fifo; cp /bin/true suid; chmod 4755 suid; mkdir .git .ssh; echo k > server.pem; echo e > .env; chmod 0 a/b
    """
    bots.shell(script, user="alice", cwd=HOME)
    bots.shell("echo x > bobs; chown bob:bob bobs; echo x > fixed; chown alice:alice fixed; mkdir mounted", cwd=PROJECT)
    bots.shell("chown alice:alice mounted; mount -t tmpfs none mounted; touch mounted/inner; chown alice mounted/inner; chattr +i fixed", cwd=PROJECT)
    yield bots
    bots.shell("chattr -i fixed; umount mounted", cwd=PROJECT)


SKIPPED = {
    "symbolic links": ["folder", "link"], "files with several names (hard links)": ["hard", "hard2"], "devices, FIFOs and sockets": ["fifo"],
    "setuid and setgid programs": ["suid"], "other people's files": ["bobs"], "other file systems (mount points)": ["mounted"],
    "files that nobody may change (immutable, append-only)": ["fixed"],
}  # fmt: skip


def test_what_is_shared_and_what_is_left_alone_and_named(tree: Machine) -> None:
    before = tree.state(HOME)
    planned = json.loads(tree.must("share", "-r", "-n", "--json", PROJECT).stdout)["trees"][0]
    assert tree.state(HOME) == before
    told = json.loads(tree.must("share", "-r", "--json", PROJECT).stdout)["trees"][0]
    assert {reason: sorted(first) for reason, (_, first) in told["skipped"].items()} == SKIPPED
    assert planned == told
    assert {warning.split(":")[0] for warning in told["warnings"]} == {".git", ".ssh", ".env", "server.pem"}
    after = tree.state(HOME)
    for path in (path for paths in SKIPPED.values() for path in paths):
        assert after[f"tree {PROJECT}/{path}"] == before[f"tree {PROJECT}/{path}"]
    modes = {path: after[f"tree {PROJECT}/{path}"][0][-4:] for path in ("", "a", "a/b", "plain", "a/run.sh", "a/b/own") if path}  # type: ignore[index]
    assert modes == {"a": "2775", "a/b": "2070", "plain": "0664", "a/run.sh": "0775", "a/b/own": "0660"}


def test_giving_back_restores_each_file(tree: Machine) -> None:
    before = tree.state(HOME, "/var/lib/botadm/shares")
    tree.must("share", "-r", PROJECT)
    again = tree.must("share", "-r", PROJECT).stdout
    assert again.startswith(f"share {PROJECT}: nothing to do\n") and "left alone: 1 other people's files\n    bobs" in again
    shared = tree.state(HOME, "/var/lib/botadm/shares")
    planned = json.loads(tree.must("noshare", "-r", "-n", "--json", PROJECT).stdout)["trees"]
    assert tree.state(HOME, "/var/lib/botadm/shares") == shared
    assert json.loads(tree.must("noshare", "-r", "--json", PROJECT).stdout)["trees"] == planned
    assert tree.state(HOME, "/var/lib/botadm/shares") == before
    assert tree.must("noshare", "-r", PROJECT).stdout == f"noshare {PROJECT}: nothing to do\n"


def test_nobody_else_gains_a_right(tree: Machine) -> None:
    """bob's entry was cut by the mask; raising the mask for the group must not give it to him."""
    tree.must("share", "-r", PROJECT)
    acl = tree.shell("getfacl --absolute-names --omit-header acl", cwd=PROJECT).split()
    assert "user:bob:r--" in acl and "group::rw-" in acl and "mask::rw-" in acl


def test_what_was_made_meanwhile_gets_the_other_group_and_what_was_moved_is_known(tree: Machine) -> None:
    before = tree.state(PROJECT)
    tree.must("share", "-r", PROJECT)
    script = "mkdir new; echo x > new/file; mv a/run.sh moved; rm plain; echo other > plain"
    tree.run(BOTADM, "run", "clio", "sh", "-c", script, user="alice", cwd=PROJECT)
    told = tree.must("noshare", "-r", PROJECT).stdout
    assert "1 recorded and gone" in told
    after = tree.state(PROJECT)
    assert after[f"tree {PROJECT}/moved"] == before[f"tree {PROJECT}/a/run.sh"]
    uid, alice = tree.uid("clio"), int(tree.shell("id -g alice"))
    for path in ("new", "new/file", "plain"):
        assert after[f"tree {PROJECT}/{path}"][1:3] == (uid, alice)  # type: ignore[index]
    assert after[f"tree {PROJECT}/new"][0] == "0o40775"  # type: ignore[index]
    assert tree.shell("cat work/new/file; rm -r work/new", user="alice", cwd=HOME) == "x\n"


def test_another_group_can_be_named_for_what_has_no_record(tree: Machine) -> None:
    tree.must("share", "-r", PROJECT)
    tree.run(BOTADM, "run", "clio", "touch", "new", user="alice", cwd=PROJECT)
    tree.must("noshare", "-r", "--group", "users", PROJECT)
    assert tree.shell("stat -c %G new", cwd=PROJECT) == "users\n"
    assert "there is no group" in tree.botadm("noshare", "--group", "nowhere", PROJECT).stderr


def test_one_directory_alone(bots: Machine) -> None:
    bots.shell("mkdir -p work/a; touch work/f", user="alice", cwd=HOME)
    before = bots.state(HOME)
    bots.must("share", PROJECT)
    assert bots.shell("stat -c '%a %G' work work/a work/f", cwd=HOME) == "2775 bot\n755 alice\n644 alice\n"
    bots.must("noshare", PROJECT)
    assert bots.state(HOME) == before


def test_ways_stay_open_until_the_last_share_is_gone(bots: Machine) -> None:
    bots.shell("mkdir -m 700 deep deep/er; mkdir -m 700 deep/er/one deep/two; touch beside; setfacl -m u:nobody:r,m::r deep", user="alice", cwd=HOME)
    before = bots.state(HOME)
    bots.must("share", "-r", f"{HOME}/deep/er/one")
    bots.must("share", "-r", f"{HOME}/deep/two")

    def clio(path: str) -> int:
        return bots.run(BOTADM, "run", "clio", "test", "-r", path, user="alice").returncode

    assert (clio(f"{HOME}/deep/er/one"), clio(f"{HOME}/deep/two"), clio(f"{HOME}/deep"), clio(f"{HOME}/beside")) == (0, 0, 1, 1)
    bots.must("noshare", "-r", f"{HOME}/deep/er/one")
    assert (clio(f"{HOME}/deep/er/one"), clio(f"{HOME}/deep/two")) == (1, 0)
    bots.must("noshare", "-r", f"{HOME}/deep/two")
    assert bots.state(HOME) == before


def test_what_a_person_changed_meanwhile_stays(bots: Machine) -> None:
    """The home is opened by hand while it is a way: giving back takes our entry away and leaves that, but for what only our entry's mask showed."""
    bots.shell("mkdir work; touch beside", user="alice", cwd=HOME)
    bots.must("share", PROJECT)
    bots.shell("chmod 755 .; chmod 600 beside", user="alice", cwd=HOME)
    bots.must("noshare", PROJECT)
    assert bots.shell("stat -c %a . beside; getfacl --absolute-names --skip-base . beside", cwd=HOME) == "705\n600\n"


def test_a_shared_directory_that_was_removed_can_be_given_back(bots: Machine) -> None:
    before = bots.state(HOME, "/var/lib/botadm/shares")
    bots.shell("mkdir -p work/a", user="alice", cwd=HOME)
    bots.must("share", "-r", PROJECT)
    bots.shell("rm -r work", user="alice", cwd=HOME)
    assert "is shared" in bots.botadm("init", "--undo").stderr or "there are bots" in bots.botadm("init", "--undo").stderr
    bots.must("noshare", PROJECT)
    assert bots.state(HOME, "/var/lib/botadm/shares") == before


def test_a_way_of_somebody_elses_is_not_opened(bots: Machine) -> None:
    bots.shell("mkdir -m 700 /srv/closed && mkdir /srv/closed/work && chown alice:alice /srv/closed/work && chown nobody /srv/closed || true")
    try:
        done = bots.botadm("share", "/srv/closed/work")
        assert done.returncode == 125 and "is closed to bots and belongs to somebody else" in done.stderr
    finally:
        bots.shell("rm -rf /srv/closed")


def test_a_file_system_without_acls_is_named(bots: Machine) -> None:
    bots.shell("mkdir ram; mount -t ramfs none ram; mkdir ram/work; touch ram/work/f; chown -R alice:alice ram", cwd=HOME)
    before = bots.state(HOME)
    done = bots.botadm("share", "-r", f"{HOME}/ram/work")
    assert done.returncode == 1 and "the file system has no POSIX ACLs" in done.stderr and "taken back: share" in done.stderr
    assert bots.state(HOME) == before


def test_trees_in_each_other_are_refused(bots: Machine) -> None:
    bots.shell("mkdir -p work/a", user="alice", cwd=HOME)
    bots.must("share", "-r", PROJECT)
    assert "is part of" in bots.botadm("share", f"{PROJECT}/a").stderr
    bots.must("noshare", "-r", PROJECT)
    bots.must("share", f"{PROJECT}/a")
    assert "holds" in bots.botadm("share", "-r", PROJECT).stderr


def test_a_new_group_needs_a_new_login_and_that_is_said(bots: Machine) -> None:
    bots.shell("mkdir work", user="alice", cwd=HOME)
    assert "0600 on purpose" in bots.must("share", "-n", PROJECT).stdout
    script = f"sudo -n {BOTADM} share -n {PROJECT}"
    bots.shell("echo 'alice ALL=(root) NOPASSWD: ALL' > /etc/sudoers.d/alice")
    group = bots.shell("getent group bot").split(":")[2]
    old = bots.run("/usr/bin/setpriv", "--reuid", "alice", "--regid", "alice", "--clear-groups", "/bin/sh", "-c", script)
    new = bots.run("/usr/bin/setpriv", "--reuid", "alice", "--regid", "alice", f"--groups={group}", "/bin/sh", "-c", script)
    assert "log in again" in old.stdout and "log in again" not in new.stdout


SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
one, two = sys.argv[1].encode(), sys.argv[2].encode()
print("swapping", flush=True)
while True:
    libc.renameat2(-100, one, -100, two, 2)  # RENAME_EXCHANGE
"""


@pytest.mark.soak
def test_a_link_swapped_in_reaches_nothing(bots: Machine) -> None:
    """clio exchanges a directory and a link to alice's keys as fast as it can, while root shares and gives back."""
    need("python3")
    bots.shell("mkdir work work/d keys; echo k | tee keys/f work/d/f; chmod 700 keys; chmod 600 keys/f", user="alice", cwd=HOME)
    bots.must("share", "-r", PROJECT)
    bots.run(BOTADM, "run", "clio", "sh", "-c", f"ln -s {HOME}/keys l; ln -s {HOME}/keys/f d/lf; echo x > d/mine", user="alice", cwd=PROJECT)
    keys = kept(bots)
    pairs = (("d", "l"), ("d/lf", "d/f"))
    swappers = [bots.start(BOTADM, "run", "clio", "python3", "-c", SWAP, *pair, user="alice", cwd=PROJECT) for pair in pairs]
    for one in swappers:
        assert one.stdout is not None and one.stdout.readline() == "swapping\n"
    deadline = time.monotonic() + (30 if SOAK else 3)
    turns = 0
    while time.monotonic() < deadline:
        for words in (("noshare", "-r"), ("share", "-r")):
            done = bots.botadm(*words, PROJECT)
            assert "Traceback" not in done.stderr
            turns += done.returncode == 0
    bots.must("disable", "clio")
    assert turns > 2
    assert kept(bots) == keys


def kept(site: Machine) -> dict[str, object]:
    return {path: what for path, what in site.state(f"{HOME}/keys").items() if path.startswith(f"tree {HOME}/keys")}


@pytest.mark.soak
def test_many_files_take_a_bounded_time_and_each_is_restored(bots: Machine) -> None:
    count = 100_000 if SOAK else 5_000
    script = f"""
import os
for n in range({count}):
    if n % 500 == 0:
        os.makedirs(f"work/{{n // 500:04}}/sub", mode=0o750)
    path = f"work/{{n // 500:04}}/{{'sub/' if n % 7 == 0 else ''}}f{{n}}"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, (0o600, 0o644, 0o755, 0o440)[n % 4]))
"""
    assert bots.run("/usr/bin/python3", "-c", script, user="alice", cwd=HOME, timeout=300).returncode == 0
    before = listing(bots)
    begun = time.monotonic()
    done = bots.must("share", "-r", PROJECT, timeout=600)
    middle = time.monotonic()
    assert set(listing(bots).values()) == {"2770 bot", "2775 bot", "660 bot", "664 bot", "775 bot", "440 bot"}
    back = time.monotonic()
    bots.must("noshare", "-r", PROJECT, timeout=600)
    took = middle - begun, time.monotonic() - back
    print(f"{count} files: shared in {took[0]:.1f} s, given back in {took[1]:.1f} s")
    assert listing(bots) == before
    assert max(took) < count / 200 + 20
    if SOAK:
        assert "files so far" in done.stderr


def listing(site: Machine) -> dict[str, str]:
    lines = site.run("/usr/bin/find", PROJECT, "-printf", "%P\\t%m %g\\n", timeout=300).stdout.splitlines()
    return dict(line.split("\t") for line in lines)


def test_progress_is_told(bots: Machine) -> None:
    """Files are many when each takes long: here strace makes them."""
    need("strace")
    bots.shell("mkdir work; cd work; for n in $(seq 400); do : > $n; done", user="alice", cwd=HOME)
    slow = ("/usr/bin/strace", "-qq", "-o", "/tmp/trace", "-e", "trace=?chmod,?fchmodat", "-e", "inject=?chmod,?fchmodat:delay_exit=3000")
    caller = {"SUDO_USER": "alice", "SUDO_UID": str(bots.uid("alice"))}
    done: subprocess.CompletedProcess[str] = bots.run(*slow, BOTADM, "share", "-r", PROJECT, env=caller)
    assert done.returncode == 0 and "sharing: " in done.stderr and "files so far" in done.stderr
