"""A jail that asks for far more than there is gets what there is, outside nothing grows, and its other programs are served.

One backend; with SANDBOX_SOAK=1 all of them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.machines.jail import Jail
from tests.network.test_proxy_process import Answering, end, proxies, server, start

__all__ = ["server"]  # the fixture
BACKENDS = ("bwrap", "firejail", "landlock") if os.environ.get("SANDBOX_SOAK") == "1" else ("bwrap",)
pytestmark = pytest.mark.parametrize("backend", BACKENDS, indirect=True)
CROWD = Path(__file__).with_name("crowd.py").read_text()
MOST_MEMORY, MOST_PLACES = 60_000_000, 2048


@pytest.mark.parametrize(("kind", "many"), [("silent", 10_000), ("heads", 3_000)])
def test_a_crowd_that_never_asks_is_bounded_and_others_are_served(jail: Jail, server: Answering, kind: str, many: int) -> None:
    script = jail.write(jail.project / "crowd.py", CROWD)
    popen, argv = start(jail, f"exec python3 -I '{script}' {server.port} {kind} {many}", server)
    assert popen.stdout
    assert popen.stdout.readline() == b"standing\n"
    told = json.loads(popen.stdout.readline())
    (proxy,) = proxies(popen.pid)
    memory = resident(proxy)
    held = len(os.listdir(f"/proc/{proxy}/fd"))
    end(popen, argv)
    print(f"{kind}: {told}, {held} descriptors, {memory / 1e6:.1f} MB")
    assert told["crowd"] > MOST_PLACES  # control: more than there are places
    assert max(told["within"]) < 30
    assert held < 2 * MOST_PLACES + 200
    assert memory < MOST_MEMORY


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_what_is_over_is_forgotten(jail: Jail, server: Answering) -> None:
    """A launcher collects no garbage, since it is over soon, and the proxy comes from one."""
    script = jail.write(jail.project / "crowd.py", CROWD)
    popen, argv = start(jail, f"exec python3 -I '{script}' {server.port} row 2500", server)
    assert popen.stdout
    seen = []
    for count in (b"300\n", b"2500\n"):
        assert popen.stdout.readline() == count
        seen.append(resident(proxies(popen.pid)[0]))
    end(popen, argv)
    assert seen[1] - seen[0] < 3_000_000, seen
