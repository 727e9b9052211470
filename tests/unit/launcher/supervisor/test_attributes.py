"""Modes, owners, times, extended attributes: changed in a writable place, refused elsewhere, by every call and every name."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_sandbox.launcher.seccomp.numbers import number_of
from tests.unit.launcher.supervisor.box import MACHINE, error_of, raw
from tests.unit.launcher.supervisor.conftest import Ground

CWD, NOFOLLOW, EMPTY = -100, 0x100, 0x1000
DAY = 86400
Act = Callable[[Path], int]


def opened(path: Path, flags: int = os.O_RDONLY) -> int:
    return os.open(path, flags)


def name(path: Path) -> bytes:
    return os.fsencode(path)


def times(form: str, *numbers: int) -> bytes:
    return struct.pack(form, *numbers)


FINE, COARSE, WHOLE = times("=4q", DAY, 5, 2 * DAY, 7), times("=4q", DAY, 5, 2 * DAY, 7), times("=2q", DAY, 2 * DAY)

# Each changes the file; the last word says what must be different afterwards.
CHANGES: dict[str, tuple[Act, str]] = {
    "chmod": (lambda p: raw("chmod", name(p), 0o600), "mode"),
    "fchmod": (lambda p: raw("fchmod", opened(p), 0o600), "mode"),
    "fchmodat": (lambda p: raw("fchmodat", opened(p.parent), name(p)[len(name(p.parent)) + 1 :], 0o600), "mode"),
    "fchmodat absolute": (lambda p: raw("fchmodat", 999, name(p), 0o600), "mode"),
    "fchmodat2": (lambda p: raw("fchmodat2", CWD, name(p), 0o600, NOFOLLOW), "mode"),
    "fchmodat2 of a descriptor": (lambda p: raw("fchmodat2", opened(p, os.O_PATH), b"", 0o600, EMPTY), "mode"),
    "chmod through proc": (lambda p: raw("chmod", b"/proc/self/fd/%d" % opened(p, os.O_PATH), 0o600), "mode"),
    "chmod through dev": (lambda p: raw("chmod", b"/dev/fd/%d" % opened(p), 0o600), "mode"),
    "chmod by dots": (lambda p: raw("chmod", name(p.parent) + b"/../" + name(p)[len(name(p.parent.parent)) + 1 :], 0o600), "mode"),
    "utime": (lambda p: raw("utime", name(p), WHOLE), "time"),
    "utime now": (lambda p: raw("utime", name(p), None), "time"),
    "utimes": (lambda p: raw("utimes", name(p), COARSE), "time"),
    "futimesat": (lambda p: raw("futimesat", CWD, name(p), COARSE), "time"),
    "futimesat of a descriptor": (lambda p: raw("futimesat", opened(p), None, COARSE), "time"),
    "utimensat": (lambda p: raw("utimensat", CWD, name(p), FINE, 0), "time"),
    "utimensat of a descriptor": (lambda p: raw("utimensat", opened(p), None, FINE, 0), "time"),
    "utimensat below a descriptor": (lambda p: raw("utimensat", opened(p.parent), b"file", FINE, NOFOLLOW), "time"),
    "utimensat empty": (lambda p: raw("utimensat", opened(p, os.O_PATH), b"", FINE, EMPTY), "time"),
    "setxattr": (lambda p: raw("setxattr", name(p), b"user.a", b"value", 5, 0), "xattr"),
    "lsetxattr": (lambda p: raw("lsetxattr", name(p), b"user.a", b"value", 5, 0), "xattr"),
    "fsetxattr": (lambda p: raw("fsetxattr", opened(p), b"user.a", b"value", 5, 0), "xattr"),
    "removexattr": (lambda p: raw("removexattr", name(p), b"user.was"), "xattr"),
    "lremovexattr": (lambda p: raw("lremovexattr", name(p), b"user.was"), "xattr"),
    "fremovexattr": (lambda p: raw("fremovexattr", opened(p), b"user.was"), "xattr"),
}
# Changing the owner to what it is changes the time of the last change alone.
SAME_OWNER: dict[str, Act] = {
    "chown": lambda p: raw("chown", name(p), os.getuid(), -1),
    "lchown": lambda p: raw("lchown", name(p), -1, os.getgid()),
    "fchown": lambda p: raw("fchown", opened(p), os.getuid(), os.getgid()),
    "fchownat": lambda p: raw("fchownat", opened(p.parent), b"file", os.getuid(), -1, NOFOLLOW),
    "fchownat of a descriptor": lambda p: raw("fchownat", opened(p, os.O_PATH), b"", os.getuid(), -1, EMPTY),
}
CHANGES |= {call: (act, "changed") for call, act in SAME_OWNER.items()}
CHANGES = {call: change for call, change in CHANGES.items() if number_of(call.split()[0], MACHINE) is not None}  # aarch64 has only the newer ones


def state(path: Path, what: str) -> object:
    seen = path.stat()
    attributes = {one: os.getxattr(path, one) for one in os.listxattr(path)}
    return {"mode": seen.st_mode, "time": (seen.st_atime_ns, seen.st_mtime_ns), "xattr": attributes, "changed": seen.st_ctime_ns}[what]


@pytest.fixture
def marked(ground: Ground) -> Ground:
    for place in (ground.inside, ground.shown, ground.outside):
        os.setxattr(place / "file", "user.was", b"x")
        os.utime(place / "file", (1, 1))
    return ground


@pytest.mark.parametrize("call", CHANGES)
def test_a_file_in_a_writable_place_is_changed(marked: Ground, call: str) -> None:
    act, what = CHANGES[call]
    before = state(marked.inside / "file", what)
    assert marked.box.run(lambda: act(marked.inside / "file")) == 0
    assert state(marked.inside / "file", what) != before


@pytest.mark.parametrize("place", ["shown", "outside"])
@pytest.mark.parametrize("call", CHANGES)
def test_a_file_elsewhere_is_not(marked: Ground, call: str, place: str) -> None:
    act, what = CHANGES[call]
    path = marked.top / place / "file"
    before, control = state(path, what), state(path, "changed")
    assert marked.box.run(lambda: act(path)) == errno.EPERM
    assert (state(path, what), state(path, "changed")) == (before, control)
    assert marked.box.outside(lambda: act(path)) == 0
    assert state(path, what) != before


@pytest.mark.parametrize("call", ["chmod", "utime", "setxattr", "chown"])
def test_a_link_is_followed_to_what_is_judged(marked: Ground, call: str) -> None:
    act, what = CHANGES[call]
    (marked.inside / "out").symlink_to(marked.outside / "file")
    (marked.outside / "in").symlink_to(marked.inside / "file")
    before = state(marked.outside / "file", what)
    assert marked.box.run(lambda: (act(marked.inside / "out"), act(marked.outside / "in"))) == (errno.EPERM, 0)
    assert state(marked.outside / "file", what) == before


def test_a_link_itself_is_changed_where_that_is_asked(marked: Ground) -> None:
    link, bad = marked.inside / "link", marked.outside / "link"
    for one in (link, bad):
        one.symlink_to(marked.outside / "file")
        os.chown(one, marked.box.user.uid, marked.box.user.gid, follow_symlinks=False)

    def act() -> list[int]:
        return [
            raw("utimensat", CWD, name(link), FINE, NOFOLLOW), raw("lchown", name(link), os.getuid(), -1),
            raw("utimensat", CWD, name(bad), FINE, NOFOLLOW), raw("lchown", name(bad), os.getuid(), -1),
            raw("fchmodat2", CWD, name(link), 0o600, NOFOLLOW),
        ]  # fmt: skip

    assert marked.box.run(act) == [0, 0, errno.EPERM, errno.EPERM, errno.EOPNOTSUPP]
    assert marked.box.outside(act) == [0, 0, 0, 0, errno.EOPNOTSUPP]
    assert int(link.lstat().st_mtime) == 2 * DAY
    assert (marked.outside / "file").stat().st_mtime == 1


def test_times_are_those_that_were_asked_for(marked: Ground) -> None:
    path = marked.inside / "file"

    def seen(act: Act) -> tuple[int, int]:
        assert marked.box.run(lambda: act(path)) == 0
        return path.stat().st_atime_ns, path.stat().st_mtime_ns

    omit, second = (1 << 30) - 2, 10**9
    assert seen(lambda p: raw("utimensat", CWD, name(p), FINE, 0)) == (DAY * second + 5, 2 * DAY * second + 7)
    assert seen(lambda p: raw("utimensat", CWD, name(p), times("=4q", 9, 9, 0, omit), 0)) == (9 * second + 9, 2 * DAY * second + 7)
    if MACHINE == "x86_64":
        assert seen(lambda p: raw("utimes", name(p), COARSE)) == (DAY * second + 5000, 2 * DAY * second + 7000)
        assert seen(lambda p: raw("utime", name(p), WHOLE)) == (DAY * second, 2 * DAY * second)


ERRORS: dict[str, Callable[[Ground], int]] = {
    "missing": lambda g: raw("chmod", name(g.inside / "missing"), 0),
    "missing outside": lambda g: raw("chmod", name(g.outside / "missing"), 0),
    "empty": lambda g: raw("chmod", b"", 0),
    "below a file": lambda g: raw("chmod", name(g.inside / "file" / "x"), 0),
    "slash after a file": lambda g: raw("chmod", name(g.inside / "file") + b"/", 0),
    "no memory": lambda g: raw("chmod", 8, 0),
    "too long": lambda g: raw("chmod", b"x" * 5000, 0),
    "component too long": lambda g: raw("chmod", b"x" * 300, 0),
    "no descriptor": lambda g: raw("fchmod", 999, 0),
    "descriptor only names": lambda g: raw("fchmod", opened(g.inside / "file", os.O_PATH), 0),
    "directory is a file": lambda g: raw("fchmodat", opened(g.inside / "file"), b"x", 0),
    "no directory": lambda g: raw("fchmodat", 999, b"x", 0),
    "unknown flags": lambda g: raw("fchmodat2", CWD, name(g.inside / "file"), 0, 4),
    "attribute too long": lambda g: raw("setxattr", name(g.inside / "file"), b"user." + b"x" * 300, b"", 0, 0),
    "attribute empty": lambda g: raw("setxattr", name(g.inside / "file"), b"", b"", 0, 0),
    "value too long": lambda g: raw("setxattr", name(g.inside / "file"), b"user.a", b"", 70000, 0),
    "value not there": lambda g: raw("setxattr", name(g.inside / "file"), b"user.a", 8, 7, 0),
    "no such attribute": lambda g: raw("removexattr", name(g.inside / "file"), b"user.none"),
    "attribute there": lambda g: raw("setxattr", name(g.inside / "file"), b"user.was", b"x", 1, 1),
    "not the owner's": lambda g: raw("chown", name(g.inside / "file"), 0, -1),
    "times not there": lambda g: raw("utimensat", CWD, name(g.inside / "file"), 8, 0),
    "no time": lambda g: raw("utimensat", CWD, name(g.inside / "file"), times("=4q", 0, 10**9, 0, 0), 0),
    "neither path nor descriptor": lambda g: raw("utimensat", CWD, None, FINE, 0),
    "descriptor with flags": lambda g: raw("utimensat", opened(g.inside / "file"), None, FINE, NOFOLLOW),
    "loop": lambda g: raw("chmod", name(g.inside / "loop"), 0),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_the_kernels(marked: Ground, case: str) -> None:
    (marked.inside / "loop").symlink_to("loop")
    outside = marked.box.outside(lambda: ERRORS[case](marked))
    assert outside != 0
    assert marked.box.run(lambda: ERRORS[case](marked)) == outside


def test_a_text_may_end_at_the_end_of_memory(marked: Ground) -> None:
    """A page, its last bytes the path, and nothing after it."""
    path = name(marked.inside / "file") + b"\0"

    def act() -> int:
        libc = ctypes.CDLL(None)
        libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_long] * 5]
        start = libc.mmap(None, 8192, 3, 0x22, -1, 0)
        libc.munmap(ctypes.c_void_p(start + 4096), ctypes.c_long(4096))
        at = start + 4096 - len(path)
        ctypes.memmove(at, path, len(path))
        return raw("chmod", at, 0o600)

    assert marked.box.run(act) == 0
    assert (marked.inside / "file").stat().st_mode & 0o7777 == 0o600


def test_a_deleted_file_of_a_writable_place_can_be_changed(marked: Ground) -> None:
    def act(place: Path) -> tuple[int, int]:
        handle = os.open(place / "short-lived", os.O_CREAT | os.O_RDWR, 0o644)
        os.unlink(place / "short-lived")
        return error_of(lambda: os.fchmod(handle, 0o600)), os.fstat(handle).st_mode & 0o777

    assert marked.box.run(lambda: act(marked.inside)) == (0, 0o600)
    assert marked.box.run(lambda: act(marked.outside)) == (errno.EPERM, 0o644)


def test_a_file_without_a_path_is_not_changed(marked: Ground) -> None:
    def act() -> list[int]:
        return [error_of(lambda: os.fchmod(os.memfd_create("x"), 0)), error_of(lambda: os.fchmod(os.pipe()[0], 0o600))]

    assert (marked.box.outside(act), marked.box.run(act)) == ([0, 0], [errno.EPERM] * 2)


def test_tools_keep_modes_and_times(marked: Ground) -> None:
    def act() -> int:
        os.chdir(marked.inside)
        make = "mkdir d; echo x > d/f; chmod 750 d; touch -d 2001-01-01 d/f; "
        copy = "cp -a d e; tar cf t d; mkdir u; tar xpf t -C u; install -m 711 d/f g"
        return subprocess.run(["/bin/sh", "-ec", make + copy], check=False).returncode

    assert marked.box.run(act) == 0
    modes = [(marked.inside / one).stat().st_mode & 0o777 for one in ("d", "e", "u/d", "g")]
    assert modes == [0o750, 0o750, 0o750, 0o711]
    assert len({(marked.inside / one / "f").stat().st_mtime for one in ("d", "e", "u/d")}) == 1
