"""A job's proxy reads credentials on its own node, where they live in a file; what lives in the session's variables stays there, in words."""

from __future__ import annotations

import re
import secrets

import pytest

from agent_sandbox.chaperon.envelope import read_data
from tests.slurm.conftest import Site

SECRET = f"sk-job-{secrets.token_hex(16)}"
ENTRY = '[[network.inject]]\nname = "{name}"\nhost = "localhost:9"\nheader = "x-api-key: {{secret}}"\nbase_url_variable = "{name}_URL"\n'
JOB = '#!/bin/bash\nfor url in $kept_URL $said_URL; do curl -sS -m 20 -w "%{http_code}\\n" $url/x; done; env\n'


@pytest.mark.parametrize("backend", ["bwrap", "landlock"], indirect=True)
def test_a_secret_in_a_file_serves_jobs_and_one_in_a_variable_does_not(site: Site) -> None:
    jail = site.jail
    key = jail.write(jail.user.home / "keys" / "k", SECRET, 0o600)
    jail.write(jail.project / "job.sh", JOB)
    entries = ENTRY.format(name="kept") + f'file = "{key}"\n' + ENTRY.format(name="said") + 'env = "SAID"\n'
    jail.configure(f'[slurm]\nenabled = "on"\n[network]\nmode = "proxied"\n{entries}')
    done = site.inside("sbatch", "job.sh", options=(), env={"SAID": SECRET})
    found = re.match(r"Submitted batch job (\d+)\n", done.out)
    assert found, (done.out, done.err)
    job = int(found[1])
    site.slurm.wait(job, 30)
    out = (jail.project / f"slurm-{job}.out").read_text()
    assert "@PORT@" not in out
    assert "the network policy refuses localhost:9" in out and "\n403\n" in out  # it was there: the lists had the next word
    assert "the credential said for localhost:9 is not there: the variable SAID is not set where this was started. Ask the user.\n503\n" in out
    state = [path for path in (jail.user.home / ".local/state/agent-sandbox").rglob("*") if path.is_file()]
    assert [path for path in (*state, jail.project / f"slurm-{job}.out") if SECRET.encode() in path.read_bytes()] == []
    script = site.slurm.run(jail.user, "/usr/bin/scontrol", "write", "batch_script", str(job), "-").stdout
    packed = max(re.findall(r"[A-Za-z0-9+/=]{100,}", script), key=len)
    carried = repr(read_data(packed))
    assert f"file {key}" in carried and SECRET not in carried  # what the envelope carries: where it lives
    assert any(b"network.inject said" in path.read_bytes() for path in state)  # named in the job's log
