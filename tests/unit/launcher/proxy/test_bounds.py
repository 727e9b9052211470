"""Whoever takes too much is bounded, and the others are served."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_sandbox.launcher.proxy.pipes import BIG, BIGS, KEPT, SMALL, Pipes
from tests.unit.launcher.proxy.test_tunnels import push, tunnel
from tests.unit.launcher.proxy.world import Proxy, echo, listening, read_all, read_head, running, web

NAMES = {"echo.test": ["127.0.0.1"], "hole.test": ["127.0.0.6"]}
MANY = 10_000 if os.environ.get("SANDBOX_SOAK") else 1_500


def is_served(proxy: Proxy, port: int) -> bool:
    with tunnel(proxy, f"echo.test:{port}") as sock:
        sock.sendall(b"hello")
        return sock.recv(10) == b"hello"


def ended(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return not sock.recv(100)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_slow_heads_lose_their_places_and_others_are_served(tmp_path: Path) -> None:
    """Each of them says one byte now and then, which is no progress."""
    with running(tmp_path, names=NAMES, connections=50, grace_seconds=0.2) as proxy, listening(echo) as port:
        slow = [proxy.connect() for _ in range(200)]
        for _ in range(5):
            for sock in slow:
                with contextlib.suppress(OSError):
                    sock.send(b"G")
            assert is_served(proxy, port)
        time.sleep(1)
        assert is_served(proxy, port)
        left = sum(not ended(sock) for sock in slow)
        assert left <= 50
        for sock in slow:
            sock.close()


def test_a_head_that_does_not_end_is_dropped_in_time(tmp_path: Path) -> None:
    with running(tmp_path, names=NAMES, header_seconds=1) as proxy:
        socks = [proxy.connect() for _ in range(3)]
        for sock, said in zip(socks, (b"", b"GET http://echo.test/ HTTP/1.1\r\n", b"\5\1\0\5\1"), strict=True):
            sock.sendall(said)
        assert [read_all(sock) for sock in socks] == [b"", b"", b"\5\0"]


def test_very_many_connections_are_bounded_and_others_served(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path, names=NAMES, connections=400, grace_seconds=0.1) as proxy, listening(echo) as port:
        socks = []
        for _ in range(MANY):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", proxy.port))
            socks.append(sock)
        assert is_served(proxy, port)
        held = len(os.listdir(f"/proc/{proxy.process.pid}/fd"))
        with capsys.disabled():
            print(f"\n{MANY} connections: {held} descriptors, {proxy.resident() / 1e6:.1f} MB resident")
        assert held < 2 * 400 + 96
        assert proxy.resident() < 60_000_000
        for sock in socks:
            sock.close()


def test_dials_that_nobody_answers_do_not_take_every_place(tmp_path: Path) -> None:
    with running(tmp_path, names=NAMES, connections=40, grace_seconds=0.1) as proxy, listening(echo) as port, hole() as deaf:
        stuck = [proxy.connect() for _ in range(80)]
        for sock in stuck:
            sock.sendall(f"CONNECT hole.test:{deaf} HTTP/1.1\r\n\r\n".encode())
        assert is_served(proxy, port)
        for sock in stuck:
            sock.close()


def test_a_dial_that_nobody_answers_ends_in_words(tmp_path: Path) -> None:
    with running(tmp_path, names=NAMES, dial_seconds=0.3, resolve_seconds=0.3) as proxy, hole() as deaf:
        assert b"hole.test" in (got := proxy.say(f"CONNECT hole.test:{deaf} HTTP/1.1\r\n\r\n".encode()))
        assert got.startswith(b"HTTP/1.1 504 ")
        plain = proxy.say(f"GET http://hole.test:{deaf}/ HTTP/1.1\r\nHost: hole.test:{deaf}\r\n\r\n".encode())
        assert plain.startswith(b"HTTP/1.1 504 ")


@contextlib.contextmanager
def hole() -> Iterator[int]:
    """A port that neither takes nor refuses."""
    with socket.create_server(("127.0.0.6", 0), backlog=0) as server:
        fill = [socket.socket() for _ in range(4)]
        for one in fill:
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        time.sleep(0.1)
        yield server.getsockname()[1]
        for one in fill:
            one.close()


def test_a_name_that_is_never_found_out_delays_no_other(tmp_path: Path) -> None:
    with running(tmp_path, names=NAMES, resolve_seconds=1, resolvers=2) as proxy, listening(echo) as port:
        slow = [proxy.connect() for _ in range(30)]
        for sock in slow:
            sock.sendall(b"CONNECT slow.test:443 HTTP/1.1\r\n\r\n")
        assert is_served(proxy, port)
        assert {read_all(sock)[:12] for sock in slow} == {b"HTTP/1.1 502"}
        assert proxy.say(b"CONNECT slow.test:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 502")  # at once: it is still being asked
        assert is_served(proxy, port)


def test_idle_tunnels_end_sooner_when_others_want_their_places(tmp_path: Path) -> None:
    with running(tmp_path, names=NAMES, connections=20, pressed_seconds=1) as proxy, listening(echo) as port:
        socks = [tunnel(proxy, f"echo.test:{port}") for _ in range(20)]
        assert is_served(proxy, port)
        assert any(ended(sock) for sock in socks)
    with running(tmp_path, names=NAMES, idle_seconds=1) as proxy, listening(echo) as port:
        sock = tunnel(proxy, f"echo.test:{port}")
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        sock.close()


def test_the_session_s_bytes_and_rate_are_bounded(tmp_path: Path) -> None:
    with running(tmp_path, names=NAMES, total_bytes=1_000_000) as proxy, listening(echo) as port:
        with tunnel(proxy, f"echo.test:{port}") as sock:
            writer = threading.Thread(target=push, args=(sock, bytes(5_000_000)))
            writer.start()
            with contextlib.suppress(ConnectionResetError):
                read_all(sock)
            writer.join()
        entry = proxy.entries(1)[0]
        assert (int(str(entry["sent"])) + int(str(entry["received"])), entry["verdict"]) == (1_000_000, "allow")  # to the byte, both ways
        assert b"rule: network.max_bytes" in proxy.say(f"CONNECT echo.test:{port} HTTP/1.1\r\n\r\n".encode())
    with running(tmp_path, names=NAMES, rate=1_000_000) as proxy, listening(echo) as port, tunnel(proxy, f"echo.test:{port}") as sock:
        began = time.monotonic()
        threading.Thread(target=push, args=(sock, bytes(1_000_000))).start()
        assert len(read_all(sock)) == 1_000_000  # two million moved, one of them at once
        assert time.monotonic() - began > 0.8


def test_what_is_spent_stays_spent_on_a_kept_connection(tmp_path: Path) -> None:
    """Heads alone carry something out, too."""
    with running(tmp_path, names=NAMES, total_bytes=100_000) as proxy, web() as site, proxy.connect() as sock:
        carrying = f"X-Data: {'x' * 20_000}\r\n"
        answers = []
        for _ in range(9):
            sock.sendall(f"HEAD http://echo.test:{site.port}/5 HTTP/1.1\r\nHost: echo.test:{site.port}\r\n{carrying}\r\n".encode())
            answers.append(read_head(sock)[9:12])
            if answers[-1] != b"200":
                break
        assert answers == [b"200"] * 5 + [b"403"]
        assert len(site.handler.seen) == 5


def test_the_biggest_pipes_are_lent_first() -> None:
    pipes = Pipes(BIGS + 2)
    taken = [pipes.take() for _ in range(BIGS + 3)]
    assert [pipe and fcntl.fcntl(pipe[0], fcntl.F_GETPIPE_SZ) for pipe in taken] == [BIG] * BIGS + [SMALL] * 2 + [None]
    for pipe in (taken[0], taken[-2]):
        assert pipe
        pipes.give(pipe, empty=True)
    assert [pipes.take() for _ in range(3)] == [taken[0], taken[-2], None]
    assert taken[1] and taken[2]
    os.write(taken[1][1], b"somebody's")
    pipes.give(taken[1], empty=False)
    again = pipes.take()
    assert again and not select.select([again[0]], [], [], 0)[0]  # a new one
    lent = [pipe for pipe in {*taken, again} - {taken[1]} if pipe]
    for pipe in lent:
        pipes.give(pipe, empty=True)
    assert sum(is_open(pipe) for pipe in lent) == KEPT + 2  # no more than may soon be of use
    pipes.close()
    assert not any(is_open(pipe) for pipe in lent)


def is_open(pipe: tuple[int, int]) -> bool:
    try:
        return bool(os.fstat(pipe[0]))
    except OSError:
        return False


def test_who_only_trickles_gives_way_to_who_wants_a_place(tmp_path: Path) -> None:
    """A byte now and then is progress: bodies that never end and tunnels hold every place."""
    with running(tmp_path, names=NAMES, connections=20, grace_seconds=0.1, pressed_seconds=1) as proxy, listening(echo) as port, web() as site:
        head = f"POST http://echo.test:{site.port}/ HTTP/1.1\r\nHost: echo.test:{site.port}\r\nContent-Length: 1000000\r\n\r\n".encode()
        slow = [proxy.connect() for _ in range(10)]
        for sock in slow:
            sock.sendall(head)
        slow += [tunnel(proxy, f"echo.test:{port}") for _ in range(10)]
        over = threading.Event()
        trickle = threading.Thread(target=trickle_on, args=(slow, over))
        trickle.start()
        try:
            time.sleep(1.2)
            assert [is_served(proxy, port) for _ in range(5)] == [True] * 5
        finally:
            over.set()
            trickle.join()
        for sock in slow:
            sock.close()


def test_who_does_not_read_its_answer_gives_way_as_well(tmp_path: Path) -> None:
    def endless(sock: socket.socket) -> None:
        read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            sock.sendall(bytes(1 << 16))

    bounds = {"connections": 10, "grace_seconds": 0.1, "pressed_seconds": 1}
    with running(tmp_path, names=NAMES, **bounds) as proxy, listening(echo) as port, listening(endless) as flood:
        slow = [proxy.connect() for _ in range(10)]
        for sock in slow:
            sock.sendall(f"GET http://echo.test:{flood}/ HTTP/1.1\r\nHost: echo.test:{flood}\r\n\r\n".encode())
            assert read_head(sock).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert [is_served(proxy, port) for _ in range(3)] == [True] * 3
        assert 0.5 < time.monotonic() - began < 10  # they were given some time
        assert proxy.resident() < 60_000_000
        for sock in slow:
            sock.close()


def trickle_on(socks: list[socket.socket], over: threading.Event) -> None:
    for sock in socks:
        sock.setblocking(False)
    while not over.wait(0.1):
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.send(b"x")
                sock.recv(1)
