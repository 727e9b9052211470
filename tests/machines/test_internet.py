"""The made internet: nothing of it is left, whatever becomes of its maker, and two of them do not meet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.machines.internet.machine import ROOT, internet
from tests.machines.internet.places import HOST
from tests.machines.needs import need, need_root

MAKE = """
from tests.machines.internet.machine import internet
with internet() as net:
    print(net.directory, net.host.pid, net.far.pid, net.socket, flush=True)
    input()
"""


def processes_in(directory: str, *pids: str) -> list[str]:
    """Holders of the namespaces, and whoever was started with the directory."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
            words = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        if state != "Z" and (pid in pids or directory in words):
            found.append(words.replace("\0", " "))
    return found


def test_when_its_maker_is_killed_nothing_is_left() -> None:
    need_root()
    need("dnsmasq")
    maker = subprocess.Popen([sys.executable, "-c", MAKE], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert maker.stdout
    directory, *pids, socket = maker.stdout.readline().split()
    assert len(processes_in(directory, *pids)) >= 5 and Path(directory).exists() and Path(socket).exists()  # holders, servers, name server
    maker.send_signal(signal.SIGKILL)
    maker.communicate()
    deadline = time.monotonic() + 20
    while processes_in(directory, *pids) or Path(directory).exists() or Path(socket).exists():
        assert time.monotonic() < deadline, processes_in(directory, *pids)
        time.sleep(0.05)


def test_two_of_them_have_the_same_addresses_and_do_not_meet() -> None:
    with internet() as one, internet() as other:
        (other.directory / "www" / "mark").write_text("other\n")
        asked = [
            subprocess.run(net.host.argv(["curl", "-s", "-o", "-", f"http://{host}/mark"]), capture_output=True, text=True).stdout
            for net in (one, other) for host in ("www.example.org", f"{HOST}:8080")
        ]  # fmt: skip
    assert [text == "other\n" for text in asked] == [False, False, True, True]
