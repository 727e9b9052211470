"""Whatever dies while connections are open: they end at once, nothing opens up, somebody says what died, and nothing is left.

Also a proxy that cannot be started: it is named, and nobody gets out without it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.jail import Jail
from tests.network.test_proxy_process import Answering, admin, log, proxies, server, wait_for
from tests.process.shell import until
from tests.process.test_nothing_left import left

__all__ = ["server"]  # the fixture
pytestmark = pytest.mark.parametrize("backend", ("bwrap", "firejail", "landlock"), indirect=True)

# A plain request and a tunnel that stay open, then what can still be reached, by the proxy and without it.
OPEN = """
get() {{ curl -sS -m 20 --noproxy none.example "$@"; }}
get -x $http_proxy http://127.0.0.1:{port}/ || exit 9
get -x $http_proxy http://127.0.0.1:{port}/hold >plain 2>&1 & plain=$!
get -p -x $http_proxy http://127.0.0.1:{port}/hold >tunnel 2>&1 & tunnel=$!
wait $plain; echo "plain $?"
wait $tunnel; echo "tunnel $?"
get -x $http_proxy http://127.0.0.1:{port}/; echo "next $?"
curl -sS -m 20 --noproxy '*' http://127.0.0.1:{port}/; echo "direct $?"
"""
KNOCK = """
echo ready; read line
curl -sS -m {patience} --noproxy none.example -x $http_proxy http://127.0.0.1:{port}/; echo "first $?"
curl -sS -m 20 --noproxy '*' http://127.0.0.1:{port}/; echo "direct $?"
read line
curl -sS -m 20 --noproxy none.example -x $http_proxy http://127.0.0.1:{port}/; echo "second $?"
"""


@contextlib.contextmanager
def session(jail: Jail, script: str, server: Answering) -> Iterator[subprocess.Popen[str]]:
    with jail.argv("--quiet", "--", "bash", "-c", script, admin=admin(server)) as argv:
        popen = subprocess.Popen(
            argv, cwd=jail.project, env=dict(jail.user.environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, text=True,
        )  # fmt: skip
        try:
            yield popen
        finally:
            popen.kill()
            popen.communicate()


@contextlib.contextmanager
def connected(jail: Jail, server: Answering) -> Iterator[tuple[subprocess.Popen[str], dict[str, int]]]:
    """A session with two connections open, and who is who in it."""
    with session(jail, OPEN.format(port=server.port), server) as popen:
        assert popen.stdout and popen.stdout.readline() == "hello\n"  # control: it works
        wait_for(lambda: len(server.held) == 2)
        (proxy,) = proxies(popen.pid)
        guard = parent(proxy)
        (other,) = set(children(guard)) - {proxy}
        yield popen, {"proxy": proxy, "guard": guard, "launcher": parent(guard), "jail": other}


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def ended(server: Answering) -> bool:
    """Both connections, as the server sees them."""
    ready = select.select(server.held, [], [], 0)[0]
    return len(ready) == len(server.held) == 2


def test_a_killed_proxy_ends_plain_requests_and_tunnels_and_is_named_once(jail: Jail, server: Answering) -> None:
    with connected(jail, server) as (popen, who):
        began = time.monotonic()
        os.kill(who["proxy"], signal.SIGKILL)
        out, err = popen.communicate(timeout=30)
        assert time.monotonic() - began < 5
    assert out.splitlines() == ["plain 18", "tunnel 18", "next 7", "direct 7"]  # 18: a part of the body, 7: nobody is there
    assert err.count("the network proxy of this session has ended: nothing outside can be reached any more") == 1
    assert "(signal 9)" in err
    assert popen.returncode == 0  # the command's own
    assert ended(server)
    assert until(lambda: not left(jail)), left(jail)


@pytest.mark.parametrize("victim", ["launcher", "guard", "jail"])
def test_whoever_is_killed_takes_the_connections_with_it(jail: Jail, server: Answering, victim: str) -> None:
    with connected(jail, server) as (popen, who):
        os.kill(who[victim], signal.SIGKILL)
        assert until(lambda: ended(server), 5)
        _, err = popen.communicate(timeout=30)
        gone = [f"/proc/{pid}/exe" for pid in who.values()]
        assert until(lambda: not any(map(is_running, who.values())), 10), gone
    assert until(lambda: not left(jail), 10), left(jail)
    if victim == "guard":
        assert "the guard was killed, and the jail ended with it" in err
    assert "proxy" not in err  # it ended with the others, and nobody needs to know


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def bound(jail: Jail, pid: int, limit: str) -> None:
    assert jail.outside("prlimit", "--pid", str(pid), limit).code == 0


def test_a_proxy_for_which_there_is_no_process_is_named_and_comes_when_there_is_one(jail: Jail, server: Answering) -> None:
    with session(jail, KNOCK.format(port=server.port, patience=2), server) as popen:
        assert popen.stdout and popen.stdin and popen.stdout.readline() == "ready\n"
        (guard,) = children(popen.pid)
        bound(jail, guard, "--nproc=1:")
        popen.stdin.write("go\n")
        popen.stdin.flush()
        assert [popen.stdout.readline() for _ in range(2)] == ["first 28\n", "direct 7\n"]  # 28: it waited in vain
        bound(jail, guard, "--nproc=500:")
        out, err = popen.communicate("on\n", timeout=30)
    assert out == "hello\nsecond 0\n"
    named = "the proxy of this session cannot be started: Resource temporarily unavailable"
    assert err.count(named) == 1
    assert [one for one in log(jail) if one["event"] == "error" and named in str(one["what"])]


def test_a_proxy_without_descriptors_is_named_and_opens_nothing(jail: Jail, server: Answering) -> None:
    with session(jail, KNOCK.format(port=server.port, patience=20), server) as popen:
        assert popen.stdout and popen.stdin and popen.stdout.readline() == "ready\n"
        (guard,) = children(popen.pid)
        bound(jail, guard, "--nofile=7:7")
        began = time.monotonic()
        popen.stdin.write("go\n")
        popen.stdin.flush()
        first, direct = (popen.stdout.readline() for _ in range(2))
        out, err = popen.communicate("on\n", timeout=30)
    assert first in ("first 52\n", "first 56\n", "first 7\n")  # an end without an answer, at once
    assert time.monotonic() - began < 10
    assert (direct, out) == ("direct 7\n", "second 7\n")
    assert err.count("the network proxy of this session has ended") == 1
    assert "(exit code 125)" in err
