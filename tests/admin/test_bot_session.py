"""`agent-sandbox --bot clio …`: the whole jail runs as the bot, under the person's settings and the admin's."""

from __future__ import annotations

import subprocess

import pytest

from tests.machines.site import Machine

LAUNCHER = "/usr/local/bin/agent-sandbox"
BACKENDS = ("bwrap", "firejail", "landlock")
PROJECT = "/home/alice/work"


@pytest.fixture
def shared(bots: Machine) -> Machine:
    """alice's home is hers alone; the project below it is shared."""
    bots.shell(f"mkdir -m 700 .ssh .aws && echo hunter2 | tee .ssh/id_ed25519 >.aws/credentials && mkdir {PROJECT} && echo mine >{PROJECT}/hers", user="alice", cwd="/home/alice")
    bots.must("share", "-r", PROJECT)
    return bots


def inside(machine: Machine, *command: str, options: tuple[str, ...] = ("--quiet",), **more: object) -> subprocess.CompletedProcess[str]:
    given = {"user": "alice", "cwd": PROJECT, **more}
    return machine.run(LAUNCHER, "--bot", "clio", *options, "--", *command, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_jail_runs_as_the_bot_and_what_it_makes_is_the_persons_too(shared: Machine, backend: str) -> None:
    script = "id -un; cat hers; echo more >>hers; echo new >made; mkdir -p deep/er; echo new >deep/er/made; umask; echo $HOME; exit 7"
    done = inside(shared, "bash", "-c", script, options=("--quiet", "--backend", backend))
    assert (done.returncode, done.stdout.splitlines()[:3]) == (7, ["clio", "mine", "0007"]), done.stderr
    assert shared.shell("cat hers made deep/er/made; echo changed >>made; rm deep/er/made; stat -c '%U %G' made", user="alice", cwd=PROJECT) == (
        "mine\nmore\nnew\nnew\nclio bot\n"
    )
