"""A jail that has taken every process of the user's knocks at the chaperon's door: nobody can be started, and nothing ends for that."""

from __future__ import annotations

import pytest

from tests.escapes.inside import python
from tests.slurm.conftest import Site

BACKENDS = ("bwrap", "landlock", "firejail")
MOST = 80
FILL = """
import glob, os, signal, subprocess, time
own = os.environ.get("AGENT_SANDBOX_OWN")
(place,) = [f"{os.path.dirname(own)}/slurm"] if own else glob.glob("/tmp/agent-sandbox-*/slurm") or ["/run/agent-sandbox/slurm"]
ask = os.open(f"{place}/ask", os.O_WRONLY | os.O_NONBLOCK)
started = []
try:
    while len(started) < 1000:
        child = os.fork()
        if child == 0:
            signal.pause()
        started.append(child)
except BlockingIOError:
    print("full", flush=True)
os.write(ask, b"\\n")
time.sleep(1)
for child in started:
    os.kill(child, 9)
    os.waitpid(child, 0)
print(subprocess.run(["squeue", "-h"]).returncode)
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_session_goes_on_and_the_chaperon_starts_when_it_can(site: Site, backend: str) -> None:
    site.jail.configure('[slurm]\nenabled = "on"\n')
    command = (site.jail.program, "--quiet", "--backend", backend, "--", *python(FILL))
    done = site.outside("bash", "-c", f'ulimit -Su {MOST}; exec "$@"', "bash", *command)
    assert (done.code, done.out.split()) == (0, ["full", "0"]), done
