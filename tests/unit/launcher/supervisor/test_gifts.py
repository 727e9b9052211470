"""Descriptors made for the caller – pairs of sockets, terminals – and watches."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import socket
import struct
from pathlib import Path

import pytest

from tests.unit.launcher.supervisor.box import error_of, raw
from tests.unit.launcher.supervisor.conftest import Ground

TIOCGPTPEER = 0x5441
IN_CREATE, IN_ATTRIB = 0x100, 0x4
IN_ONLYDIR, IN_DONT_FOLLOW = 0x0100_0000, 0x0200_0000


def test_a_pair_for_datagrams_keeps_messages_apart_and_reaches_nobody_else(ground: Ground) -> None:
    path = str(ground.outside / "datagrams")

    def act() -> list[object]:
        one, other = socket.socketpair(type=socket.SOCK_DGRAM)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
            server.bind(path)
            server.setblocking(False)
            one.sendto(b"x", path)
            reached = error_of(lambda: server.recv(9)) == 0
            os.unlink(path)
        mine = [] if reached else [other.recv(9)]  # a socket that has its peer sends there, whatever address it is given
        for message in (b"a", b"bc", b"def"):
            one.send(message)
        other.send(b"back")
        return [other.recv(99), other.recv(99), other.recv(99), one.recv(99), os.get_inheritable(one.fileno()), reached, mine]

    talked = [b"a", b"bc", b"def", b"back", False]
    assert ground.box.outside(act) == [*talked, True, []]
    assert ground.box.run(act) == [*talked, False, [b"x"]]


@pytest.mark.parametrize("flags", [0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK])
def test_a_pairs_flags_are_those_that_were_asked_for(ground: Ground, flags: int) -> None:
    def act() -> list[tuple[bool, bool]]:
        numbers = (ctypes.c_int * 2)(-1, -1)
        assert raw("socketpair", socket.AF_UNIX, socket.SOCK_DGRAM | flags, 0, numbers) == 0
        return [(not os.get_inheritable(number), not os.get_blocking(number)) for number in numbers]

    expected = [(bool(flags & socket.SOCK_CLOEXEC), bool(flags & socket.SOCK_NONBLOCK))] * 2
    assert (ground.box.outside(act), ground.box.run(act)) == (expected, expected)


def test_a_pair_that_cannot_be_told_is_not_made(ground: Ground) -> None:
    def act() -> tuple[list[int], bool]:
        before = os.listdir("/proc/self/fd")
        results = [raw("socketpair", 1, 2, 0, address) for address in (0, 8, (1 << 63) - 4096)]
        results.append(raw("socketpair", 1, 2, 7, (ctypes.c_int * 2)()))
        return results, os.listdir("/proc/self/fd") == before

    expected = [errno.EFAULT] * 3 + [errno.EPROTONOSUPPORT], True
    assert (ground.box.outside(act), ground.box.run(act)) == (expected, expected)


def test_a_pair_needs_room_for_both(ground: Ground) -> None:
    def act() -> list[object]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        numbers, taken = (ctypes.c_int * 2)(), []
        while not error_of(lambda: taken.append(os.open("/dev/null", os.O_RDONLY))):
            pass
        none = raw("socketpair", 1, 2, 0, numbers)
        os.close(free := taken.pop())
        one = raw("socketpair", 1, 2, 0, numbers)
        left = error_of(lambda: os.fstat(free)) == errno.EBADF
        os.close(taken.pop())
        return [none, one, left, raw("socketpair", 1, 2, 0, numbers)]

    expected = [errno.EMFILE, errno.EMFILE, True, 0]
    assert (ground.box.outside(act), ground.box.run(act)) == (expected, expected)


def no_terminals() -> bool:
    """As in the jail: /dev/pts is not granted. Everything else is."""
    from agent_sandbox.launcher import syscalls

    read = 1 << 2 | 1 << 3
    write = 1 << 1
    attributes = struct.pack("=QQQ", read | write, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    ruleset = libc.syscall(444, attributes, ctypes.c_size_t(len(attributes)), 0)
    assert ruleset >= 0
    for path in [str(entry) for entry in Path("/").iterdir() if entry.name != "dev" and entry.is_dir()] + ["/dev/ptmx", "/dev/null"]:
        handle = os.open(path, os.O_PATH)
        rights = (read | write) if os.path.isdir(path) else (write | 1 << 2)
        assert libc.syscall(445, ruleset, 1, struct.pack("=Qi", rights, handle), 0) == 0
        os.close(handle)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    assert libc.syscall(446, ruleset, 0) == 0
    os.close(ruleset)
    return False


def test_a_terminal_opens_where_terminals_are_not_granted(ground: Ground) -> None:
    from dataclasses import replace

    def act() -> tuple[object, ...]:
        master, peer = os.openpty()
        os.write(master, b"typed\n")
        read = os.read(peer, 99)
        controlling = error_of(lambda: os.close(os.open("/dev/tty", os.O_RDWR)))
        return read, os.isatty(peer), error_of(lambda: os.close(os.open(os.ttyname(peer), os.O_RDWR))), controlling != 0

    jailed = replace(ground.box, before=no_terminals)
    assert ground.box.outside(act) == (b"typed\n", True, 0, True)
    assert jailed.run(act) == (b"typed\n", True, errno.EACCES, True)
    with pytest.raises(PermissionError):
        ground.box.outside(lambda: no_terminals() or act())  # without the supervisor it does not


def peer_error(number: int) -> int:
    return error_of(lambda: fcntl.ioctl(number, TIOCGPTPEER, os.O_RDWR))


def test_only_a_terminals_master_gives_its_peer(ground: Ground) -> None:
    def act() -> list[int]:
        master, peer = os.openpty()
        locked = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
        numbers = (peer, os.open("/dev/null", os.O_RDWR), os.open(ground.inside / "file", os.O_RDONLY), 999, os.open("/dev/ptmx", os.O_PATH), locked)
        good = fcntl.ioctl(master, TIOCGPTPEER, os.O_RDWR)
        inherits = os.get_inheritable(good)
        return [*(peer_error(number) for number in numbers), int(inherits)]

    outside = ground.box.outside(act)
    assert outside[3:] == [errno.EBADF, errno.EBADF, errno.EIO, 1]
    assert ground.box.run(act) == [errno.ENOTTY] * 3 + outside[3:]


def watched(path: Path, mask: int = IN_CREATE | IN_ATTRIB) -> int:
    handle = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK)
    result = raw("inotify_add_watch", handle, os.fsencode(path), mask)
    os.close(handle)
    return result


@pytest.mark.parametrize(("place", "answer"), [("inside", 0), ("shown", 0), ("shown/file", 0), ("outside", errno.EACCES), (".", errno.EACCES)])
def test_what_can_be_read_can_be_watched(ground: Ground, place: str, answer: int) -> None:
    path = ground.top / place
    assert (ground.box.outside(lambda: watched(path)), ground.box.run(lambda: watched(path))) == (0, answer)


def test_a_watch_sees_what_happens_and_follows_links_to_what_is_judged(ground: Ground) -> None:
    (ground.inside / "out").symlink_to(ground.outside)
    (ground.inside / "in").symlink_to(ground.shown)

    def act() -> list[object]:
        handle = ctypes.CDLL(None).inotify_init1(os.O_NONBLOCK)
        link = watched(ground.inside / "out"), watched(ground.inside / "out", IN_ATTRIB | IN_DONT_FOLLOW), watched(ground.inside / "in")
        not_directory = watched(ground.inside / "file", IN_ATTRIB | IN_ONLYDIR)
        assert raw("inotify_add_watch", handle, os.fsencode(ground.inside), IN_CREATE) == 0
        (ground.inside / "new").touch()
        seen = b"new" in os.read(handle, 4096)
        (ground.inside / "new").unlink()
        no_watcher = raw("inotify_add_watch", os.open("/dev/null", os.O_RDONLY), os.fsencode(ground.inside), IN_CREATE)
        return [*link, not_directory, seen, no_watcher]

    assert ground.box.outside(act) == [0, 0, 0, errno.ENOTDIR, True, errno.EINVAL]
    assert ground.box.run(act) == [errno.EACCES, 0, 0, errno.ENOTDIR, True, errno.EINVAL]
