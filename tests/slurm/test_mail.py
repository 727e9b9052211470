"""Slurm sends mail for a jail only where the jail may: one switch for mailers, options of sbatch, what explain says, and jobs."""

from __future__ import annotations

import re

import pytest

from tests.slurm.conftest import Site

SUBMIT = """
sbatch --mail-type=END --mail-user=ada@example.org --time=5 --wrap='mail ada@example.org; echo "$?"' 2>&1
agent-sandbox explain sbatch --mail-type=END --wrap=true; mail 2> told; echo "mail: $?"
for one in sbatch mail; do command -v $one; done; echo "$PATH" | tr : '\\n' | grep -c /stubs
"""


@pytest.mark.parametrize(("said", "network", "is_refused"), [("auto", "isolated", True), ("on", "open", True), ("auto", "open", False)])
def test_the_mail_of_jobs_follows_the_switch(site: Site, said: str, network: str, is_refused: bool) -> None:
    jail = site.jail
    jail.configure(f'[slurm]\nenabled = "on"\n[mail]\nstubs = "{said}"\n')
    options = ("--network", network)
    explained = site.outside(jail.program, *options, "explain", "sbatch", "--mail-type=END", "--wrap=true")
    inside = site.inside("sh", "-c", SUBMIT, options=options)
    answers = inside.out + inside.err
    assert ("mail is off" in explained.out) == is_refused, explained
    assert inside.out.count("mail is off") == (3 if is_refused else 0), answers  # each option of the two, and the one of explain
    assert bool(re.search(r"^Submitted batch job \d+$", inside.out, re.M)) != is_refused, answers
    assert f"mail: {77 if is_refused else 127}\n" in inside.out, answers  # none is installed here
    places = ["/run/agent-sandbox/stubs/sbatch", *(["/run/agent-sandbox/stubs/mail"] if is_refused else []), "1"]
    assert inside.out.splitlines()[-len(places) :] == places


def test_a_mailer_is_refused_in_a_job_as_well(site: Site) -> None:
    jail = site.jail
    jail.configure('[slurm]\nenabled = "on"\n')
    inside = site.inside("sbatch", "--time=5", "--wrap=mail ada@example.org; echo code $?", options=())
    found = re.match(r"Submitted batch job (\d+)\n", inside.out)
    assert found, inside
    site.slurm.wait(int(found[1]), 30)
    out = (jail.project / f"slurm-{found[1]}.out").read_text()
    assert "agent-sandbox: mail (arguments: 1): no mail is sent" in out and out.endswith("code 77\n")
