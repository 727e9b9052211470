"""The filters in the running kernel: what they refuse is refused, and works without them.

A refusal must come from the filter and not from a kernel that lacks the call. So each attempt is made three times:
without a filter; with the filter; and with the filter's errors all replaced by one that no such call gives.
"""

from __future__ import annotations

import errno

import pytest

from agent_sandbox.launcher.seccomp.extra import deny_filter
from agent_sandbox.launcher.seccomp.filters import ready_filter
from agent_sandbox.launcher.seccomp.numbers import number_of
from tests.unit.launcher.seccomp.kernel import HIGH, MACHINE, MARK, Kernel, Result, marked, x86_only

REFUSED = [
    ("native", "io_uring_setup", (1, 0), errno.ENOSYS),
    ("native", "keyctl", (0, -3 & (1 << 64) - 1, 0), errno.EPERM),  # the id of the session keyring
    ("native", "open_tree_attr", (-100 & (1 << 64) - 1, 0, 0, 0, 0), errno.EPERM),
    ("native", "mount", (0, 0, 0, 0, 0), errno.EPERM),
    ("native", "bpf", (0, 0, 0), errno.EPERM),
    ("native", "personality", (8,), errno.EPERM),
    ("native", "personality", (HIGH | 8,), errno.EPERM),
    ("native", "socket", (40, 1, 0), errno.EAFNOSUPPORT),  # AF_VSOCK
    ("native", "socket", (HIGH | 40, 1, 0), errno.EAFNOSUPPORT),
    ("native", "socket", (38, 5, 0), errno.EAFNOSUPPORT),  # AF_ALG
    ("native", "socket", (17, 3, 0), errno.EAFNOSUPPORT),  # AF_PACKET
    ("native", "socket", (16, 3, 4), errno.EPROTONOSUPPORT),  # NETLINK_SOCK_DIAG
    ("native", "socket", (16, 3, 9), errno.EPROTONOSUPPORT),  # NETLINK_AUDIT
    ("native", "socket", (HIGH | 16, 3, HIGH | 9), errno.EPROTONOSUPPORT),
    ("native", "socket", (2, 3, 1), errno.EPERM),  # SOCK_RAW
    ("native", "socket", (2, HIGH | 3, 1), errno.EPERM),
    ("native", "socket", (2, 10, 0x0300), errno.EPERM),  # SOCK_PACKET
    ("tty", "ioctl", (0, 0x5412), errno.EPERM),  # TIOCSTI
    ("tty", "ioctl", (0, HIGH | 0x5412), errno.EPERM),
    ("tty", "ioctl", (0, 0xFFFFFFFF_00005412), errno.EPERM),
    ("tty", "ioctl", (0, HIGH | 0x541C), errno.EPERM),  # TIOCLINUX
    pytest.param("int80", 20, (), errno.ENOSYS, marks=x86_only),  # i386 getpid
    pytest.param("int80", 425, (1, 0), errno.ENOSYS, marks=x86_only),  # i386 io_uring_setup
    pytest.param("native", 0x40000000 + 39, (), errno.ENOSYS, marks=x86_only),  # x32 getpid
]


@pytest.mark.parametrize("mode", ["hpc", "strict"])
@pytest.mark.parametrize(("how", "call", "arguments", "error"), REFUSED)
def test_the_filter_and_not_the_kernel_refuses(
    kernel: Kernel, mode: str, how: str, call: str | int, arguments: tuple[int, ...], error: int
) -> None:
    code = ready_filter(mode, MACHINE, nested=False)
    assert kernel.attempt(None, how, call, *arguments).error != MARK
    assert kernel.attempt(code, how, call, *arguments) == Result(-1, error)
    assert kernel.attempt(marked(code), how, call, *arguments) == Result(-1, MARK)


WORKS_WITHOUT = [
    ("native", "keyctl", (0, -3 & (1 << 64) - 1, 0)),
    ("native", "personality", (HIGH | 8,)),
    ("native", "socket", (HIGH | 16, 3, HIGH | 9)),
    pytest.param("int80", 20, (), marks=x86_only),
]


@pytest.mark.parametrize(("how", "call", "arguments"), WORKS_WITHOUT)
def test_control_without_the_filter_it_succeeds(
    kernel: Kernel, how: str, call: str | int, arguments: tuple[int, ...]
) -> None:
    assert kernel.attempt(None, how, call, *arguments).value >= 0


def test_control_the_kernel_drops_the_upper_half_of_a_terminal_request(kernel: Kernel) -> None:
    plain = kernel.attempt(None, "tty", "ioctl", 0, 0x5412)
    assert plain.error in (0, errno.EIO)  # EIO: dev.tty.legacy_tiocsti is 0, and we are not root
    assert kernel.attempt(None, "tty", "ioctl", 0, HIGH | 0x5412) == plain


ALLOWED = [
    ("native", "personality", (0xFFFFFFFF,)),
    ("native", "personality", (0x40000,)),
    ("native", "socket", (1, 1, 0)),
    ("native", "socket", (2, 1, 0)),
    ("native", "socket", (16, 3, 0)),  # NETLINK_ROUTE
    ("tty", "ioctl", (0, 0x540F)),  # TIOCGPGRP
    ("native", "getpid", ()),
]


@pytest.mark.parametrize("mode", ["hpc", "strict"])
@pytest.mark.parametrize(("how", "call", "arguments"), ALLOWED)
def test_what_programs_need_works_under_the_filter(
    kernel: Kernel, mode: str, how: str, call: str, arguments: tuple[int, ...]
) -> None:
    assert kernel.attempt(ready_filter(mode, MACHINE, nested=False), how, call, *arguments).value >= 0


def test_a_denied_call_is_refused_by_the_second_filter(kernel: Kernel) -> None:
    number = number_of("getppid", MACHINE)
    assert number is not None
    assert kernel.attempt(None, "native", "getppid").value > 0
    assert kernel.attempt(deny_filter((number,), MACHINE), "native", "getppid") == Result(-1, errno.EPERM)
    assert kernel.attempt(deny_filter((number,), MACHINE), "native", "getpid").value > 0
