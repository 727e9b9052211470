"""What goes wrong on a node before the jail is there: the job ends with a named reason in its log, and nothing of it runs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_sandbox.chaperon import envelope
from agent_sandbox.chaperon.envelope import Launcher
from agent_sandbox.config.record import replace
from tests.machines import users
from tests.machines.jail import ADMIN_DIR, Jail
from tests.machines.slurm.cluster import Slurm
from tests.slurm.envelopes import Ended, Envelopes


@pytest.fixture
def envelopes(slurm: Slurm, member: users.TestUser, jail: Jail) -> Iterator[Envelopes]:
    given = Envelopes(slurm=slurm, jail=jail, settings={})
    yield given
    given.settle()


@pytest.fixture
def own(own_slurm: Slurm, user: users.TestUser, jail: Jail) -> Iterator[Envelopes]:
    """On a machine whose programs and settings can be changed."""
    own_slurm.allow(user)
    given = Envelopes(slurm=own_slurm, jail=jail, settings={})
    yield given
    given.settle()


def script(envelopes: Envelopes) -> str:
    """It leaves a mark wherever it runs, in a jail or bare."""
    return f'#!/bin/sh\necho ran; touch "{envelopes.jail.project}/mark"\n'


def fails(envelopes: Envelopes, launcher: Launcher | None = None, **job: Any) -> Ended:
    """The job's end; first the control: without the fault the script runs and leaves its mark."""
    mark = envelopes.jail.project / "mark"
    well = envelopes.run(script(envelopes))
    assert (well.out, mark.exists()) == ("ran\n", True), well.log
    mark.unlink()
    done = envelopes.run(envelopes.job(script(envelopes), **job), launcher=launcher)
    assert (done.shown["JobState"], done.out, mark.exists()) == ("FAILED", "", False)
    return done


Change = Callable[[Launcher], Launcher]


@pytest.mark.parametrize(
    ("change", "code", "reason"),
    [
        (lambda it: replace(it, library="/nonexistent/lib"), "125:0", "no usable launcher at /nonexistent/lib on this node (No module named"),
        (lambda it: replace(it, python="/nonexistent/python3"), "2:0", "/nonexistent/python3"),
        (lambda it: replace(it, library="/usr/lib/python3"), "125:0", "no usable launcher at /usr/lib/python3 on this node"),
    ],
    ids=["no package", "no interpreter", "another package"],
)
def test_a_node_without_the_launcher(envelopes: Envelopes, change: Change, code: str, reason: str) -> None:
    done = fails(envelopes, change(envelopes.launcher))
    assert (done.code, reason in done.log) == (code, True), done.log


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"project": "/nonexistent/project"}, "/nonexistent/project: the project does not exist, or cannot be reached"),
        ({"project": "/"}, "project"),
        ({"settings": {"sandbox.unheard_of": True}}, "sandbox.unheard_of is not a key here"),
        ({"settings": {"sandbox.backend": 7}}, "sandbox.backend"),
        ({"variables": "/nonexistent/x.env"}, "/nonexistent/x.env: the job's variables cannot be read: No such file"),
        ({"variables": "/etc/passwd"}, "not a private file of yours"),
        ({"variables": "/proc/self/root"}, "cannot be read: "),
    ],
    ids=str,
)
def test_a_job_that_does_not_fit_the_node(envelopes: Envelopes, job: dict[str, Any], reason: str) -> None:
    done = fails(envelopes, **job)
    assert done.code == "125:0"
    assert f"agent-sandbox: job {done.id} was not started: " in done.log
    assert reason in done.log


def test_variables_that_others_can_read_are_not_used(envelopes: Envelopes) -> None:
    shared = envelopes.jail.write(envelopes.place / "shared.env", "A=1", 0o644)
    assert f"{shared}: the file of the job's variables is not a private file of yours" in fails(envelopes, variables=str(shared)).log


def test_another_version_of_the_launcher(envelopes: Envelopes, monkeypatch: pytest.MonkeyPatch) -> None:
    fails(envelopes, project="/nonexistent/control")
    monkeypatch.setattr(envelope, "FORMAT", 7)
    done = envelopes.run(script(envelopes))
    assert (done.code, done.out) == ("125:0", "")
    assert "the job was made by another version of agent-sandbox (format 7, here 1)" in done.log


def on_the_node(slurm: Slurm, *words: str) -> None:
    subprocess.run(("/usr/bin/nsenter", f"--mount=/proc/{slurm.keeper}/ns/mnt", "--", *words), check=True)


def test_a_node_where_bwrap_cannot_be_used(own: Envelopes) -> None:
    insists = replace_settings(own, {"sandbox.backend": "bwrap"})
    assert insists.run(script(own)).out == "ran\n"
    (own.jail.project / "mark").unlink()
    on_the_node(own.slurm, "/bin/mount", "--bind", "/bin/false", "/usr/bin/bwrap")
    done = insists.run(script(own))
    assert (done.code, done.out, (own.jail.project / "mark").exists()) == ("125:0", "", False)
    assert "bwrap" in done.log


def test_a_node_whose_admin_is_stricter(own: Envelopes) -> None:
    """The control first: without that admin the job has the variable and writes where the session may."""
    more = replace_settings(own, {"environment.set": [["MINE=1", 1]], "filesystem.home": "write", "environment.allow": [["A_KEY", 1]]})
    tries = '#!/bin/sh\necho "$A_KEY $OPEN"; touch ~/made && echo made\n'
    given = {"A_KEY": "k", "OPEN": "o"}
    assert more.run(tries, environment=given).out == "k o\nmade\n"
    admin(own.slurm, '[filesystem]\nhome = "restricted"\n[environment]\nblock = ["OPEN", "A_KEY"]\n')
    done = more.run(tries, environment=given)
    assert done.out.startswith(" \ntouch: ")
    assert "filesystem.home" in done.log  # the clamp is told
    admin(own.slurm, "[filesystem\n")
    broken = more.run(tries, environment=given)
    assert (broken.code, broken.out) == ("125:0", "")
    assert f"{ADMIN_DIR}/config.toml" in broken.log


def replace_settings(envelopes: Envelopes, settings: dict[str, object]) -> Envelopes:
    return Envelopes(slurm=envelopes.slurm, jail=envelopes.jail, settings=settings)


def admin(slurm: Slurm, text: str) -> None:
    place = f"mount -t tmpfs -o mode=755 none /app && mkdir -p {ADMIN_DIR} && printf %s \"$1\" > {ADMIN_DIR}/config.toml"
    subprocess.run(("/bin/mkdir", "-p", "/app"), check=True)
    on_the_node(slurm, "/bin/sh", "-c", place, "sh", text)
