"""The ten minutes of docs/bots.md, word for word, by a new user with sudo and a clone."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.needs import need, need_root
from tests.machines.site import CLONE, Machine, machine

PAGE = (CLONE / "docs/bots.md").read_text()


@pytest.fixture
def new_machine() -> Iterator[Machine]:
    """Nothing of ours is installed; alice may use sudo, and has cloned the repository."""
    need_root()
    for tool in ("sudo", "make", "git"):
        need(tool)
    local = Path(tempfile.mkdtemp(prefix="sbxt-local-", dir="/var/tmp"))
    local.chmod(0o755)
    try:
        with machine(local) as site:
            site.add_person("alice")
            site.shell("echo 'alice ALL=(ALL:ALL) NOPASSWD: ALL' > /etc/sudoers.d/alice; chmod 440 /etc/sudoers.d/alice")
            copy_clone(site.root / "home/alice/agent-sandbox")
            site.shell("chown -hR alice:alice /home/alice/agent-sandbox")
            yield site
    finally:
        shutil.rmtree(local, ignore_errors=True)


def copy_clone(target: Path) -> None:
    listed = subprocess.run(["git", "-c", f"safe.directory={CLONE}", "ls-files", "-z"], cwd=CLONE, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (CLONE / name).is_symlink() or (CLONE / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CLONE / name, target / name, follow_symlinks=False)


def blocks() -> list[str]:
    part = PAGE.split("## Ten minutes")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", part, re.DOTALL)


def test_the_quick_start_works_word_for_word(new_machine: Machine) -> None:
    install, begin, *rest = blocks()
    before = new_machine.state("/var/bot", "/var/lib/botadm")
    new_machine.shell(install, user="alice", cwd="/home/alice/agent-sandbox")
    said = new_machine.shell(begin, user="alice", cwd="/home/alice/agent-sandbox")
    assert "nothing was changed" in said and said.endswith("clio                 alice                enabled   open rule\n")
    said = new_machine.shell("\n".join(rest), user="alice", cwd="/home/alice")  # a new log-in, as the page says
    assert "\n42\ndone\n" in said and said.count("refused\n") == 3 and "clio: all as it should be" in said
    assert (new_machine.root / "home/alice/simulation/result.txt").read_text() == "done\nand checked\n"
    assert new_machine.state("/var/bot", "/var/lib/botadm") == before


def test_only_root_installs_for_everybody(new_machine: Machine) -> None:
    done = new_machine.run("make", "install-system", user="alice", cwd="/home/alice/agent-sandbox")
    assert done.returncode == 2 and "only root installs for everybody" in done.stderr
    assert new_machine.shell("ls /usr/local") == ""


def test_every_command_of_the_page_exists() -> None:
    from agent_sandbox.admin.cli import parser

    words = set(re.findall(r"\bbotadm ([a-z]+)", PAGE)) - {"works"}
    table = set(re.findall(r"`([a-z]+)(?: |`)", "\n".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))))
    actions = [action for action in parser()._actions if action.choices]
    known = set(actions[0].choices or ())
    assert words <= known
    assert table == known
