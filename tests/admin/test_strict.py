"""A strict rule: sudo starts our entry point as the bot, which builds a jail, and nothing else, whatever is tried. Refused by real sudo."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bootstrap import install
from tests.machines.site import BOTADM, CLONE_INSIDE, LAUNCHER, Machine, machine

SUDO = "/usr/bin/sudo"
EVIL = shlex.quote("import posix\\nposix.mkdir('/tmp/evil/ran')\\n")


@pytest.fixture(scope="module")
def strict(local: Path) -> Iterator[Machine]:
    """One for all: nothing here changes it, or else something got through."""
    with machine(local) as site:
        site.add_person("alice")
        site.must("init")
        site.must("create", "clio", "--strict")
        site.shell("mkdir /home/alice/work", user="alice")
        site.must("share", "-r", "/home/alice/work")
        site.shell(f"cp {entry(site)} /tmp/agent-sandbox-bot; chmod 755 /tmp/agent-sandbox-bot; mkdir /tmp/evil")
        site.shell(f"printf {EVIL} | tee /tmp/evil/os.py /tmp/evil/sitecustomize.py /tmp/evil/pwd.py; chmod -R 777 /tmp/evil")
        yield site


def entry(site: Machine) -> str:
    rule = (site.root / "etc/sudoers.d/bot-clio").read_text()
    found = re.search("^alice ALL=.clio. NOPASSWD: NOSETENV: (/usr/local/lib/agent-sandbox/versions/[^ ]*/bin/agent-sandbox-bot)", rule, re.MULTILINE)
    assert found
    return found[1].strip()


def jailed(site: Machine, *words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return site.run(LAUNCHER, "--bot", "clio", "--quiet", "--", *words, user="alice", cwd="/home/alice/work", **more)  # type: ignore[arg-type]


def test_what_the_entry_point_runs_is_a_jail_as_the_bot(strict: Machine) -> None:
    """The control of all below: the way that is permitted works."""
    done = jailed(strict, "sh", "-c", "id -un; umask; echo $AGENT_SANDBOX; touch made; exit 9", env={"MY_SECRET": "x"})
    assert (done.returncode, done.stdout) == (9, "clio\n0007\n1\n"), done.stderr
    assert strict.shell("stat -c %U made", user="alice", cwd="/home/alice/work") == "clio\n"


COMMANDS = {
    "another command": ("-u", "clio", "--", "/usr/bin/id"),
    "a shell": ("-u", "clio", "-s"),
    "a login shell": ("-u", "clio", "-i"),
    "a shell with a command": ("-u", "clio", "-s", "--", "ENTRY"),
    "an editor": ("-u", "clio", "-e", "/etc/hostname"),
    "as root": ("-u", "root", "--", "ENTRY", "session", "x"),
    "as root by number": ("-u", "#0", "--", "ENTRY", "session", "x"),
    "as the overflow number": ("-u", "#4294967295", "--", "ENTRY", "session", "x"),
    "another group": ("-u", "clio", "-g", "root", "--", "ENTRY", "session", "x"),
    "the interpreter": ("-u", "clio", "--", "/usr/bin/python3", "-I", "ENTRY", "session", "x"),
    "by way of env": ("-u", "clio", "--", "/usr/bin/env", "ENTRY", "session", "x"),
    "a neighbour of it": ("-u", "clio", "--", "BIN/botadm", "list"),
    "a longer name": ("-u", "clio", "--", "ENTRY-x"),
    "its name alone": ("-u", "clio", "--", "agent-sandbox-bot", "session", "x"),
    "a copy of it": ("-u", "clio", "--", "/tmp/agent-sandbox-bot", "session", "x"),
    "metacharacters in one word": ("-u", "clio", "--", "ENTRY; id"),
    "a substitution": ("-u", "clio", "--", "ENTRY$(id)"),
    "a pipe": ("-u", "clio", "--", "ENTRY|id"),
    "a new line": ("-u", "clio", "--", "ENTRY\nid"),
    "the environment kept": ("-E", "-u", "clio", "--", "ENTRY", "session", "x"),
    "one variable kept": ("--preserve-env=PYTHONPATH", "-u", "clio", "--", "ENTRY", "session", "x"),
    "LD_PRELOAD": ("-u", "clio", "LD_PRELOAD=/tmp/x.so", "ENTRY", "session", "x"),
    "PATH": ("-u", "clio", "PATH=/tmp", "ENTRY", "session", "x"),
    "PYTHONPATH": ("-u", "clio", "PYTHONPATH=/tmp", "ENTRY", "session", "x"),
    "another directory": ("-D", "/root", "-u", "clio", "--", "ENTRY", "session", "x"),
    "another root": ("-R", "/tmp", "-u", "clio", "--", "ENTRY", "session", "x"),
    "more descriptors": ("-C", "9", "-u", "clio", "--", "ENTRY", "session", "x"),
}  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
def test_sudo_refuses_everything_else(strict: Machine, words: tuple[str, ...]) -> None:
    path = entry(strict)
    given = [word.replace("ENTRY", path).replace("BIN", os.path.dirname(path)) for word in words]
    tried = strict.run(SUDO, "-n", *given, user="alice", env={"SUDO_EDITOR": "/usr/bin/id", "PYTHONPATH": "/tmp", "PATH": "/tmp:/usr/bin:/bin"})
    assert tried.returncode == 1
    assert tried.stdout == ""
    assert "sudo" in tried.stderr and "agent-sandbox: " not in tried.stderr


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "SUDO_EDITOR", "BASH_ENV", "ENV", "IFS"]
)
def test_a_variable_has_no_effect_on_the_entry_point(strict: Machine, name: str) -> None:
    """It comes as far as its own words: nobody waits at that name."""
    words = ("-n", "-u", "clio", "--", entry(strict), "session", "nobody-there")
    done = strict.run(SUDO, *words, user="alice", env={name: "/tmp/evil" if name != "LD_PRELOAD" else "/tmp/evil/x.so"})
    assert (done.returncode, "nobody is there who could say what to run" in done.stderr) == (125, True), done.stderr
    assert not (strict.root / "tmp/evil/ran").exists()


@pytest.mark.parametrize("words", [
    (), ("help",), ("--help",), ("-c", "id"), ("run",), ("run", "/", "dumb", "C", "id"), ("shell",), ("session",), ("session", "a", "b"),
    ("session;id",),
])  # fmt: skip
def test_the_entry_point_knows_its_verb_alone(strict: Machine, words: tuple[str, ...]) -> None:
    done = strict.run(SUDO, "-n", "-u", "clio", "--", entry(strict), *words, user="alice")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("agent-sandbox: expected")


def test_the_entry_point_is_for_bots_alone(strict: Machine) -> None:
    assert "not for root" in strict.run(entry(strict), "session", "x").stderr
    assert "is not a bot" in strict.run(entry(strict), "session", "x", user="alice").stderr


def test_strict_is_refused_for_code_that_others_can_change(site: Machine, local: Path) -> None:
    """Up to /: a file, a directory on the way, and one that its group may write."""
    site.must("init")
    before = site.state("/var/bot")
    mine = site.root / "home/alice/copy"
    shutil.copytree(next((local / "lib/agent-sandbox/versions").iterdir()), mine, symlinks=True)
    starter = mine / "bin/botadm"
    starter.write_text(re.sub("'/usr/local/lib/agent-sandbox/versions/[^/]*", "'/home/alice/copy", starter.read_text()))
    done = site.run("/home/alice/copy/bin/botadm", "create", "clio", "--strict", "--owner", "alice")
    assert done.returncode == 125 and "root does not run code that others can change: /home/alice belongs to uid" in done.stderr
    assert site.state("/var/bot") == before


@pytest.mark.parametrize("mode", ["2775", "0777", "1777"])
def test_strict_is_refused_below_a_directory_that_others_can_write(site: Machine, local: Path, mode: str) -> None:
    site.must("init")
    site.shell(f"mkdir -m {mode} /opt/open-{mode} || true; chgrp users /opt/open-{mode}; chmod {mode} /opt/open-{mode}")
    try:
        path = Path(f"/opt/open-{mode}/copy")
        install.make_copy(path, install.read_library(), "/usr/bin/python3")
        done = site.run(path / "bin/botadm", "create", "clio", "--strict", "--owner", "alice")
        assert done.returncode == 125 and f"/opt/open-{mode} can be written by others" in done.stderr
    finally:
        shutil.rmtree(f"/opt/open-{mode}")


def test_the_clone_itself_is_no_install(site: Machine) -> None:
    site.must("init")
    start = f"import sys; sys.path.insert(0, {str(CLONE_INSIDE / 'src')!r}); from agent_sandbox.admin.cli import main; "
    done = site.run("/usr/bin/python3", "-I", "-c", start + "sys.exit(main(['create', 'clio', '--strict', '--owner', 'alice']))")
    assert done.returncode == 125
    assert "--strict needs an installed copy" in done.stderr or "others can change" in done.stderr


def test_a_bot_can_become_strict_and_back(bots: Machine) -> None:
    assert bots.run(SUDO, "-n", "-u", "clio", "--", "/usr/bin/id", "-un", user="alice").stdout == "clio\n"  # control
    bots.must("update", "clio", "--strict")
    assert bots.run(SUDO, "-n", "-u", "clio", "--", "/usr/bin/id", user="alice").returncode == 1
    bots.must("update", "clio", "--no-strict")
    assert bots.run(SUDO, "-n", "-u", "clio", "--", "/usr/bin/id", "-un", user="alice").stdout == "clio\n"


def test_without_sudoers_there_is_no_rule(site: Machine) -> None:
    site.must("init")
    site.must("create", "clio", "--no-sudoers")
    assert not (site.root / "etc/sudoers.d/bot-clio").exists()
    assert site.run(BOTADM, "run", "clio", "id", user="alice").returncode == 1
    site.must("update", "clio", "--sudoers")
    done = site.run(BOTADM, "run", "clio", "id", "-un", user="alice")
    assert (done.stdout, done.stderr) == ("clio\n", "")
    site.shell("echo '# the site wrote this' >> /etc/sudoers.d/bot-clio")
    site.must("destroy", "clio", "--no-sudoers", "--force")
    assert (site.root / "etc/sudoers.d/bot-clio").exists()
