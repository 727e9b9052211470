"""The proxy of a session as a process: started by the first connection, and for this jail alone.

The destination is a server on this machine's loopback that an admin has opened: with that it can be reached, and the control is real.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.jail import Jail
from tests.machines.needs import need, need_root

pytestmark = pytest.mark.parametrize("backend", ("bwrap", "firejail", "landlock"), indirect=True)

OPEN = {"config.toml": '[network]\nmode = "proxied"\nfloor_open = ["127.0.0.1:{port}"]\n'}
FETCH = "curl -sS -m 20 --noproxy none.example http://127.0.0.1:{port}/"


class Answering(threading.Thread):
    """Says `hello` to whoever connects, and holds the connection of who says HOLD."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.held: list[socket.socket] = []

    def run(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            said = peer.recv(4096)
            if b"/hold" in said:
                self.held.append(peer)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun")
            else:
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n")
                peer.close()


@pytest.fixture
def server() -> Iterator[Answering]:
    need_root()
    thread = Answering()
    thread.start()
    yield thread
    thread.listener.close()
    for peer in thread.held:
        peer.close()


def admin(server: Answering) -> dict[str, str]:
    return {name: text.format(port=server.port) for name, text in OPEN.items()}


def start(jail: Jail, script: str, server: Answering) -> tuple[subprocess.Popen[bytes], object]:
    argv = jail.argv("--quiet", "--", "bash", "-c", script, admin=admin(server))
    words = argv.__enter__()
    popen = subprocess.Popen(
        words, cwd=jail.project, env=dict(jail.user.environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    return popen, argv


def proxies(session: int) -> list[int]:
    """A proxy is a launcher by its name, and its first descriptor after the standard ones is its listening socket."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _is_proxy(name) and _ancestor(int(name), session)]


def _is_proxy(pid: str) -> bool:
    try:
        return b"/bin/agent-sandbox" in Path(f"/proc/{pid}/cmdline").read_bytes() and os.readlink(f"/proc/{pid}/fd/3").startswith("socket:")
    except OSError:
        return False


def _ancestor(pid: int, wanted: int) -> bool:
    while pid > 1:
        if pid == wanted:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def wait_for(what: object, seconds: float = 15) -> None:
    assert callable(what)
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def test_what_an_admin_opened_is_reached_and_one_line_of_the_log_says_so(jail: Jail, server: Answering) -> None:
    fetch = FETCH.format(port=server.port)
    assert jail.outside("bash", "-c", fetch).out == "hello\n"  # control
    inside = jail.run("bash", "-c", fetch.replace("--noproxy none.example", "--noproxy none.example -x $http_proxy"), admin=admin(server))
    assert (inside.code, inside.out, inside.err) == (0, "hello\n", "")
    (line,) = [one for one in log(jail) if one["event"] == "network"]
    told = {name: line[name] for name in ("protocol", "host", "port", "verdict", "rule", "address")}
    assert told == {
        "protocol": "http", "host": "127.0.0.1", "port": server.port, "verdict": "allow", "rule": "network.default = allow", "address": "127.0.0.1",
    }  # fmt: skip
    assert line["sent"] > 0 and line["received"] > 6


def log(jail: Jail) -> list[dict[str, object]]:
    files = sorted((jail.user.home / ".local" / "state" / "agent-sandbox" / "audit").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_a_session_that_never_connects_has_no_proxy(jail: Jail, server: Answering) -> None:
    popen, argv = start(jail, "echo ready; sleep 20", server)
    assert popen.stdout and popen.stdout.readline() == b"ready\n"
    assert proxies(popen.pid) == []
    end(popen, argv)


def end(popen: subprocess.Popen[bytes], argv: object) -> bytes:
    popen.send_signal(signal.SIGTERM)
    _, said = popen.communicate(timeout=30)
    argv.__exit__(None, None, None)  # type: ignore[attr-defined]
    return said


HOLD = """
curl -sS -m 20 -x $http_proxy --noproxy none.example http://127.0.0.1:{port}/ || exit 9
echo ready
curl -sS -m 20 -x $http_proxy --noproxy none.example http://127.0.0.1:{port}/hold; echo "held $?"
curl -sS -m 20 -x $http_proxy --noproxy none.example http://127.0.0.1:{port}/; echo "next $?"
curl -sS -m 20 --noproxy '*' http://127.0.0.1:{port}/; echo "direct $?"
"""


def test_a_job_without_a_network_does_not_load_the_file_of_the_session_that_sent_it(jail: Jail) -> None:
    """It is not there any more; and where /tmp is everybody's, somebody else may have made one of that name."""
    need("node")
    theirs = {"NODE_OPTIONS": "--no-warnings --require=/tmp/agent-sandbox-0123456789ab/own/node.cjs"}
    inside = jail.run("sh", "-c", "node -p 1; echo $NODE_OPTIONS", options=("--quiet", "--network", "isolated"), env=theirs)
    assert (inside.code, inside.out, inside.err) == (0, "1\n--no-warnings\n", "")


def test_the_last_lines_are_in_the_log_when_the_session_is_over(jail: Jail, server: Answering) -> None:
    script = f"for n in 1 2 3 4 5; do {FETCH.format(port=server.port)} -x $http_proxy -o /dev/null & done; wait"
    assert jail.run("bash", "-c", script, admin=admin(server)).code == 0
    assert [one["verdict"] for one in log(jail) if one["event"] == "network"] == ["allow"] * 5


def test_another_user_and_the_same_user_outside_get_nothing_from_the_proxy(jail: Jail, server: Answering) -> None:
    """Where the jail has a network of its own nobody is there; on the shared loopback the one who is not told of gets no answer."""
    popen, argv = start(jail, "echo $http_proxy; " + HOLD.format(port=server.port), server)
    assert popen.stdout
    port = popen.stdout.readline().decode().strip().rpartition(":")[2]
    assert popen.stdout.readline() == b"hello\n"  # control: from inside it serves
    wait_for(lambda: server.held)
    ask = f"curl -sS -m 5 -x http://127.0.0.1:{port} --noproxy none.example http://127.0.0.1:{server.port}/"
    for answer in (jail.outside("bash", "-c", ask), _as_root(ask)):
        assert answer.out == ""
        assert answer.code in (7, 52, 56), answer  # nobody there; an end without an answer
    end(popen, argv)


def _as_root(ask: str) -> object:
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=20)
    return type("Result", (), {"code": done.returncode, "out": done.stdout})()
