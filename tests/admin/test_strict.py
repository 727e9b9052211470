"""A strict rule: sudo starts our entry point as the bot, and nothing else, whatever is tried. Refused by real sudo, not by us."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bootstrap import install
from tests.machines.site import BOTADM, CLONE, Machine, machine

SUDO = "/usr/bin/sudo"
EVIL = shlex.quote("import posix\\nposix.mkdir('/tmp/evil/ran')\\n")


@pytest.fixture(scope="module")
def strict(local: Path) -> Iterator[Machine]:
    """One for all: nothing here changes it, or else something got through."""
    with machine(local) as site:
        site.add_person("alice")
        site.must("init")
        site.must("create", "clio", "--strict")
        site.shell(f"cp {entry(site)} /tmp/agent-sandbox-bot; chmod 755 /tmp/agent-sandbox-bot; mkdir /tmp/evil")
        site.shell(f"printf {EVIL} | tee /tmp/evil/os.py /tmp/evil/sitecustomize.py /tmp/evil/pwd.py; chmod -R 777 /tmp/evil")
        yield site


def entry(site: Machine) -> str:
    rule = (site.root / "etc/sudoers.d/bot-clio").read_text()
    found = re.search("^alice ALL=.clio. NOPASSWD: NOSETENV: (/usr/local/lib/agent-sandbox/versions/[^ ]*/bin/agent-sandbox-bot)", rule, re.MULTILINE)
    assert found
    return found[1].strip()


def test_what_the_entry_point_runs_is_the_bots(strict: Machine) -> None:
    """The control of all below: the way that is permitted works."""
    script = "id -un; umask; env | sort; exit 9"
    done = strict.run(BOTADM, "run", "clio", "sh", "-c", script, user="alice", env={"SECRET": "x", "LANG": "de_DE.UTF-8"})
    assert done.returncode == 9, done.stderr
    assert done.stdout.splitlines() == [
        "clio", "0007", "HOME=/var/bot/clio", "LANG=de_DE.UTF-8", "LOGNAME=clio", "PATH=/var/bot/clio/.local/bin:/usr/local/bin:/usr/bin:/bin",
        "PWD=/", "TERM=xterm", "USER=clio",
    ]  # fmt: skip


COMMANDS = {
    "another command": ("-u", "clio", "--", "/usr/bin/id"),
    "a shell": ("-u", "clio", "-s"),
    "a login shell": ("-u", "clio", "-i"),
    "a shell with a command": ("-u", "clio", "-s", "--", "ENTRY"),
    "an editor": ("-u", "clio", "-e", "/etc/hostname"),
    "as root": ("-u", "root", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
    "as root by number": ("-u", "#0", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
    "as the overflow number": ("-u", "#4294967295", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
    "another group": ("-u", "clio", "-g", "root", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
    "the interpreter": ("-u", "clio", "--", "/usr/bin/python3", "-I", "ENTRY", "run", "/", "dumb", "C", "id"),
    "by way of env": ("-u", "clio", "--", "/usr/bin/env", "ENTRY", "run", "/", "dumb", "C", "id"),
    "a neighbour of it": ("-u", "clio", "--", "BIN/botadm", "list"),
    "a longer name": ("-u", "clio", "--", "ENTRY-x"),
    "its name alone": ("-u", "clio", "--", "agent-sandbox-bot", "run", "/", "dumb", "C", "id"),
    "a copy of it": ("-u", "clio", "--", "/tmp/agent-sandbox-bot", "run", "/", "dumb", "C", "id"),
    "metacharacters in one word": ("-u", "clio", "--", "ENTRY; id"),
    "a substitution": ("-u", "clio", "--", "ENTRY$(id)"),
    "a pipe": ("-u", "clio", "--", "ENTRY|id"),
    "a new line": ("-u", "clio", "--", "ENTRY\nid"),
    "the environment kept": ("-E", "-u", "clio", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
    "one variable kept": ("--preserve-env=PYTHONPATH", "-u", "clio", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
    "LD_PRELOAD": ("-u", "clio", "LD_PRELOAD=/tmp/x.so", "ENTRY", "run", "/", "dumb", "C", "id"),
    "PATH": ("-u", "clio", "PATH=/tmp", "ENTRY", "run", "/", "dumb", "C", "id"),
    "PYTHONPATH": ("-u", "clio", "PYTHONPATH=/tmp", "ENTRY", "run", "/", "dumb", "C", "id"),
    "another directory": ("-D", "/root", "-u", "clio", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
    "another root": ("-R", "/tmp", "-u", "clio", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
    "more descriptors": ("-C", "9", "-u", "clio", "--", "ENTRY", "run", "/", "dumb", "C", "id"),
}  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
def test_sudo_refuses_everything_else(strict: Machine, words: tuple[str, ...]) -> None:
    path = entry(strict)
    given = [word.replace("ENTRY", path).replace("BIN", os.path.dirname(path)) for word in words]
    tried = strict.run(SUDO, "-n", *given, user="alice", env={"SUDO_EDITOR": "/usr/bin/id", "PYTHONPATH": "/tmp", "PATH": "/tmp:/usr/bin:/bin"})
    assert tried.returncode == 1
    assert tried.stdout == ""
    assert "sudo" in tried.stderr and "botadm" not in tried.stderr


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "SUDO_EDITOR", "BASH_ENV", "ENV", "IFS"]
)
def test_a_variable_reaches_neither_the_entry_point_nor_the_command(strict: Machine, name: str) -> None:
    words = ("-n", "-u", "clio", "--", entry(strict), "run", "/", "dumb", "C", "/bin/sh", "-c", f'echo "[${name}]" | grep -v evil')
    done = strict.run(SUDO, *words, user="alice", env={name: "/tmp/evil" if name != "LD_PRELOAD" else "/tmp/evil/x.so"})
    assert done.returncode == 0, done.stderr
    assert not (strict.root / "tmp/evil/ran").exists()


@pytest.mark.parametrize("words", [
    (), ("help",), ("--help",), ("-c", "id"), ("run",), ("run", "/", "dumb", "C"), ("shell",), ("run;id",), ("../run", "/", "x", "y", "id"),
])  # fmt: skip
def test_the_entry_point_knows_its_verbs_alone(strict: Machine, words: tuple[str, ...]) -> None:
    done = strict.run(SUDO, "-n", "-u", "clio", "--", entry(strict), *words, user="alice")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("botadm: expected")


def test_words_for_the_terminal_and_language_are_plain_words(strict: Machine) -> None:
    words = ("run", "/", "x\ny", "$(id)", "/usr/bin/env")
    done = strict.run(SUDO, "-n", "-u", "clio", "--", entry(strict), *words, user="alice")
    assert "TERM=dumb\n" in done.stdout and "LANG=C.UTF-8\n" in done.stdout


def test_the_entry_point_is_for_bots_alone(strict: Machine) -> None:
    assert "not for root" in strict.run(entry(strict), "run", "/", "dumb", "C", "id").stderr
    assert "is not a bot" in strict.run(entry(strict), "run", "/", "dumb", "C", "id", user="alice").stderr


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
    start = f"import sys; sys.path.insert(0, {str(CLONE / 'src')!r}); from agent_sandbox.admin.cli import main; "
    done = site.run("/usr/bin/python3", "-I", "-c", start + "sys.exit(main(['create', 'clio', '--strict', '--owner', 'alice']))")
    assert done.returncode == 125
    assert "--strict needs an installed copy" in done.stderr or "others can change" in done.stderr


def test_a_bot_can_become_strict_and_back(bots: Machine) -> None:
    assert bots.run(SUDO, "-n", "-u", "clio", "--", "/usr/bin/id", "-un", user="alice").stdout == "clio\n"  # control
    bots.must("update", "clio", "--strict")
    assert bots.run(SUDO, "-n", "-u", "clio", "--", "/usr/bin/id", user="alice").returncode == 1
    assert bots.run(BOTADM, "run", "clio", "id", "-un", user="alice").stdout == "clio\n"
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
