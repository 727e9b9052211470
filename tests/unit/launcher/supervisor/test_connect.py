"""connect(): granted sockets are reached, others are not, whatever name they are given. Each refusal has its control outside."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from agent_sandbox.launcher import syscalls
from tests.machines.needs import missing
from tests.unit.launcher.supervisor.box import Box, error_of, raw
from tests.unit.launcher.supervisor.conftest import Ground, Server

Address = str | bytes | tuple[str, int]


def talk(address: Address, kind: int = socket.SOCK_STREAM, *, nonblocking: bool = False) -> str:
    """What the server says, or the name of the error."""
    family = socket.AF_UNIX if not isinstance(address, tuple) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with socket.socket(family, kind) as client:
        if nonblocking:
            client.settimeout(5)
        try:
            client.connect(address)
        except OSError as error:
            return errno.errorcode[error.errno or 0]
        client.settimeout(5)
        return client.recv(200).decode()


def both(box: Box, act: Callable[[], object]) -> tuple[object, object]:
    return box.outside(act), box.run(act)


def said(address: Address) -> str:
    return repr(address)


def test_a_granted_socket_is_reached(ground: Ground, server: Server) -> None:
    path = str(ground.outside / "granted")
    server.listen(path)
    assert both(ground.box, lambda: talk(path)) == (said(path), said(path))
    assert both(ground.box, lambda: talk(path, nonblocking=True)) == (said(path), said(path))


def test_a_socket_in_the_project_is_reached(ground: Ground, server: Server) -> None:
    path = str(ground.inside / "own")
    server.listen(path, socket.SOCK_SEQPACKET)
    assert both(ground.box, lambda: talk(path, socket.SOCK_SEQPACKET)) == (said(path), said(path))


@pytest.mark.parametrize("place", ["outside/other", "outside/granted2", "shown/x", "inside2"])
def test_no_other_socket_is_reached(ground: Ground, server: Server, place: str) -> None:
    path = str(ground.top / place)
    server.listen(path)
    assert both(ground.box, lambda: talk(path)) == (said(path), "EACCES")
    assert both(ground.box, lambda: talk(path, nonblocking=True)) == (said(path), "EACCES")


def spellings(ground: Ground) -> dict[str, Callable[[], str]]:
    """Names of outside/other for a process that has been prepared by `prepare`."""
    other, top = ground.outside / "other", ground.top
    return {
        "relative": lambda: "../outside/other",
        "dots": lambda: f"{ground.inside}/../outside/./other",
        "link": lambda: f"{ground.inside}/link",
        "relative link": lambda: f"{ground.inside}/relative",
        "link to its directory": lambda: f"{ground.inside}/directory/other",
        "descriptor of the directory": lambda: f"/proc/self/fd/{os.open(ground.outside, os.O_RDONLY)}/other",
        "descriptor of the file": lambda: f"/proc/self/fd/{os.open(other, os.O_PATH)}",
        "by its thread": lambda: f"/proc/thread-self/fd/{os.open(ground.outside, os.O_PATH)}/other",
        "by its number": lambda: f"/proc/{os.getpid()}/fd/{os.open(ground.outside, os.O_PATH)}/other",
        "dev": lambda: f"/dev/fd/{os.open(ground.outside, os.O_RDONLY)}/other",
        "up from a descriptor": lambda: f"/dev/fd/{os.open(ground.inside, os.O_RDONLY)}/../outside/other",
        "working directory": lambda: "/proc/self/cwd/../outside/other",
        "root": lambda: f"/proc/self/root{top}/outside/other",
    }


NAMES = [
    "relative", "dots", "link", "relative link", "link to its directory", "descriptor of the directory", "descriptor of the file", "by its thread",
    "by its number", "dev", "up from a descriptor", "working directory", "root",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_spelling_is_judged_by_the_file(ground: Ground, server: Server, name: str) -> None:
    path = str(ground.outside / "other")
    server.listen(path)
    (ground.inside / "link").symlink_to(path)
    (ground.inside / "relative").symlink_to("../outside/other")
    (ground.inside / "directory").symlink_to(ground.outside)
    spelling = spellings(ground)[name]

    def act() -> str:
        os.chdir(ground.inside)
        return talk(spelling())

    assert both(ground.box, act) == (said(path), "EACCES")
    granted = replace(ground.box, sockets=(ground.outside / "other",))
    assert granted.run(act) == said(path)  # the spelling itself works


def test_a_link_to_a_granted_socket_is_followed(ground: Ground, server: Server) -> None:
    path = str(ground.outside / "granted")
    server.listen(path)
    (ground.shown / "link").symlink_to(path)
    assert ground.box.run(lambda: talk(str(ground.shown / "link"))) == said(path)


@pytest.mark.parametrize(("place", "answer"), [("inside", 0), ("outside", errno.EACCES)])
def test_a_name_as_long_as_can_be_needs_no_end(ground: Ground, server: Server, place: str, answer: int) -> None:
    folder = ground.top / place
    path = folder / ("x" * (107 - len(str(folder))))
    server.listen(str(folder / "short"))
    (folder / "short").rename(path)
    address = socket.AF_UNIX.to_bytes(2, "little") + os.fsencode(path)
    assert len(address) == 110

    def act() -> int:
        with socket.socket(socket.AF_UNIX) as client:
            return raw("connect", client.fileno(), address, len(address))

    assert both(ground.box, act) == (0, answer)


@pytest.mark.parametrize(("name", "error"), [("missing", "ENOENT"), ("file", "ECONNREFUSED"), ("file/x", "ENOTDIR"), ("loop", "ELOOP")])
def test_errors_are_the_kernels(ground: Ground, name: str, error: str) -> None:
    (ground.inside / "loop").symlink_to("loop")
    assert both(ground.box, lambda: talk(str(ground.inside / name))) == (error, error)


def test_nonsense_is_refused_as_the_kernel_does(ground: Ground) -> None:
    unix, pipe = socket.AF_UNIX.to_bytes(2, "little"), 0

    def act() -> list[int]:
        nonlocal pipe
        pipe = os.pipe()[0]
        with socket.socket(socket.AF_UNIX) as client:
            number = client.fileno()
            return [
                raw("connect", number, unix + b"/x", 2), raw("connect", number, unix + b"/x", 200), raw("connect", number, 0, 10),
                raw("connect", number, unix + b"/x", -1), raw("connect", 999, unix + b"/x\0", 5), raw("connect", pipe, unix + b"/\0", 4),
                raw("connect", number, b"\2\0" + bytes(14), 16),
            ]  # fmt: skip

    outside = [errno.EINVAL, errno.EINVAL, errno.EFAULT, errno.EINVAL, errno.EBADF, errno.ENOTSOCK, errno.EINVAL]
    assert both(ground.box, act) == (outside, outside)


def test_abstract_names_are_the_kernels_to_judge_or_refused(ground: Ground, server: Server) -> None:
    name = f"\0supervisor-{os.getpid()}"
    server.listen(name)
    assert both(ground.box, lambda: talk(name)) == (said(name), said(name))
    assert replace(ground.box, abstract=False).run(lambda: talk(name)) == "EPERM"


def test_a_datagram_socket_is_not_connected(ground: Ground) -> None:
    path = str(ground.inside / "datagrams")

    def act() -> int:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            server.bind(path)
            result = error_of(lambda: client.connect(path))
            os.unlink(path)
            return result

    assert both(ground.box, act) == (0, errno.EACCES)


@pytest.mark.parametrize("flag", [os.O_EXCL, 1 << 20], ids=["handles on threads", "handles on processes alone"])
def test_a_thread_can_connect(ground: Ground, server: Server, flag: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second as before Linux 6.9: the kernel does not know the flag."""
    monkeypatch.setattr("agent_sandbox.launcher.supervisor.kernel.PIDFD_THREAD", flag)
    path, other = str(ground.outside / "granted"), str(ground.outside / "other")
    server.listen(path)
    server.listen(other)

    def act() -> list[str]:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.extend((talk(path), talk(other))))
        thread.start()
        thread.join()
        return found

    assert both(ground.box, act) == ([said(path), said(other)], [said(path), "EACCES"])


def test_a_caller_that_cannot_be_looked_into_is_refused(ground: Ground, server: Server) -> None:
    import ctypes

    path = str(ground.outside / "granted")
    server.listen(path)

    def act() -> str:
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
        return talk(path)

    assert both(ground.box, act) == (said(path), "EPERM")


def test_internet_addresses_follow_the_list(ground: Ground, server: Server) -> None:
    first, second = server.listen(("127.0.0.1", 0)), server.listen(("127.0.0.1", 0))
    port, other = first.getsockname()[1], second.getsockname()[1]
    addresses: list[Address] = [("127.0.0.1", port), ("127.0.0.1", other), ("::ffff:127.0.0.1", port), ("::ffff:127.0.0.1", other)]
    hello = said(("127.0.0.1", 0))

    def act() -> list[str]:
        return [talk(address) for address in addresses]

    assert both(ground.box, act) == ([hello] * 4, [hello] * 4)
    assert replace(ground.box, hosts=(("127.0.0.1", port),)).run(act) == [hello, "EACCES"] * 2
    assert replace(ground.box, hosts=()).run(act) == ["EACCES"] * 4


def test_udp_and_the_end_of_a_connection(ground: Ground) -> None:
    def act() -> list[object]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            server.bind(("127.0.0.1", 0))
            client.connect(server.getsockname())
            client.send(b"x")
            ended = raw("connect", client.fileno(), bytes(16), 16)
            return [server.recv(9), ended, error_of(client.getpeername)]

    assert both(ground.box, act) == ([b"x", 0, errno.ENOTCONN],) * 2
    assert replace(ground.box, hosts=()).run(lambda: talk(("127.0.0.1", 9), socket.SOCK_DGRAM)) == "EACCES"


def test_a_refused_connection_is_refused(ground: Ground) -> None:
    def act() -> str:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            return talk(server.getsockname())

    assert both(ground.box, act) == ("ECONNREFUSED", "ECONNREFUSED")


class Full:
    """A listener of the caller's own that takes nobody in until it is told."""

    def __init__(self, ground: Ground) -> None:
        self.path = str(ground.inside / f"full-{os.getpid()}")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(0)
        self.first = socket.socket(socket.AF_UNIX)
        self.first.connect(self.path)


def test_a_connect_that_waits_holds_up_nobody_else(ground: Ground) -> None:
    def act() -> tuple[bool, bool, int]:
        full = Full(ground)
        client = socket.socket(socket.AF_UNIX)
        thread = threading.Thread(target=lambda: client.connect(full.path))
        thread.start()
        time.sleep(0.1)
        begun = time.monotonic()
        os.chmod(ground.inside / "file", 0o600)
        quick = time.monotonic() - begun < 2
        waits = thread.is_alive()
        full.server.accept()
        thread.join(5)
        return quick, waits, error_of(client.getpeername)

    assert both(ground.box, act) == ((True, True, 0),) * 2


def test_a_socket_that_does_not_block_is_told_at_once(ground: Ground) -> None:
    def act() -> int:
        full = Full(ground)
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            return error_of(lambda: client.connect(full.path))

    assert both(ground.box, act) == (errno.EAGAIN, errno.EAGAIN)


def test_a_signal_ends_a_connect_that_waits(ground: Ground) -> None:
    def act() -> tuple[str, bool]:
        full, begun = Full(ground), time.monotonic()

        def late(*_: object) -> None:
            raise ZeroDivisionError  # nothing that connect() itself could raise

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        try:
            talk(full.path)
        except ZeroDivisionError:
            return "interrupted", time.monotonic() - begun < 2
        return "connected", False

    assert both(ground.box, act) == (("interrupted", True),) * 2


def test_a_sockets_own_time_limit_ends_a_connect_that_waits(ground: Ground) -> None:
    def act() -> tuple[int, bool]:
        full, begun = Full(ground), time.monotonic()
        with socket.socket(socket.AF_UNIX) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, (0).to_bytes(8, "little") + (200_000).to_bytes(8, "little"))
            return error_of(lambda: client.connect(full.path)), time.monotonic() - begun < 2

    assert both(ground.box, act) == ((errno.EAGAIN, True),) * 2


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_more_waiting_connects_than_there_is_room_for_are_told_to_try_again(ground: Ground) -> None:
    def act() -> tuple[int, int, str]:
        full = Full(ground)
        results: list[int] = []

        def wait() -> None:
            results.append(error_of(lambda: socket.socket(socket.AF_UNIX).connect(full.path)))

        for _ in range(140):
            threading.Thread(target=wait, daemon=True).start()
        until(lambda: len(results) >= 12)
        time.sleep(0.3)  # nobody else is told
        told = results.count(errno.EAGAIN)
        full.server.close()
        until(lambda: len(results) == 140)
        return told, len(results), talk(str(ground.inside / "file"))

    assert ground.box.run(act) == (12, 140, "ECONNREFUSED")


def test_a_caller_that_dies_while_it_waits_leaves_nothing(ground: Ground) -> None:
    kept: list[Full] = []  # full until the very end

    def act() -> int:
        kept.append(full := Full(ground))
        for _ in range(20):
            child = os.fork()
            if child == 0:
                socket.socket(socket.AF_UNIX).connect(full.path)
                os._exit(0)
            time.sleep(0.01)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        time.sleep(0.3)
        return error_of(lambda: os.chmod(ground.inside / "file", 0o600))

    result, (before, after) = replace(ground.box, watcher=lambda _: len(os.listdir("/proc/self/fd"))).look(act)
    assert (result, after) == (0, before)


def test_a_relative_path_starts_in_the_working_directory(ground: Ground, server: Server) -> None:
    server.listen(str(ground.inside / "own"))

    def act() -> list[str]:
        os.chdir(ground.inside)
        found = [talk("own"), talk("./own"), talk("../inside/own")]
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir(ground.inside / "gone")
        return [*found, talk("own")]

    hello = said(str(ground.inside / "own"))
    assert both(ground.box, act) == ([hello] * 3 + ["ENOENT"],) * 2


def test_a_changed_root_is_the_callers(ground: Ground, server: Server) -> None:
    """Where user namespaces can be made inside, a process can change its root: its paths start there, and links lead there."""
    root = ground.inside / "root"
    root.mkdir(mode=0o777)
    root.chmod(0o777)
    (ground.inside / "socket").symlink_to(ground.outside / "granted")
    for path in (root / "socket", ground.outside / "granted"):
        server.listen(str(path))
    (root / "link").symlink_to("/socket")
    (root / "up").symlink_to("../../socket")

    def act() -> list[str]:
        syscalls.unshare(syscalls.CLONE_NEWUSER)
        os.chdir(root)
        os.chroot(root)
        return [talk(name) for name in ("/socket", "/link", "socket", "./link", "../socket", "/up", "../../outside/granted")]

    if error_of(lambda: ground.box.outside(lambda: syscalls.unshare(syscalls.CLONE_NEWUSER))):
        missing("user namespaces")
    hello = said(str(root / "socket"))
    assert both(ground.box, act) == ([hello] * 6 + ["ENOENT"],) * 2


def talk_after_refusal(address: tuple[str, int]) -> tuple[str, str]:
    """The error, and what the socket is good for after it."""
    with socket.socket() as client:
        client.settimeout(5)
        try:
            client.connect(address)
        except OSError as error:
            refused = errno.errorcode[error.errno or 0]
        else:
            refused = ""
        try:
            return refused, client.recv(200).decode()
        except OSError as error:
            return refused, errno.errorcode[error.errno or 0]


def test_a_connection_that_could_not_be_told_of_does_not_stand(ground: Ground, server: Server) -> None:
    """Who is told has gone, or is behind: whoever answers at that port may be somebody else."""
    port = server.listen(("127.0.0.1", 0)).getsockname()[1]
    address = ("127.0.0.1", port)
    box = replace(ground.box, hosts=(address,))
    heard, told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    hello = said(("127.0.0.1", 0))
    assert replace(box, told=told).run(lambda: talk_after_refusal(address)) == ("", hello)  # control
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(told, bytes(4096))
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(told, bytes(1))
    assert replace(box, told=told).run(lambda: talk_after_refusal(address)) == ("ECONNREFUSED", "ECONNRESET")
    os.close(heard)
    assert replace(box, told=told).run(lambda: talk_after_refusal(address)) == ("ECONNREFUSED", "ENOTCONN")
    os.close(told)
