"""A job has the session's CA bundle, made on its own node from the same files; where they are not there, the job says so."""

from __future__ import annotations

import re

import pytest

from tests.machines.authority import make, need_parser
from tests.slurm.conftest import Site

JOB = '#!/bin/bash\nfor name in SSL_CERT_FILE GIT_SSL_CAINFO AWS_CA_BUNDLE; do cmp "${!name}" "$SSL_CERT_FILE" && tail -n 3 "${!name}"; done\n'


def submit(site: Site, *words: str) -> int:
    done = site.inside("sbatch", *words, "job.sh", options=())
    found = re.match(r"Submitted batch job (\d+)\n", done.out)
    assert found, (done.out, done.err)
    return int(found[1])


@pytest.mark.parametrize("backend", ["bwrap", "landlock"], indirect=True)
def test_a_job_has_the_bundle_and_one_whose_ca_file_is_gone_names_it(site: Site) -> None:
    need_parser()
    jail, authority = site.jail, make("Site CA")
    file = jail.write(jail.user.home / "site" / "ca.pem", authority.pem)
    jail.write(jail.project / "job.sh", JOB)
    jail.configure(f'[slurm]\nenabled = "on"\n[network]\nca_bundle = ["{file}"]\n')
    job, held = submit(site), submit(site, "--hold")
    site.slurm.wait(job, 30)
    last = "".join(authority.pem.splitlines(keepends=True)[-3:])
    assert (jail.project / f"slurm-{job}.out").read_text() == last * 3

    file.unlink()
    assert site.slurm.run(jail.user, "/usr/bin/scontrol", "release", str(held)).returncode == 0
    assert site.slurm.wait(held, 30)["JobState"] == "FAILED"
    logs = "".join(path.read_text(errors="replace") for path in (jail.user.home / ".local/state/agent-sandbox").rglob(f"*{held}*") if path.is_file())
    assert f"job {held} was not started: session: the CA file {file} cannot be read on " in logs
    assert not (jail.project / f"slurm-{held}.out").exists()
