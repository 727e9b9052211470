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
    resident = int(Path(f"/proc/{proxy}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    held = len(os.listdir(f"/proc/{proxy}/fd"))
    end(popen, argv)
    print(f"{kind}: {told}, {held} descriptors, {resident / 1e6:.1f} MB")
    assert told["crowd"] > MOST_PLACES  # control: more than there are places
    assert max(told["within"]) < 30
    assert held < 2 * MOST_PLACES + 200
    assert resident < MOST_MEMORY
