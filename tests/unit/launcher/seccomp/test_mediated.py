"""The filter of the jail without namespaces: what it refuses, what it asks, what it leaves – as a table, on a simulated kernel and on this one."""

from __future__ import annotations

import errno
import random
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_sandbox.launcher.seccomp import mediated
from agent_sandbox.launcher.seccomp.assemble import ASK, PRETEND
from agent_sandbox.launcher.seccomp.filters import ARCHITECTURES, LONGEST
from agent_sandbox.launcher.seccomp.mediated import mediated_filter, mediated_rules
from agent_sandbox.launcher.seccomp.rules import Rule
from tests.machines.copies import PYTHON, SOURCE
from tests.unit.launcher.seccomp.kernel import HIGH, MACHINE, MARK, Kernel, Result, marked, x86_only
from tests.unit.launcher.seccomp.mediation import SITUATIONS, USER_NOTIF, Situation, beside, judged, known_ahead
from tests.unit.launcher.seccomp.oracle import NUMBERS, refusal
from tests.unit.launcher.seccomp.simulator import ALLOW, ERRNO, answer

machines = pytest.mark.parametrize("machine", ARCHITECTURES)
situations = pytest.mark.parametrize("situation", SITUATIONS, ids=str)

ISOLATED, PROXIED, OPEN = (Situation(network=network) for network in ("isolated", "proxied", "open"))
ALONE = Situation(supervised=False)
ALL_REFUSED = Situation(network="isolated", supervised=False, private_ipc=True, covers_truncate=False)

CLOEXEC, NONBLOCK = 0o2000000, 0o4000
MODES = ("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat")
TIMES = ("utime", "utimes", "futimesat", "utimensat")
ATTRIBUTES = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")
SYSV = ("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl")

# situation, call, arguments → an error's name, "ask" or "allow"
TABLE: list[tuple[Situation, str, tuple[int, ...], str]] = [
    *((OPEN, call, (), "ENOSYS") for call in ("io_uring_setup", "io_uring_enter", "io_uring_register")),
    *((OPEN, call, (), "ENOSYS") for call in ("setxattrat", "removexattrat", "file_setattr")),
    *((OPEN, call, (), "EPERM") for call in ("keyctl", "add_key", "request_key", "name_to_handle_at", "open_by_handle_at", "fanotify_init")),
    *((OPEN, call, (), "ask") for call in ("connect", *MODES, *TIMES, *ATTRIBUTES, "inotify_add_watch")),
    *((ALONE, call, (), "EPERM") for call in (*MODES, *TIMES)),
    *((ALONE, call, (), "EOPNOTSUPP") for call in ATTRIBUTES),
    (ALONE, "inotify_add_watch", (), "EACCES"),
    (ALONE, "connect", (), "allow"),  # no unix socket can be made: what there is to connect is of the internet
    (ISOLATED._replace(supervised=False), "connect", (), "EACCES"),
    (PROXIED._replace(supervised=False), "connect", (), "EACCES"),
    # sockets: unix
    (OPEN, "socket", (1, 1, 0), "allow"),
    (OPEN, "socket", (1, 5 | CLOEXEC | NONBLOCK, 0), "allow"),
    (OPEN, "socket", (1, 2, 0), "EACCES"),
    (OPEN, "socket", (1, 2 | CLOEXEC, 0), "EACCES"),
    (OPEN, "socket", (1, 3, 0), "EACCES"),  # SOCK_RAW: the kernel makes it SOCK_DGRAM
    (OPEN, "socket", (1, 0, 0), "EACCES"),
    (OPEN, "socketpair", (1, 1, 0), "allow"),
    (OPEN, "socketpair", (1, 5, 0), "allow"),
    (OPEN, "socketpair", (1, 2 | CLOEXEC, 0), "ask"),
    (OPEN, "socketpair", (1, 3, 0), "EACCES"),
    *((ALONE, "socket", (1, kind, 0), "EACCES") for kind in (1, 2, 3, 5)),
    *((ALONE, "socketpair", (1, kind, 0), "allow") for kind in (1, 5)),
    *((ALONE, "socketpair", (1, kind, 0), "EACCES") for kind in (2, 3)),
    # sockets: the rest
    *((OPEN, "socket", (family, kind, 0), "allow") for family in (2, 10) for kind in (1, 2)),
    (OPEN, "socket", (16, 3, 0), "allow"),
    (OPEN, "socket", (16, 3, 9), "EPROTONOSUPPORT"),
    (OPEN, "socket", (2, 3, 1), "EPERM"),
    *((OPEN, "socket", (family, 1, 0), "EAFNOSUPPORT") for family in (0, 17, 21, 30, 31, 38, 40, 43, 44)),
    *((ISOLATED, "socket", (family, kind, 0), "EAFNOSUPPORT") for family in (0, 2, 10, 16, 17, 40) for kind in (1, 2, 3)),
    *((ISOLATED, "socket", (1, kind, 0), "allow") for kind in (1, 5)),
    (ISOLATED, "socketpair", (30, 1, 0), "EAFNOSUPPORT"),
    *((PROXIED, "socket", (family, 1 | CLOEXEC, protocol), "allow") for family in (2, 10) for protocol in (0, 6)),
    *((PROXIED, "socket", (2, 1, protocol), "EPROTONOSUPPORT") for protocol in (33, 132, 256, 262)),  # DCCP, SCTP, SMC, MPTCP
    *((PROXIED, "socket", (2, kind, 0), "EACCES") for kind in (2, 3, 4, 5, 6, 10)),
    *((PROXIED, "socket", (family, 3, 0), "EAFNOSUPPORT") for family in (16, 17, 40)),
    (PROXIED, "socket", (1, 1, 0), "allow"),
    # the other call and the other family
    (PROXIED, "socket", (1, 5, 7), "allow"),
    *((PROXIED, "socket", (10, 1, protocol), "EPROTONOSUPPORT") for protocol in (132, 262)),
    *((PROXIED, "socket", (10, kind, 0), "EACCES") for kind in (2, 3)),
    (PROXIED, "socketpair", (1, 1, 7), "allow"),
    (PROXIED, "socketpair", (40, 1, 0), "EAFNOSUPPORT"),
    (PROXIED, "socketpair", (2, 2, 0), "EACCES"),
    (PROXIED, "socketpair", (2, 1, 262), "EPROTONOSUPPORT"),
    (OPEN, "socket", (10, 3, 58), "EPERM"),
    *((OPEN, "socket", (family, 10, 0), "EPERM") for family in (2, 10)),
    (OPEN, "socketpair", (40, 1, 0), "EAFNOSUPPORT"),
    (OPEN, "socketpair", (16, 3, 9), "EPROTONOSUPPORT"),
    (OPEN, "socketpair", (2, 3, 0), "EPERM"),
    *((OPEN, "socketpair", (2, kind, 0), "allow") for kind in (2, 6)),
    *((ALONE, call, (2, kind, 0), "allow") for call in ("socket", "socketpair") for kind in (1, 2)),
    *((PROXIED, call, (3, 0, 0, 0x20000000), "EOPNOTSUPP") for call in ("sendto", "sendmmsg")),
    *((PROXIED, call, (3, 0, 0, 0x4000), "allow") for call in ("sendto", "sendmmsg")),
    (PROXIED, "sendmsg", (3, 0, 0x20000040), "EOPNOTSUPP"),
    (PROXIED, "sendmsg", (3, 0, 0x40), "allow"),
    *((PROXIED, "setsockopt", (3, 6, option), "ENOPROTOOPT") for option in (23, 30, 33, 34)),
    (PROXIED, "setsockopt", (3, 6, 1), "allow"),  # TCP_NODELAY
    (PROXIED, "setsockopt", (3, 1, 30), "allow"),
    (PROXIED, "listen", (3, 1), "ask"),
    (PROXIED._replace(supervised=False), "listen", (3, 1), "EACCES"),
    *((situation, "listen", (3, 1), "allow") for situation in (OPEN, ISOLATED, ALONE)),
    (OPEN, "sendto", (3, 0, 0, 0x20000000), "allow"),
    # ioctl
    *((OPEN, "ioctl", (3, request), "EPERM") for request in (0x5412, 0x541C)),  # TIOCSTI, TIOCLINUX
    (OPEN, "ioctl", (3, 0x5441), "ask"),
    (ALONE, "ioctl", (3, 0x5441), "allow"),
    *(
        (OPEN, "ioctl", (3, request), "EPERM")
        for request in (
            0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602,  # FS_IOC_SETFLAGS, 32, FSSETXATTR, SETVERSION, 32
            0x800C6613, 0xC0506617, 0xC0406618, 0xC0406619, 0x40806685,  # fscrypt: policy, add, remove, for all; fs-verity
            0x40086604, 0x6609, 0x660C, 0x6611, 0x6628,  # ext4: version, migrate, allocate, swap boot, forget
            0x4008669A, 0x400866F2, 0xC00866F2, 0x400866B0,  # Lustre: stripes, removal by number, times
            0x50009401, 0x5000940E, 0x5000940F, 0x50009417, 0x5000943F, 0x4008941A, 0x50009402,  # btrfs: subvolumes, flags, defragment
            0xC0189436,  # FIDEDUPERANGE
            0x4004F50D, 0xBC10, 0x4018BC11, 0x40047211, 0x40186F04, 0x40289702, 0x40289705, 0x40084301,
        )
    ),
    *(
        (OPEN, "ioctl", (3, request), "allow")
        for request in (
            0x80086601, 0x80046601, 0x80086603, 0xC020660B, 0x801C581F,  # read flags, version, extents, FSGETXATTR
            0x4008669B, 0x800866AD, 0x800866A8, 0xC00866A4,  # Lustre: stripes, number of a file, servers, space
            0x40049409, 0x4020940D,  # FICLONE, FICLONERANGE
            0x5401, 0x5413, 0x541B, 0x5421, 0x8912, 0x8927, 0xC0484645,  # TCGETS, window size, FIONREAD, interfaces, one of a GPU's
        )
    ),
    *((ISOLATED, "ioctl", (3, request), "EPERM") for request in (0x8912, 0x8915, 0x8927, 0x8946, 0x89F0)),  # interfaces, addresses
    *((ISOLATED, "ioctl", (3, request), "allow") for request in (*range(0x8901, 0x8908), 0x89E0, 0x5411, 0x541B)),
    # other processes
    (OPEN, "prlimit64", (0, 7), "allow"),
    (OPEN, "prlimit64", (1, 7), "EPERM"),
    (OPEN, "prlimit64", (0xFFFFFFFF, 7), "EPERM"),
    *((OPEN, call, (0,), "allow") for call in ("sched_setscheduler", "sched_setparam", "sched_setattr")),
    *((OPEN, call, (1,), "EPERM") for call in ("sched_setscheduler", "sched_setparam", "sched_setattr")),
    (OPEN, "sched_setaffinity", (1,), "allow"),
    (OPEN, "setpriority", (0, 0), "allow"),
    *((OPEN, "setpriority", who, "EPERM") for who in ((0, 1), (1, 0), (2, 0), (2, 1), (0, 0xFFFFFFFF))),
    (OPEN, "ioprio_set", (1, 0), "allow"),
    *((OPEN, "ioprio_set", who, "EPERM") for who in ((1, 1), (2, 0), (3, 0), (0, 0))),
    # namespaces
    (OPEN, "setns", (), "EPERM"),
    (OPEN, "clone3", (), "ENOSYS"),
    (OPEN, "unshare", (0x400,), "allow"),  # CLONE_FILES
    *((OPEN, "unshare", (flag,), "EPERM") for flag in (0x80, 0x20000, 0x2000000, 0x8000000, 0x10000000, 0x40000000, 0x10000400)),
    *((OPEN, "clone", (flags,), "allow") for flags in (0x01200011, 0x003D0F00, 0x80)),
    *((OPEN, "clone", (flag | 17,), "EPERM") for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)),
    *((OPEN._replace(nested=True), call, (0x10000000,), "allow") for call in ("setns", "unshare", "clone", "clone3")),
    # System V and POSIX queues
    *((OPEN, call, (), "allow") for call in (*SYSV, "mq_open", "mq_unlink")),
    *((OPEN._replace(private_ipc=True), call, (), "ENOSYS") for call in (*SYSV, "mq_open", "mq_unlink")),
    # old Landlock
    *((OPEN, call, (), "allow") for call in ("truncate", "openat2")),
    (OPEN, "openat", (0, 0, 0x200), "allow"),
    (ALL_REFUSED, "truncate", (), "EPERM"),
    (ALL_REFUSED, "openat2", (), "ENOSYS"),
    *((ALL_REFUSED, "openat", (0, 0, flags), "EPERM") for flags in (0x200, 0x203, 0x240, 0x80200)),
    *((ALL_REFUSED, "openat", (0, 0, flags), "allow") for flags in (0, 1, 2, 3, 0x201, 0x202, 0x241, 0x80000)),
    *((ALL_REFUSED, "open", (0, flags), "EPERM") for flags in (0x200, 0x203)),
    *((ALL_REFUSED, "open", (0, flags), "allow") for flags in (0, 0x201, 0x202)),
    (ALL_REFUSED, "creat", (), "allow"),
]  # fmt: skip

HOT = (
    *("read", "write", "openat", "close", "fstat", "newfstatat", "statx", "lseek", "mmap", "munmap", "mprotect", "brk", "futex"),
    *("epoll_pwait", "ppoll", "pread64", "pwrite64", "readv", "writev", "recvfrom", "recvmsg", "clock_gettime", "sched_yield"),
    *("getdents64", "fcntl", "rt_sigprocmask", "rt_sigaction", "madvise", "getpid", "gettid", "nanosleep", "execve", "wait4", "exit"),
)


def meaning(wanted: str) -> int:
    return {"allow": ALLOW, "ask": USER_NOTIF}.get(wanted) or refusal(wanted)


@machines
def test_the_table_holds_whatever_the_upper_halves(machine: str) -> None:
    chance = random.Random(0)
    for situation, call, arguments, wanted in TABLE:
        program = mediated_filter(machine, **situation._asdict())
        if call in NUMBERS[machine]:
            for high in (0, chance.getrandbits(32) << 32):
                given_ = [value | high for value in arguments]
                found = answer(program, ARCHITECTURES[machine], NUMBERS[machine][call], given_)
                assert found == meaning(wanted), (situation, call, *map(hex, arguments))


@machines
@situations
def test_each_rule_is_judged_as_it_says_and_so_is_what_lies_beside_it(machine: str, situation: Situation) -> None:
    program, rules = mediated_filter(machine, **situation._asdict()), mediated_rules(**situation._asdict())
    for call, arguments in beside(rules):
        if call in NUMBERS[machine]:
            found = answer(program, ARCHITECTURES[machine], NUMBERS[machine][call], arguments)
            assert found == judged(rules, call, arguments), (call, *map(hex, arguments))


@settings(max_examples=500, deadline=None)
@given(
    situation=st.sampled_from(SITUATIONS), machine=st.sampled_from(tuple(ARCHITECTURES)),
    call=st.sampled_from(("socket", "socketpair", "ioctl", "clone", "unshare", "openat", "prlimit64", "sendto", "setsockopt", "setpriority")),
    arguments=st.lists(st.one_of(st.integers(0, 64), st.integers(0, (1 << 64) - 1)), min_size=6, max_size=6),
)  # fmt: skip
def test_any_arguments_are_judged_as_the_rules_say(situation: Situation, machine: str, call: str, arguments: list[int]) -> None:
    program, rules = mediated_filter(machine, **situation._asdict()), mediated_rules(**situation._asdict())
    assert answer(program, ARCHITECTURES[machine], NUMBERS[machine][call], arguments) == judged(rules, call, arguments)


@machines
@situations
def test_a_call_without_a_rule_is_allowed_without_a_look_at_its_arguments(machine: str, situation: Situation) -> None:
    """Then the kernel remembers the answer, and the filter costs nothing."""
    program = mediated_filter(machine, **situation._asdict())
    ruled = {call for rule in mediated_rules(**situation._asdict()) for call in rule.calls}
    x32 = range(512, 548)
    for call, number in NUMBERS[machine].items():
        if call not in ruled and number not in x32:
            assert known_ahead(program, ARCHITECTURES[machine], number) == ALLOW, call


@machines
@pytest.mark.parametrize("situation", [situation for situation in SITUATIONS if situation.covers_truncate], ids=str)
def test_no_call_that_programs_make_all_the_time_has_a_rule(machine: str, situation: Situation) -> None:
    program = mediated_filter(machine, **situation._asdict())
    for call in HOT:
        assert known_ahead(program, ARCHITECTURES[machine], NUMBERS[machine][call]) == ALLOW, call


@machines
@situations
def test_foreign_calls_are_refused(machine: str, situation: Situation) -> None:
    program = mediated_filter(machine, **situation._asdict())
    for token in {*ARCHITECTURES.values(), 0x40000003, 0} - {ARCHITECTURES[machine]}:
        assert {answer(program, token, number) for number in (0, 20, 39, 425, 0x40000000)} == {refusal("ENOSYS")}
    if machine == "x86_64":
        x32 = (*range(512, 548), 0x40000000 + 39, 0x40000000 + 425)
        assert {answer(program, ARCHITECTURES[machine], number) for number in x32} == {refusal("ENOSYS")}


@machines
@situations
def test_the_kernel_takes_a_program_of_this_length(machine: str, situation: Situation) -> None:
    assert 0 < len(mediated_filter(machine, **situation._asdict())) < LONGEST // 4


def all_rules() -> tuple[Rule, ...]:
    return tuple({rule: None for situation in SITUATIONS for rule in mediated_rules(**situation._asdict())})


def test_every_rule_is_whole() -> None:
    for rule in all_rules():
        assert rule.calls and (rule.error in (ASK, PRETEND) or hasattr(errno, rule.error)), rule
        assert rule.reason and "\n" not in rule.reason, rule
        assert bool(rule.when) == bool(rule.matches), rule
        assert all(value & ~match.mask == 0 for match in rule.matches for value in match.values), rule


def test_every_name_is_a_system_call() -> None:
    assert {call for rule in all_rules() for call in rule.calls} <= NUMBERS["x86_64"].keys()


def test_what_the_ready_filter_would_refuse_is_refused_where_it_is_switched_off() -> None:
    assert len(mediated.OF_THE_READY_FILTER) == 5 and len(mediated.OPEN) == 3


def test_an_unknown_network_has_no_filter() -> None:
    with pytest.raises(KeyError):
        mediated_filter("x86_64", network="filtered", supervised=True, nested=False, private_ipc=False, covers_truncate=True)


def test_it_is_made_in_less_than_a_millisecond() -> None:
    code = f"""
import sys, time; sys.path.insert(0, {str(SOURCE.parent)!r})
from agent_sandbox.launcher.seccomp.mediated import mediated_filter
def measure():
    start = time.perf_counter()
    mediated_filter("x86_64", network="proxied", supervised=True, nested=False, private_ipc=True, covers_truncate=False)
    return time.perf_counter() - start
print(min(measure() for _ in range(20)))
"""
    done = subprocess.run([PYTHON, "-I", "-S", "-B", "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 0.001


NOWHERE = 0x3FFFFF  # above every pid
TRIED = [  # harmless also without the filter: no such process, no such file, a bad address, a bad descriptor
    (OPEN, "native", "setxattrat", (), errno.ENOSYS),
    (OPEN, "native", "name_to_handle_at", (), errno.EPERM),
    (OPEN, "native", "fanotify_init", (0xFFFFFFFF,), errno.EPERM),
    (OPEN, "native", "io_uring_setup", (1, 0), errno.ENOSYS),
    (OPEN, "native", "socket", (1, 2, 0), errno.EACCES),
    (OPEN, "native", "socket", (HIGH | 1, HIGH | 3, 0), errno.EACCES),
    (OPEN, "native", "socketpair", (1, 3, 0, 0), errno.EACCES),
    (OPEN, "native", "socket", (16, 3, 9), errno.EPROTONOSUPPORT),
    (OPEN, "native", "socket", (40, 1, 0), errno.EAFNOSUPPORT),
    (ISOLATED, "native", "socket", (2, 1, 0), errno.EAFNOSUPPORT),
    (ISOLATED, "native", "socket", (HIGH | 10, 2, 0), errno.EAFNOSUPPORT),
    (ISOLATED, "native", "socket", (16, 3, 0), errno.EAFNOSUPPORT),
    (ISOLATED, "native", "ioctl", (0xFFFFFFFF, HIGH | 0x8912, 0), errno.EPERM),
    (PROXIED, "native", "socket", (2, 2, 0), errno.EACCES),
    (PROXIED, "native", "socket", (2, 1, 262), errno.EPROTONOSUPPORT),
    (PROXIED, "native", "socket", (10, 1, 132), errno.EPROTONOSUPPORT),
    (PROXIED, "native", "sendto", (0xFFFFFFFF, 0, 0, 0x20000000, 0, 0), errno.EOPNOTSUPP),
    (PROXIED, "native", "sendmsg", (0xFFFFFFFF, 0, HIGH | 0x20000000), errno.EOPNOTSUPP),
    (PROXIED, "native", "sendmmsg", (0xFFFFFFFF, 0, 0, 0x20000000), errno.EOPNOTSUPP),
    (PROXIED, "native", "setsockopt", (0xFFFFFFFF, 6, 30, 0, 0), errno.ENOPROTOOPT),
    (OPEN, "tty", "ioctl", (0, HIGH | 0x5412), errno.EPERM),
    *((OPEN, "native", "ioctl", (0xFFFFFFFF, request, 0), errno.EPERM) for request in (0x40086602, HIGH | 0x401C5820, 0x800C6613, 0x5000940E)),
    (OPEN, "native", "prlimit64", (NOWHERE, 7, 0, 0), errno.EPERM),
    (OPEN, "native", "sched_setattr", (NOWHERE, 0, 0), errno.EPERM),
    (OPEN, "native", "sched_setscheduler", (NOWHERE, 0, 0), errno.EPERM),
    (OPEN, "native", "sched_setparam", (NOWHERE, 0), errno.EPERM),
    (OPEN, "native", "setpriority", (0, NOWHERE, 0), errno.EPERM),
    (OPEN, "native", "setpriority", (1, NOWHERE, 0), errno.EPERM),
    (OPEN, "native", "setpriority", (2, NOWHERE, 0), errno.EPERM),
    (OPEN, "native", "ioprio_set", (1, NOWHERE, 0), errno.EPERM),
    (OPEN, "native", "ioprio_set", (3, NOWHERE, 0), errno.EPERM),
    (OPEN, "native", "setns", (0xFFFFFFFF, 0), errno.EPERM),
    (OPEN, "native", "unshare", (0x10000000,), errno.EPERM),
    (OPEN, "native", "unshare", (HIGH | 0x80,), errno.EPERM),
    (OPEN, "native", "clone3", (0, 0), errno.ENOSYS),
    *((ALL_REFUSED, "native", call, (0xFFFFFFFF, 0, 0), errno.ENOSYS) for call in ("shmat", "semop", "msgsnd", "mq_unlink")),
    (ALL_REFUSED, "native", "truncate", (0, 0), errno.EPERM),
    (ALL_REFUSED, "native", "openat", (0, 0, 0x200), errno.EPERM),
    (ALL_REFUSED, "native", "openat", (0, 0, HIGH | 0x203), errno.EPERM),
    (ALL_REFUSED, "native", "openat2", (0, 0, 0, 0), errno.ENOSYS),
    (ALL_REFUSED, "native", "connect", (0xFFFFFFFF, 0, 0), errno.EACCES),
    (ALL_REFUSED, "native", "socket", (1, 1, 0), errno.EACCES),
    (ALL_REFUSED, "native", "fchmodat", (0xFFFFFFFF, 0, 0), errno.EPERM),
    (ALL_REFUSED, "native", "fchmodat2", (0xFFFFFFFF, 0, 0, 0), errno.EPERM),
    (ALL_REFUSED, "native", "utimensat", (0xFFFFFFFF, 0, 0, 0), errno.EPERM),
    (ALL_REFUSED, "native", "fsetxattr", (0xFFFFFFFF, 0, 0, 0, 0), errno.EOPNOTSUPP),
    (ALL_REFUSED, "native", "inotify_add_watch", (0xFFFFFFFF, 0, 0), errno.EACCES),
    pytest.param(OPEN, "int80", 20, (), errno.ENOSYS, marks=x86_only),
    pytest.param(OPEN, "int80", 425, (1, 0), errno.ENOSYS, marks=x86_only),
    pytest.param(OPEN, "native", 0x40000000 + 39, (), errno.ENOSYS, marks=x86_only),
]  # fmt: skip


@pytest.mark.parametrize(("situation", "how", "call", "arguments", "error"), TRIED)
def test_in_this_kernel_the_filter_refuses(
    kernel: Kernel, situation: Situation, how: str, call: str | int, arguments: tuple[int, ...], error: int
) -> None:
    code = mediated_filter(MACHINE, **situation._asdict())
    assert kernel.attempt(None, how, call, *arguments).error != MARK
    assert kernel.attempt(code, how, call, *arguments) == Result(-1, error)
    assert kernel.attempt(marked(code), how, call, *arguments) == Result(-1, MARK)


ASKED = [
    ("connect", (0xFFFFFFFF, 0, 0)),
    ("socketpair", (1, HIGH | 2 | CLOEXEC, 0, 0)),
    ("ioctl", (0xFFFFFFFF, HIGH | 0x5441, 0)),
    *((call, (0xFFFFFFFF, 0, 0, 0)) for call in ("fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "utimensat", "inotify_add_watch")),
    *((call, (0, 0, 0, 0)) for call in ATTRIBUTES),
]


@pytest.mark.parametrize(("call", "arguments"), ASKED)
def test_in_this_kernel_what_is_asked_goes_to_nobody_without_a_listener(kernel: Kernel, call: str, arguments: tuple[int, ...]) -> None:
    """ENOSYS, so it was not made; and it is the question that did it."""
    code = mediated_filter(MACHINE, **OPEN._asdict())
    assert kernel.attempt(None, "native", call, *arguments).error not in (MARK, errno.ENOSYS)
    assert kernel.attempt(code, "native", call, *arguments) == Result(-1, errno.ENOSYS)
    assert kernel.attempt(marked(code, (USER_NOTIF,)), "native", call, *arguments) == Result(-1, MARK)
    assert kernel.attempt(marked(code, (ERRNO,)), "native", call, *arguments) == Result(-1, errno.ENOSYS)


WORKS = [
    (OPEN, "socket", (1, 1, 0)),
    (OPEN, "socket", (1, 5 | CLOEXEC, 0)),
    (OPEN, "socket", (2, 2, 0)),
    (OPEN, "socket", (16, 3, 0)),
    (ISOLATED, "socket", (1, 1, 0)),
    (PROXIED, "socket", (2, 1, 6)),
    (OPEN, "prlimit64", (0, 7, 0, 0)),
    (OPEN, "setpriority", (0, 0, 0)),
    (OPEN, "sched_setaffinity", (NOWHERE, 0, 0)),
    (ALL_REFUSED, "getpid", ()),
]


@pytest.mark.parametrize(("situation", "call", "arguments"), WORKS)
def test_in_this_kernel_what_programs_need_is_as_without_the_filter(
    kernel: Kernel, situation: Situation, call: str, arguments: tuple[int, ...]
) -> None:
    code = mediated_filter(MACHINE, **situation._asdict())
    found, bare = (kernel.attempt(program, "native", call, *arguments) for program in (code, None))
    assert (found.error, found.value < 0) == (bare.error, bare.value < 0)
