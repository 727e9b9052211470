"""What a tunnel carries, how it ends, and what it costs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.launcher.proxy.world import Proxy, echo, listening, read_all, read_head, running

NAMES = {
    "echo.test": ["127.0.0.1"], "six.test": ["::1"], "many.test": ["::1", "127.0.0.3", "127.0.0.4", "127.0.0.1"],
    "stuck.test": ["127.0.0.5", "127.0.0.1"],
}  # fmt: skip


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    with running(tmp_path, names=NAMES) as one:
        yield one


def tunnel(proxy: Proxy, where: str) -> socket.socket:
    sock = proxy.connect()
    sock.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
    head = read_head(sock)
    assert head.startswith(b"HTTP/1.1 200 "), head
    return sock


def push(sock: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)


def test_each_direction_ends_by_itself(proxy: Proxy) -> None:
    """A server that answers only when the client has said everything, and goes on after that."""

    def late(sock: socket.socket) -> None:
        said = read_all(sock)
        time.sleep(0.2)
        sock.sendall(hashlib.sha256(said).digest())

    data = os.urandom(3_000_000)
    with listening(late) as port, tunnel(proxy, f"echo.test:{port}") as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == hashlib.sha256(data).digest()
    entry = proxy.entries(1)[0]
    assert (entry["protocol"], entry["host"], entry["sent"], entry["received"], entry["verdict"]) == ("connect", "echo.test", len(data), 32, "allow")
    assert isinstance(entry["seconds"], float) and entry["seconds"] >= 0.2


def test_many_bytes_come_back_as_they_were_also_to_a_slow_reader(proxy: Proxy) -> None:
    data = os.urandom(20_000_000)
    with listening(echo) as port, tunnel(proxy, f"echo.test:{port}") as sock:
        writer = threading.Thread(target=push, args=(sock, data))
        writer.start()
        time.sleep(0.5)  # every buffer on the way is full
        back = read_all(sock)
        writer.join()
    assert hashlib.sha256(back).digest() == hashlib.sha256(data).digest()


def test_without_pipes_bytes_are_copied(tmp_path: Path) -> None:
    """More transfers than pipes: all arrive."""
    with running(tmp_path, names=NAMES, pipes=1) as proxy, listening(echo) as port:
        socks = [tunnel(proxy, f"echo.test:{port}") for _ in range(8)]
        data = [os.urandom(2_000_000) for _ in socks]
        writers = [threading.Thread(target=push, args=pair) for pair in zip(socks, data, strict=True)]
        for writer in writers:
            writer.start()
        assert [read_all(sock) == part for sock, part in zip(socks, data, strict=True)] == [True] * 8
        for sock in socks:
            sock.close()


def test_what_is_said_before_the_answer_is_not_lost(proxy: Proxy) -> None:
    with listening(echo) as port:
        got = proxy.say(f"CONNECT echo.test:{port} HTTP/1.1\r\n\r\nhello".encode(), shut=True)
        assert got == b"HTTP/1.1 200 Connection established\r\n\r\nhello"
        request = b"\5\2\2\0" + b"\5\1\0\3\x09echo.test" + port.to_bytes(2, "big") + b"hello"
        assert proxy.say(request, shut=True) == b"\5\0" + b"\5\0\0\1\0\0\0\0\0\0" + b"hello"
        with proxy.connect() as sock:  # byte by byte
            for byte in request[:-5]:
                sock.sendall(bytes([byte]))
                time.sleep(0.005)
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"\5\0" + b"\5\0\0\1\0\0\0\0\0\0"


def test_both_families_are_reached_by_name_and_by_number(proxy: Proxy) -> None:
    with listening(echo, "::1") as port:
        for way in (f"six.test:{port}", f"[::1]:{port}"):
            with tunnel(proxy, way) as sock:
                sock.sendall(b"six")
                assert sock.recv(10) == b"six"
        number = b"\5\1\0\5\1\0\4" + bytes(15) + b"\1" + port.to_bytes(2, "big") + b"six"
        assert proxy.say(number, shut=True).endswith(b"six")


def test_an_address_that_fails_or_hangs_does_not_keep_from_the_next(proxy: Proxy) -> None:
    """A full backlog takes no connection and refuses none: the next address is tried beside it."""
    with listening(echo) as port:
        with tunnel(proxy, f"many.test:{port}") as sock:
            sock.sendall(b"a")
            assert sock.recv(1) == b"a"
        with socket.create_server(("127.0.0.5", port), backlog=0):
            fill = [socket.socket() for _ in range(4)]
            for one in fill:
                one.setblocking(False)
                one.connect_ex(("127.0.0.5", port))
            with tunnel(proxy, f"stuck.test:{port}") as sock:
                sock.sendall(b"b")
                assert sock.recv(1) == b"b"
            for one in fill:
                one.close()
    assert [entry["address"] for entry in proxy.entries(2)] == ["127.0.0.1", "127.0.0.1"]


def test_a_reset_is_passed_on(proxy: Proxy) -> None:
    def reset(sock: socket.socket) -> None:
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with listening(reset) as port, tunnel(proxy, f"echo.test:{port}") as sock:
        sock.sendall(b"x")
        with pytest.raises(ConnectionResetError):
            sock.recv(1)


def endless(sock: socket.socket) -> None:
    while True:
        sock.sendall(b"?" * (1 << 16))


def test_bytes_of_a_broken_connection_reach_nobody_else(tmp_path: Path) -> None:
    """The only pipe is full of them when their reader goes away."""
    data = os.urandom(8_000_000)
    with running(tmp_path, names=NAMES, pipes=1) as proxy, listening(endless) as flood, listening(echo) as port:
        for _ in range(3):
            sock = tunnel(proxy, f"echo.test:{flood}")
            time.sleep(0.3)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
            with tunnel(proxy, f"echo.test:{port}") as sock:
                writer = threading.Thread(target=push, args=(sock, data))
                writer.start()
                assert hashlib.sha256(read_all(sock)).digest() == hashlib.sha256(data).digest()
                writer.join()


def test_waiting_costs_no_time_of_the_processor(proxy: Proxy) -> None:
    """Every state in which an end or bytes are there that nobody takes: a poller that keeps telling would take a whole core."""

    def bursts(sock: socket.socket) -> None:
        sock.sendall(bytes(int(sock.recv(9)) << 10))

    def silent(sock: socket.socket) -> None:
        time.sleep(20)

    with listening(bursts) as burst, listening(silent) as mute:
        half, reset, *stuck = (tunnel(proxy, f"echo.test:{port}") for port in (mute, mute, *[burst] * 12))
        half.shutdown(socket.SHUT_WR)
        for count, sock in enumerate(stuck, 1):  # of some the last bytes and the end have come, and wait
            sock.sendall(b"%d" % (count * 700))
            sock.shutdown(socket.SHUT_WR)
        reset.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        reset.close()
        request = f"GET http://echo.test:{mute}/ HTTP/1.1\r\nHost: echo.test:{mute}\r\n\r\n".encode()
        ahead, ended, waits = proxy.connect(), proxy.connect(), proxy.connect()
        ahead.sendall(request * 100)
        ended.sendall(request)
        ended.shutdown(socket.SHUT_WR)
        waits.sendall(b"CONNECT slow.test:443 HTTP/1.1\r\n\r\nmore")
        waits.shutdown(socket.SHUT_WR)
        time.sleep(0.5)
        before = used(proxy)
        time.sleep(1)
        assert used(proxy) - before < 0.2
        for sock in (half, *stuck, ahead, ended, waits):
            sock.close()


def used(proxy: Proxy) -> float:
    return int(Path(f"/proc/{proxy.process.pid}/schedstat").read_text().split()[0]) / 1e9


def test_killed_in_the_middle_every_client_fails_at_once(proxy: Proxy) -> None:
    with listening(endless) as busy, listening(echo) as idle:
        moving, still = tunnel(proxy, f"echo.test:{busy}"), tunnel(proxy, f"echo.test:{idle}")
        assert moving.recv(1 << 16)
        waiting = proxy.connect()
        proxy.process.send_signal(signal.SIGKILL)
        proxy.process.wait()
        for sock in (moving, still, waiting):
            sock.settimeout(5)
            try:
                while sock.recv(1 << 20):
                    pass
            except ConnectionResetError:
                pass
            sock.close()
        with pytest.raises(ConnectionRefusedError):
            proxy.connect()


def test_a_thousand_idle_tunnels_are_cheap(proxy: Proxy, capsys: pytest.CaptureFixture[str]) -> None:
    count = 1000
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as server:
        before = proxy.resident()
        socks = [tunnel(proxy, f"echo.test:{server.getsockname()[1]}") for _ in range(count)]
        ends = [server.accept()[0] for _ in range(count)]
        after = proxy.resident()
        with capsys.disabled():
            print(f"\n{count} idle tunnels: {before / 1e6:.1f} → {after / 1e6:.1f} MB resident")
        assert after < 60_000_000
        socks[0].sendall(b"still there")
        assert any(end.recv(100) == b"still there" for end in ends[:1])
        for sock in (*socks, *ends):
            sock.close()
