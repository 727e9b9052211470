"""Races of facts that change while the supervisor looks: memory, descriptors, links. What is refused is never done.

A second thread of the caller swaps what the first one's call is about. Each race also counts what was allowed: one that never
met the supervisor in between would prove nothing.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.unit.launcher.supervisor.box import raw
from tests.unit.launcher.supervisor.conftest import Ground, Server

SECONDS = 5.0 if os.environ.get("SANDBOX_SOAK") == "1" else 1.0


def race(attempt: Callable[[], str], swap: Callable[[], object]) -> Counter[str]:
    """What the attempts came to while another thread swapped."""
    over, deadline = threading.Event(), time.monotonic() + SECONDS
    outcomes: Counter[str] = Counter()

    def keep_swapping() -> None:
        while not over.is_set():
            swap()

    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=keep_swapping)
    thread.start()
    while time.monotonic() < deadline:
        outcomes[attempt()] += 1
    over.set()
    thread.join()
    return outcomes


def said(client: socket.socket, address: object, size: int) -> str:
    error = raw("connect", client.fileno(), address, size)  # type: ignore[arg-type]
    return os.strerror(error) if error else client.recv(200).decode()


def unix_address(path: Path) -> bytes:
    return (socket.AF_UNIX.to_bytes(2, "little") + os.fsencode(path)).ljust(110, b"\0")


def assert_won(outcomes: Counter[str], *, good: str, bad: str) -> None:
    print(dict(outcomes))
    assert outcomes[bad] == 0
    assert outcomes[good] > 0 and outcomes["Permission denied"] > 0  # both sides of the swap were met


def test_swapping_the_address_in_memory(ground: Ground, server: Server) -> None:
    good, bad = ground.outside / "granted", ground.outside / "secrets"
    server.listen(str(good))
    server.listen(str(bad))

    def act() -> Counter[str]:
        memory, turns = ctypes.create_string_buffer(unix_address(good), 110), itertools.cycle((unix_address(bad), unix_address(good)))

        def attempt() -> str:
            with socket.socket(socket.AF_UNIX) as client:
                return said(client, memory, 110)

        def swap() -> None:
            memory.raw = next(turns)

        return race(attempt, swap)

    assert_won(ground.box.run(act), good=repr(str(good)), bad=repr(str(bad)))


def test_swapping_the_port_in_memory(ground: Ground, server: Server) -> None:
    ports = [server.listen((host, 0)).getsockname()[1] for host in ("127.0.0.1", "127.0.0.2")]
    addresses = [b"\2\0" + port.to_bytes(2, "big") + bytes([127, 0, 0, last]) + bytes(8) for port, last in zip(ports, (1, 2), strict=True)]

    def act() -> Counter[str]:
        memory, turns = ctypes.create_string_buffer(addresses[0], 16), itertools.cycle(addresses)

        def attempt() -> str:
            with socket.socket() as client:
                return said(client, memory, 16)

        def swap() -> None:
            memory.raw = next(turns)

        return race(attempt, swap)

    listed = replace(ground.box, hosts=(("127.0.0.1", ports[0]),))
    assert_won(listed.run(act), good=repr(("127.0.0.1", 0)), bad=repr(("127.0.0.2", 0)))


def test_swapping_the_descriptor(ground: Ground, server: Server) -> None:
    """A datagram socket, which could then send anywhere, in the place of one that may be connected."""
    good, bad = ground.outside / "granted", ground.inside / "datagrams"
    server.listen(str(good))

    def act() -> Counter[str]:
        mailbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        mailbox.bind(str(bad))
        place = os.open("/dev/null", os.O_RDONLY)
        streams, datagrams = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        addresses = [unix_address(good), unix_address(bad)]
        turn = 0

        def attempt() -> str:
            nonlocal streams, turn
            turn += 1
            raw("connect", place, addresses[turn % 2], 110)
            stream, streams = streams, socket.socket(socket.AF_UNIX)
            connected = raw("getpeername", stream.fileno(), ctypes.create_string_buffer(110), ctypes.create_string_buffer(b"\x6e", 4)) == 0
            stream.close()
            wrong = raw("getpeername", datagrams.fileno(), ctypes.create_string_buffer(110), ctypes.create_string_buffer(b"\x6e", 4)) == 0
            return "datagrams" if wrong else "stream" if connected else "Permission denied"

        def swap() -> None:
            try:
                os.dup2(datagrams.fileno(), place)
                os.dup2(streams.fileno(), place)
            except OSError:
                pass

        return race(attempt, swap)

    assert_won(ground.box.run(act), good="stream", bad="datagrams")


def swapped_link(ground: Ground) -> Callable[[], None]:
    """A link in the project that leads to a directory inside and, a moment later, to one outside."""
    link = ground.inside / "link"
    link.symlink_to(ground.inside)
    os.lchown(link, ground.box.user.uid, ground.box.user.gid)

    def swap() -> None:
        for target in (ground.outside, ground.inside):
            os.symlink(target, ground.inside / "new")
            os.rename(ground.inside / "new", link)

    return swap


def test_swapping_a_link_on_the_way_to_a_socket(ground: Ground, server: Server) -> None:
    good, bad = ground.inside / "socket", ground.outside / "socket"
    server.listen(str(good))
    server.listen(str(bad))
    swap = swapped_link(ground)
    address = unix_address(ground.inside / "link" / "socket")

    def attempt() -> str:
        with socket.socket(socket.AF_UNIX) as client:
            return said(client, address, 110)

    assert_won(ground.box.run(lambda: race(attempt, swap)), good=repr(str(good)), bad=repr(str(bad)))


def test_swapping_a_link_on_the_way_to_a_file(ground: Ground) -> None:
    swap = swapped_link(ground)
    path = os.fsencode(ground.inside / "link" / "file")
    words = {0: "done", 1: "Permission denied"}

    def attempt() -> str:
        error = raw("chmod", path, 0o777)
        return "changed" if (ground.outside / "file").stat().st_mode & 0o777 == 0o777 else words.get(error, os.strerror(error))

    assert_won(ground.box.run(lambda: race(attempt, swap)), good="done", bad="changed")
