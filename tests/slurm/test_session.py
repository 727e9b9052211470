"""A whole session: stubs in the jail, the chaperon beside it, the real Slurm behind it, the job jailed on its node."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.slurm.conftest import Site

BACKENDS = ("bwrap", "landlock", "firejail")
JOB = """#!/bin/bash
#SBATCH --job-name=tried --time=5
echo "jailed $AGENT_SANDBOX in $PWD with $1"
cat "$2" && echo read the key
echo planted > "$3"
exit 3
"""
WAITS = """
sbatch --wait --job-name=waited --output=/dev/null --wrap='until [ -e go ]; do sleep 0.1; done; exit 4' > said &
for n in $(seq 100); do [ -s said ] && break; sleep 0.1; done
cat said; squeue --noheader --format=%i --name=waited
touch go; wait $!; echo $?; cat said
sbatch --wait --quiet --output=no/such/place --wrap=true; echo $?
"""


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def test_a_job_submitted_inside_runs_jailed_and_is_seen_in_the_queue(site: Site) -> None:
    jail = site.jail
    key = jail.write(jail.user.home / ".ssh/id_ed25519", "hunter2\n", 0o600)
    planted = jail.user.home / "planted"
    jail.write(jail.project / "job.sh", JOB)
    script = 'sbatch job.sh word "$1" "$2"; squeue --noheader --format="%j %u"; sbatch --no-such job.sh; srun hostname; echo "$?"'
    jail.configure('[slurm]\nenabled = "on"\n')
    inside = site.inside("sh", "-c", script, "sh", key, planted, options=())
    found = re.match(r"Submitted batch job (\d+)\n", inside.out)
    assert found, (inside.out, inside.err)
    assert inside.out.splitlines()[1:] == [f"tried {jail.user.name}", "1"], inside.err
    assert "--no-such" in inside.err and "srun: error:" in inside.err
    shown = site.slurm.wait(int(found[1]), 30)
    out = (jail.project / f"slurm-{found[1]}.out").read_text()
    assert out.splitlines()[0] == f"jailed 1 in {jail.project} with word"
    assert "read the key" not in out and not planted.exists()  # what is written in a throw-away home is gone with it
    assert (shown["ExitCode"], shown["JobName"]) == ("3:0", "tried")


def test_a_job_that_is_waited_for_is_named_at_once_and_its_end_explained(site: Site) -> None:
    outside = site.outside("sh", "-c", f"{WAITS}rm go said")
    inside = site.inside("sh", "-c", WAITS, options=())
    for said in (outside.out, inside.out):
        first, number, code, again, last = said.splitlines()
        assert (first, code, again) == (f"Submitted batch job {number}", "4", first), (outside, inside)
        assert last != "0"
    assert f"was not started: the job's output file '{site.jail.project}/no/such/place': No such file or directory" in inside.err


def test_where_slurm_is_installed_a_session_has_it_without_being_asked_and_says_so(site: Site) -> None:
    started = site.outside(site.jail.program, "--", "sbatch", "--version")
    assert started.out.startswith("slurm-wlm ") or started.out.startswith("slurm "), started.err
    assert "Slurm jobs run in the same jail" in started.err
    site.jail.configure('[slurm]\nenabled = "off"\n')
    without = site.outside(site.jail.program, "--", "sbatch", "--version")
    assert "Slurm jobs" not in without.err


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_the_real_programs_are_the_stub_or_refused_wherever_they_are(site: Site, backend: str) -> None:
    """Also those that only `module load slurm` would put on PATH."""
    jail = site.jail
    elsewhere = Path("/opt") / f"sandbox-test-{os.getpid()}" / "bin"
    module = elsewhere.parent / "modules/slurm/23.11.lua"
    elsewhere.mkdir(parents=True)
    module.parent.mkdir(parents=True)
    module.write_text(f'local root = "{elsewhere.parent}"\nprepend_path("PATH", pathJoin(root, "bin"))\n')
    try:
        shutil.copy("/usr/bin/sbatch", elsewhere / "sbatch")
        real = ["/usr/bin/sbatch", "/bin/sbatch", str(elsewhere / "sbatch")]
        jail.configure('[slurm]\nenabled = "on"\n')
        script = 'for one; do "$one" --no-such-option 2>&1; echo $?; done; env sbatch --no-such-option 2>&1; echo $?; /usr/bin/env true; echo $?'
        env = {"MODULEPATH": str(module.parents[1])}
        inside = site.inside("sh", "-c", script, "sh", *real, options=(), env=env)
        outside = site.outside("sh", "-c", script, "sh", *real, env=env)
    finally:
        shutil.rmtree(elsewhere.parent)
    assert outside.out.count("unrecognized option") == 4 and outside.out.endswith("\n0\n")  # control: they are the real ones
    answers = inside.out.splitlines()
    stub, refused = "is not an option that is known here", "Permission denied"
    assert sum(stub in line for line in answers) == (4 if backend == "bwrap" else 1), inside
    assert sum(refused in line for line in answers) == (0 if backend == "bwrap" else 3), inside
    assert answers[-1] == "0"  # the neighbours of what is refused work


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_real_programs_in_a_directory_of_the_users_are_the_stub_or_refused_and_what_agents_can_write_stays_theirs(site: Site, backend: str) -> None:
    jail = site.jail
    tools, own = jail.user.home / "tools/bin/sbatch", jail.project / "bin/sbatch"
    for path in (tools, own):
        jail.write(path, mode=0o755).write_bytes(Path("/usr/bin/sbatch").read_bytes())
    jail.configure(f'[slurm]\nenabled = "on"\n[filesystem]\nreadonly = ["{tools.parents[1]}"]\n')
    script = '"$1" --no-such-option 2>&1; rm "$2" && echo removed'
    env = {"PATH": f"{tools.parent}:{own.parent}:/usr/bin:/bin"}
    assert "unrecognized option" in site.outside("sh", "-c", script, "sh", tools, jail.project / "none", env=env).out  # control: it is the real one
    inside = site.inside("sh", "-c", script, "sh", tools, own, options=(), env=env)
    assert ("is not an option that is known here" if backend == "bwrap" else "Permission denied") in inside.out, inside
    assert inside.out.endswith("removed\n") and not own.exists(), inside
