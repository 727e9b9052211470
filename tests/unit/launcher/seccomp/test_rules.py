"""The table itself: that it says what it must, in a form that compiles without surprise."""

from __future__ import annotations

import errno

import pytest

from agent_sandbox.launcher.seccomp.rules import RULES, rules_for
from tests.unit.launcher.seccomp.oracle import NUMBERS, expected, refusal
from tests.unit.launcher.seccomp.simulator import ALLOW

MOUNTING = {
    *("mount", "umount2", "pivot_root", "mount_setattr", "open_tree", "open_tree_attr", "move_mount"),
    *("fsopen", "fsconfig", "fsmount", "fspick"),
}
REFUSED = {
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "userfaultfd", "bpf", "kcmp", "fanotify_init"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "iopl", "ioperm"),
    *("reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime"),
    *("vhangup", "syslog", "_sysctl", "sysfs", "uselib", "ustat", "nfsservctl", "lookup_dcookie"),
    *("keyctl", "add_key", "request_key", "name_to_handle_at", "open_by_handle_at", *MOUNTING),
}
NAMESPACES = {"unshare", "setns", "clone3"}
REFUSED_IN_STRICT = {
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "perf_event_open", "memfd_secret"),
    *(REFUSED | NAMESPACES),
}
NO_SUCH_CALL = {"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"}


@pytest.mark.parametrize(
    ("mode", "nested", "calls"),
    [
        ("hpc", False, REFUSED),
        ("hpc", True, REFUSED - MOUNTING),
        ("strict", False, REFUSED_IN_STRICT),
        ("strict", True, REFUSED_IN_STRICT - MOUNTING - NAMESPACES),
    ],
)
def test_each_mode_refuses_exactly_these_calls_whatever_their_arguments(
    mode: str, nested: bool, calls: set[str]
) -> None:
    found = {call: rule.error for rule in rules_for(mode, nested=nested) if not rule.matches for call in rule.calls}
    assert found == {call: "ENOSYS" if call in NO_SUCH_CALL else "EPERM" for call in calls}


@pytest.mark.parametrize(
    ("call", "arguments", "answer"),
    [
        ("ioctl", (0, 0x5412), refusal("EPERM")),  # TIOCSTI
        ("ioctl", (0, 0x541C), refusal("EPERM")),  # TIOCLINUX
        ("ioctl", (0, 0x5413), ALLOW),  # TIOCGWINSZ
        ("personality", (0,), ALLOW),
        ("personality", (0xFFFFFFFF,), ALLOW),
        ("personality", (0x40000,), ALLOW),  # ADDR_NO_RANDOMIZE
        ("personality", (0x400000,), refusal("EPERM")),  # READ_IMPLIES_EXEC
        ("personality", (8,), refusal("EPERM")),  # PER_LINUX32
        ("socket", (1, 1, 0), ALLOW),
        ("socket", (2, 1, 0), ALLOW),
        ("socket", (10, 2, 17), ALLOW),
        ("socket", (2, 2, 1), ALLOW),  # unprivileged ping
        ("socket", (16, 3, 0), ALLOW),  # AF_NETLINK, SOCK_RAW, NETLINK_ROUTE: what getifaddrs opens
        ("socket", (16, 3, 9), refusal("EPROTONOSUPPORT")),  # NETLINK_AUDIT
        ("socket", (16, 3, 20), refusal("EPROTONOSUPPORT")),  # NETLINK_RDMA
        ("socket", (2, 3, 1), refusal("EPERM")),
        ("socket", (10, 3 | 0o2000000, 58), refusal("EPERM")),  # SOCK_RAW | SOCK_CLOEXEC
        ("socket", (2, 10, 0x0300), refusal("EPERM")),  # SOCK_PACKET: the kernel makes it an AF_PACKET socket
        *(("socket", (family, 1, 0), refusal("EAFNOSUPPORT")) for family in (17, 21, 30, 31, 38, 40, 44)),
        ("socketpair", (1, 1, 0), ALLOW),
        ("socketpair", (30, 1, 0), refusal("EAFNOSUPPORT")),  # AF_TIPC makes pairs as well
        ("clone", (0x01200011,), ALLOW),  # fork
        ("clone", (0x003D0F00,), ALLOW),  # a thread
    ],
)
def test_calls_are_refused_by_their_arguments(call: str, arguments: tuple[int, ...], answer: int) -> None:
    for mode in ("hpc", "strict"):
        assert expected(rules_for(mode, nested=False), call, arguments) == answer


@pytest.mark.parametrize("flag", [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000])
def test_strict_refuses_each_namespace_flag_of_clone_unless_nested(flag: int) -> None:
    assert expected(rules_for("strict", nested=False), "clone", (flag | 17,)) == refusal("EPERM")
    assert expected(rules_for("strict", nested=True), "clone", (flag | 17,)) == ALLOW
    assert expected(rules_for("hpc", nested=False), "clone", (flag | 17,)) == ALLOW


def test_every_rule_is_whole() -> None:
    for rule in RULES:
        assert rule.calls and hasattr(errno, rule.error) and "strict" in rule.modes, rule
        assert rule.reason and "\n" not in rule.reason, rule
        assert bool(rule.when) == bool(rule.matches), rule
        assert all(value & ~match.mask == 0 for match in rule.matches for value in match.values), rule


def test_every_refused_name_is_a_system_call() -> None:
    assert {call for rule in RULES for call in rule.calls} <= NUMBERS["x86_64"].keys()


def test_no_call_is_refused_both_always_and_by_its_arguments() -> None:
    whole = {call for rule in RULES if not rule.matches for call in rule.calls}
    assert not whole & {call for rule in RULES if rule.matches for call in rule.calls}
