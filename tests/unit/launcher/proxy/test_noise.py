"""Whatever bytes come, in whatever pieces, and whenever somebody leaves: no error of ours, nobody waits, and others are served."""

from __future__ import annotations

import contextlib
import os
import random
import socket
from pathlib import Path

import pytest

from tests.unit.launcher.proxy.test_refusals import HEAD, MALFORMED
from tests.unit.launcher.proxy.world import echo, listening, read_all, running, web

MANY, AT_ONCE = 10_000 if os.environ.get("SANDBOX_SOAK") else 400, 100
NAMES = {"site.test": ["127.0.0.1"], "gone.test": ["127.0.0.9"]}
GOOD = (
    HEAD + b"Content-Length: 3\r\n\r\nabc", HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"GET http://site.test:PORT/70000 HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n", b"GET http://site.test:PORT/chunked/9 HTTP/1.0\r\n\r\n",
    b"HEAD http://site.test:PORT/5 HTTP/1.1\r\nHost: site.test:PORT\r\n\r\n", b"GET http://gone.test:9/ HTTP/1.1\r\nHost: gone.test:9\r\n\r\n",
    b"CONNECT site.test:ECHO HTTP/1.1\r\n\r\nhello", b"\5\1\0\5\1\0\3\x09site.testEE",
)  # fmt: skip


def make_noise(chance: random.Random, web_port: int, echo_port: int) -> bytes:
    """A few requests in a row, good and bad, some with bytes changed."""
    raw = b"".join(chance.choice((*GOOD, *GOOD, *MALFORMED.values(), chance.randbytes(9))) for _ in range(chance.randint(1, 4)))
    raw = raw.replace(b"PORT", b"%d" % web_port).replace(b"ECHO", b"%d" % echo_port).replace(b"EE", echo_port.to_bytes(2, "big"))
    for _ in range(chance.choice((0, 0, 1, 3))):
        at = chance.randrange(len(raw))
        raw = raw[:at] + chance.choice((b"", b"\r", b"\n", b"\0", b" ", chance.randbytes(2))) + raw[at + chance.randint(0, 2) :]
    return raw


def send(sock: socket.socket, raw: bytes, chance: random.Random) -> None:
    """In pieces; then it goes on reading, says that it is done, or is gone."""
    step = chance.choice((1 << 20, 1 << 20, 50, 7))
    for at in range(0, len(raw), step):
        sock.sendall(raw[at : at + step])
    match chance.randrange(4):
        case 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        case 1:
            sock.settimeout(1)  # it may rightly be waited for a body that has not come
            with contextlib.suppress(TimeoutError):
                sock.recv(chance.choice((1, 5000)))
        case _:
            sock.shutdown(socket.SHUT_WR)
            read_all(sock)


@pytest.mark.parametrize("seed", range(MANY // AT_ONCE))
def test_noise_makes_no_error_of_ours_and_keeps_nobody_waiting(tmp_path: Path, seed: int) -> None:
    """So few to one proxy that it notes every one."""
    chance = random.Random(seed)
    with running(tmp_path, names=NAMES, header_seconds=2) as proxy, web() as site, listening(echo) as port:
        for _ in range(AT_ONCE):
            with proxy.connect() as sock, contextlib.suppress(ConnectionError):
                send(sock, make_noise(chance, site.port, port), chance)
        good = proxy.say(HEAD.replace(b"PORT", b"%d" % site.port) + b"Content-Length: 3\r\nConnection: close\r\n\r\nabc")
        assert good.endswith(b"3 294")
        entries = proxy.entries(AT_ONCE // 4)
        assert [entry for entry in entries if "internal" in str(entry["why"])] == []
        assert {entry["verdict"] for entry in entries} >= {"allow", "malformed"}  # it met both
        held = os.listdir(f"/proc/{proxy.process.pid}/fd")
        assert len(held) < 60, held
