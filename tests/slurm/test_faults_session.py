"""In a whole session, with a jail around the stubs: what becomes of it when its chaperon is killed, or its FIFOs are removed from inside."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.slurm.keeper import wait_for
from tests.slurm.conftest import Site

INSIDE = """
sbatch --hold --job-name=kept job.sh
touch ready
while [ ! -e go ]; do sleep 0.05; done
{act}
squeue; echo "squeue $?"
sbatch --hold job.sh; echo "sbatch $?"
"""
ENDED = "error: the chaperon of this session has ended"


def start(site: Site, act: str) -> subprocess.Popen[str]:
    jail = site.jail
    jail.write(jail.project / "job.sh", "#!/bin/sh\ntrue\n")
    jail.configure('[slurm]\nenabled = "on"\n')
    argv = [jail.program, "--quiet", "--", "sh", "-c", INSIDE.format(act=act)]
    words = site.slurm.at_default_places(jail.user, jail.project, argv)
    pipe = subprocess.PIPE
    return users.start_as(users.current_user(), words, env=jail.user.environment, cwd=jail.project, stdout=pipe, stderr=pipe)


def chaperons(user: users.TestUser) -> dict[int, Path]:
    """Those that hold an `ask` of their own open, by their pids, with the directory of their FIFOs."""
    found = {}
    for pid in users.processes():
        if users.owner(pid) == user.uid and users.state(pid) != "Z":
            try:
                target = os.readlink(f"/proc/{pid}/fd/3")
            except OSError:
                continue
            if target.endswith("/slurm/ask") and os.readlink(f"/proc/{pid}/cwd") == "/":
                found[pid] = Path(target).parent
    return found


def finish(site: Site, session: subprocess.Popen[str]) -> tuple[list[str], str]:
    (site.jail.project / "go").touch()
    out, err = session.communicate(timeout=60)
    return out.splitlines(), err


def queued(site: Site) -> list[str]:
    return site.outside("/usr/bin/squeue", "--me", "--noheader", "--format=%i", "--name=kept").out.split()


@pytest.mark.parametrize("backend", ["bwrap", "landlock", "firejail"], indirect=True)
def test_a_session_whose_chaperon_is_killed_goes_on_and_says_so(site: Site, backend: str) -> None:
    with start(site, "true") as session:
        wait_for((site.jail.project / "ready").exists, "the session")
        ((pid, fifos),) = chaperons(site.jail.user).items()
        os.kill(pid, signal.SIGKILL)
        out, err = finish(site, session)
    assert out[1:] == ["squeue 1", "sbatch 1"], err
    assert [f"squeue: {ENDED}" in err, f"sbatch: {ENDED}" in err] == [True, True]
    assert queued(site) == [out[0].split()[-1]]  # what it submitted before is still there
    assert not fifos.exists()
    shown = site.inside("squeue", "--noheader", "--format=%i", options=())
    assert shown.out.split() == [out[0].split()[-1]], shown.err  # and the next session of the project sees it
    site.outside("/usr/bin/scancel", "--name=kept")


def test_a_session_that_does_not_ask_has_no_chaperon(site: Site) -> None:
    site.jail.configure('[slurm]\nenabled = "on"\n')
    wait = "while [ ! -e {} ]; do sleep 0.05; done"
    waiting = f'touch ready; {wait.format("go")}; squeue --noheader; echo "squeue $?"; touch asked; {wait.format("on")}'
    words = site.slurm.at_default_places(site.jail.user, site.jail.project, [site.jail.program, "--quiet", "--", "sh", "-c", waiting])
    with users.start_as(users.current_user(), words, env=site.jail.user.environment, cwd=site.jail.project, stdout=subprocess.PIPE) as session:
        wait_for((site.jail.project / "ready").exists, "the session")
        before = chaperons(site.jail.user)
        (site.jail.project / "go").touch()
        wait_for((site.jail.project / "asked").exists, "the answer")
        after = chaperons(site.jail.user)
        (site.jail.project / "on").touch()
        out, _ = session.communicate(timeout=60)
    assert (len(before), len(after)) == (0, 1)
    assert out.splitlines()[-1] == "squeue 0"


def test_a_jail_that_removes_its_fifos_harms_itself_alone(site: Site) -> None:
    with start(site, 'rm -rf "$(cat where)"/*; ls "$(cat where)"') as session:
        wait_for((site.jail.project / "ready").exists, "the session")
        ((pid, fifos),) = chaperons(site.jail.user).items()
        assert (fifos / "ask").exists()
        site.jail.write(site.jail.project / "where", "/run/agent-sandbox/slurm")  # where the jail has them
        out, err = finish(site, session)
    assert out[1:] == ["squeue 1", "sbatch 1"], err
    assert [f"squeue: {ENDED}" in err, f"sbatch: {ENDED}" in err] == [True, True]
    assert queued(site) == [out[0].split()[-1]]
    wait_for(lambda: not chaperons(site.jail.user), "end of the chaperon")
    assert users.state(pid) == "Z" or pid not in users.processes()
    assert not fifos.exists()
    site.outside("/usr/bin/scancel", "--name=kept")
