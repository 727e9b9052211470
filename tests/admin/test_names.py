"""Names and paths that are refused, before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.site import Machine, machine

STATE = ("/home", "/var/bot", "/var/lib/botadm/bots")


@pytest.fixture(scope="module")
def begun(local: Path) -> Iterator[Machine]:
    """With `init` done; one for all names."""
    with machine(local) as site:
        site.add_person("alice")
        site.must("init")
        yield site


@pytest.mark.parametrize("name", [
    "root", "-x", "--force", "a b", "../x", "a" * 32, "a" * 33, "", "Clio", "1a", "_a", "clió", "сlio", "a.b", "a/b", "a:b", "a,b", "a\nb",
    "a\x1b[31m", "$(id)", "a;id", "a%", "#0", "ALL", "bot", "sudo", "nobody", "alice", "daemon", ".", "..", "a\u202eb",
])  # fmt: skip
def test_a_name_that_is_no_bots_is_refused(begun: Machine, name: str) -> None:
    before = begun.state(*STATE)
    done = begun.botadm("create", "--", name) if name.startswith("-") else begun.botadm("create", name)
    assert done.returncode in (2, 125)
    assert "\n" not in done.stderr.rstrip().split("\n  ")[0] and "\x1b" not in done.stderr and "Traceback" not in done.stderr
    assert begun.state(*STATE) == before


@pytest.mark.parametrize("name", ["a", "a" * 31, "a-b_c9", "claude"])
def test_a_name_that_is_one_is_taken(begun: Machine, name: str) -> None:
    begun.must("create", name)
    assert begun.run("/usr/bin/sudo", "-n", "-u", name, "--", "/usr/bin/id", "-un", user="alice").stdout == f"{name}\n"


def test_an_account_that_is_not_ours_is_left_alone(site: Machine) -> None:
    site.must("init")
    site.shell("useradd --system robot; groupadd --system crew")
    before = site.state(*STATE)
    for name, word in (("robot", "user"), ("crew", "group")):
        for command in (("create", name), ("create", name, "--force")):
            done = site.botadm(*command)
            assert done.returncode == 125 and f"there is a {word} «{name}» that is not a bot of ours" in done.stderr
        for command in (("destroy", name, "--force"), ("disable", name), ("update", name), ("enable", name)):
            assert "there is no bot" in site.botadm(*command).stderr
    assert site.state(*STATE) == before


def test_a_group_named_bot_that_is_not_ours_is_left_alone(site: Machine) -> None:
    site.shell("groupadd bot")
    before = site.state("/var/bot")
    assert "that is not ours" in site.botadm("init").stderr
    assert site.state("/var/bot") == before


@pytest.mark.parametrize(("caller", "said"), [
    ({}, "whose is it?"), ({"SUDO_USER": "root", "SUDO_UID": "0"}, "whose is it?"), ({"SUDO_USER": "alice", "SUDO_UID": "0"}, "which is not uid 0"),
    ({"SUDO_USER": "alice"}, "which is not uid unset"), ({"SUDO_USER": "nobody-here", "SUDO_UID": "7"}, "which is not uid 7"),
    ({"SUDO_USER": "../alice", "SUDO_UID": "7"}, "which is not uid 7"),
])  # fmt: skip
def test_who_it_is_for_must_be_known(site: Machine, caller: dict[str, str], said: str) -> None:
    done = site.run("/usr/local/bin/botadm", "init", env=caller)
    assert done.returncode == 125 and said in done.stderr
    assert site.run("/usr/local/bin/botadm", "init", "--owner", "alice", env=caller).returncode == 0


@pytest.mark.parametrize("owner", ["root", "clio", "nobody-here", "a b"])
def test_root_and_bots_own_no_bots(bots: Machine, owner: str) -> None:
    done = bots.botadm("create", "dora", "--owner", owner)
    assert done.returncode == 125 and bots.uid("dora") == -1


def test_a_directory_that_is_there_needs_a_word(site: Machine) -> None:
    site.must("init")
    site.shell("mkdir /var/bot/clio; echo kept > /var/bot/clio/file")
    assert "is there already" in site.botadm("create", "clio").stderr
    site.must("create", "clio", "--force")
    assert (site.root / "var/bot/clio/file").read_text() == "kept\n"


@pytest.mark.parametrize("made", ["ln -s /home/alice /var/bot/clio", "touch /var/bot/clio", "ln -s nowhere /var/bot/clio"])
def test_something_else_in_a_bots_place_is_never_taken(site: Machine, made: str) -> None:
    site.must("init")
    site.shell(made)
    before = site.state(*STATE)
    for more in ((), ("--force",)):
        assert "it must be a directory" in site.botadm("create", "clio", *more).stderr
    assert site.state(*STATE) == before


SYSTEM = (
    "/etc", "/", "/home", "/usr/share", "/var/bot/clio", "/home/alice/../../etc", "//etc/", "///usr", "/proc/self/root/etc", "relative/../../etc",
    "/run/../etc",
)  # fmt: skip
PATHS = {
    **dict.fromkeys(SYSTEM, "is the system's"), "/home/alice": "is a whole home", "/home/bob": "is a whole home", "//home/alice": "is a whole home",
    "/home/alice/to-etc": "is a symbolic link", "/home/alice/link/inner": "leads through one", "/home/alice/mounted": "is a mount point",
    "/home/alice/new\nline": "control character", "/home/alice/absent": "is not there", "/home/bob/his": "other people's files",
    "/home/alice/bobs": "other people's files",
}  # fmt: skip


def test_paths_that_are_no_project_are_refused(bots: Machine) -> None:
    bots.add_person("bob")
    script = "mkdir real real/inner mounted $'new\\nline'; ln -s /etc to-etc; ln -s real link; chmod 755 ."
    bots.shell(script, user="alice", cwd="/home/alice")
    bots.shell("mkdir /home/bob/his /home/alice/bobs; chown bob:bob /home/bob/his /home/alice/bobs")
    bots.shell("mount --bind /home/alice/real /home/alice/mounted")
    before = bots.state("/home", "/var/lib/botadm/shares")
    for path, said in PATHS.items():
        for words in (("share",), ("share", "-r"), ("noshare", "-r")):
            done = bots.botadm(*words, path)
            assert done.returncode == 125 and said in done.stderr, (words, path, done.stderr)
            assert "Traceback" not in done.stderr
    assert bots.state("/home", "/var/lib/botadm/shares") == before
    bots.must("share", "/home/alice/real")
