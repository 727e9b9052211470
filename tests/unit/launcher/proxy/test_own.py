"""Which addresses are this machine's own: asked of the real kernel, in a network of the test's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.machines.needs import need_root

SOURCE = Path(__file__).resolve().parents[4] / "src"
ASK = """
import json, socket, sys
sys.path.insert(0, sys.argv[1])
from agent_sandbox.launcher.proxy.decide import own_among
asked = '203.0.113.7 203.0.113.8 64:ff9b::cb00:7107 2002:cb00:7107::1 ::ffff:0:cb00:7107 64:ff9b::cb00:7108 2001:db8::7 2001:db8::8'
print(json.dumps([own_among(one) for one in asked.split()]))
held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
for one in held:
    one.bind(("203.0.113.7", 0))
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("203.0.113.7", 0))
except OSError as error:
    print(json.dumps([error.errno, own_among("203.0.113.7"), own_among("203.0.113.8")]))
"""
SET_UP = """
ip link set lo up && ip addr add 203.0.113.7/32 dev lo && ip -6 addr add 2001:db8::7/128 dev lo nodad || exit 99
echo 40000 40003 > /proc/sys/net/ipv4/ip_local_port_range && exec "$@"
"""


def test_an_address_of_ours_is_known_in_every_form_and_where_the_kernel_cannot_tell() -> None:
    """No port that is free there: another program can bring that about, and it is no answer."""
    need_root()
    words = ["/usr/bin/unshare", "--net", "/bin/sh", "-c", SET_UP, "sh", sys.executable, "-I", "-c", ASK, str(SOURCE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    own, full = map(json.loads, done.stdout.splitlines())
    ours = ["203.0.113.7"]
    assert own == [ours, [], ours, ours, ours, [], ["2001:db8::7"], []]
    assert full == [98, ours, []]
