"""Which system calls are refused, when, with which error and why: the one table. Pure.

Everything that is not here is allowed. `hpc` leaves what CUDA, MPI, debuggers and conda need; `strict` adds to it.
`compile` turns the table into filters, `verdict` into words.

A C `int` is 32 bits of a 64-bit register, and the kernel drops the upper half before it looks: so a comparison
here only ever sees the lower half, and no bit above it can make a refused value look like another one.
"""

from __future__ import annotations

from agent_sandbox.config.record import record

MODES = ("hpc", "strict")
LOW_HALF = 0xFFFF_FFFF


@record
class Match:
    """The lower half of one argument, masked, is `among` the values – or is not."""

    position: int
    values: tuple[int, ...]
    mask: int = LOW_HALF
    among: bool = True


def is_among(position: int, *values: int, mask: int = LOW_HALF) -> Match:
    return Match(position=position, values=values, mask=mask)


def is_other_than(position: int, *values: int, mask: int = LOW_HALF) -> Match:
    return Match(position=position, values=values, mask=mask, among=False)


@record
class Rule:
    """These calls fail with `error` where every match holds; without a match, always."""

    calls: tuple[str, ...]
    reason: str
    error: str = "EPERM"
    matches: tuple[Match, ...] = ()
    when: str = ""  # the matches, in words
    modes: tuple[str, ...] = MODES
    lifted_when_nested: bool = False  # containers inside the jail need it (sandbox.nested_userns)


def rules_for(mode: str, *, nested: bool) -> tuple[Rule, ...]:
    return tuple(rule for rule in RULES if mode in rule.modes and not (nested and rule.lifted_when_nested))


AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
SOCK_RAW, SOCK_PACKET, SOCK_TYPE_MASK = 3, 10, 0xF
NETLINK_ROUTE = 0
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
PER_LINUX, ADDR_NO_RANDOMIZE, PER_QUERY = 0, 0x0004_0000, 0xFFFF_FFFF
# CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}; NEWTIME is not for clone(), which has the exit signal in that byte.
CLONE_NAMESPACES = 0x7E02_0000

MOUNTING = (
    *("mount", "umount2", "pivot_root", "mount_setattr", "open_tree", "open_tree_attr", "move_mount"),
    *("fsopen", "fsconfig", "fsmount", "fspick"),
)
SOCKETS = ("socket", "socketpair")  # socketpair() makes the sockets, and loads their module, before it looks for a pair
STRICT = ("strict",)

RULES = (
    Rule(
        calls=("io_uring_setup", "io_uring_enter", "io_uring_register"),
        error="ENOSYS",
        reason="work queued on a ring passes no system-call filter; programs fall back to ordinary calls",
    ),
    Rule(
        calls=MOUNTING,
        lifted_when_nested=True,
        reason="changing mounts could uncover what the jail hides",
    ),
    Rule(
        calls=("keyctl", "add_key", "request_key"),
        reason="kernel keyrings are the user's, not the jail's: keys from outside could be read",
    ),
    Rule(
        calls=("name_to_handle_at", "open_by_handle_at"),
        reason="a file handle opens a file without walking its path, past what the jail hides",
    ),
    Rule(calls=("bpf",), reason="loads programs into the kernel"),
    Rule(calls=("userfaultfd",), reason="stops the kernel in mid-copy, the lever of many kernel exploits"),
    Rule(calls=("fanotify_init",), reason="watches files of other users and processes"),
    Rule(calls=("kcmp",), reason="compares kernel pointers of processes"),
    Rule(
        calls=("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load"),
        reason="replaces kernel code",
    ),
    Rule(
        calls=("reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime"),
        reason="administers the whole machine",
    ),
    Rule(calls=("iopl", "ioperm"), reason="gives access to hardware ports"),
    Rule(calls=("syslog",), reason="the kernel's log shows addresses and other users' doings"),
    Rule(calls=("vhangup",), reason="hangs up the terminal that is shared with the outside"),
    Rule(
        calls=("_sysctl", "sysfs", "uselib", "ustat", "nfsservctl", "lookup_dcookie"),
        reason="obsolete; no present program needs it",
    ),
    Rule(
        calls=("ioctl",),
        matches=(is_among(1, TIOCSTI, TIOCLINUX),),
        when="the request is TIOCSTI or TIOCLINUX",
        reason="types into the terminal as if the person outside had typed it",
    ),
    Rule(
        calls=("personality",),
        matches=(is_other_than(0, PER_LINUX, ADDR_NO_RANDOMIZE, PER_QUERY),),
        when="the persona is other than 0, ADDR_NO_RANDOMIZE (which debuggers set) and the query 0xffffffff",
        reason="old personalities switch memory protections off",
    ),
    Rule(
        calls=SOCKETS,
        error="EAFNOSUPPORT",  # what a kernel without that family says
        matches=(is_other_than(0, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK),),
        when="the family is other than AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK",
        reason="AF_VSOCK, AF_PACKET and the like lead around the network policy or load seldom-tested kernel modules",
    ),
    Rule(
        calls=SOCKETS,
        error="EPROTONOSUPPORT",  # what a kernel without that protocol says; libaudit and libibverbs then go without
        matches=(is_among(0, AF_NETLINK), is_other_than(2, NETLINK_ROUTE)),
        when="the family is AF_NETLINK and the protocol is other than NETLINK_ROUTE",
        reason="only NETLINK_ROUTE, which lists network interfaces, is of use in a jail",
    ),
    Rule(
        calls=SOCKETS,
        matches=(is_among(0, AF_INET, AF_INET6), is_among(1, SOCK_RAW, SOCK_PACKET, mask=SOCK_TYPE_MASK)),
        when="the family is AF_INET or AF_INET6 and the type is SOCK_RAW or SOCK_PACKET",
        reason="raw sockets forge packets and read those of others",
    ),
    Rule(
        calls=("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"),
        modes=STRICT,  # debuggers, MPI's single copy and CUDA's shared segments need them, within the jail
        reason="reaches into other processes of the jail",
    ),
    Rule(calls=("perf_event_open",), modes=STRICT, reason="a large and often broken part of the kernel"),
    Rule(calls=("memfd_secret",), modes=STRICT, reason="memory that not even the administrator can look at"),
    Rule(
        calls=("unshare", "setns"),
        modes=STRICT,
        lifted_when_nested=True,
        reason="new namespaces open parts of the kernel that a user does not reach otherwise",
    ),
    Rule(
        calls=("clone",),
        modes=STRICT,
        lifted_when_nested=True,
        matches=(is_other_than(0, 0, mask=CLONE_NAMESPACES),),
        when="a namespace flag (CLONE_NEW…) is set",
        reason="new namespaces open parts of the kernel that a user does not reach otherwise",
    ),
    Rule(
        calls=("clone3",),
        modes=STRICT,
        lifted_when_nested=True,
        error="ENOSYS",
        reason="its flags lie in memory, where a filter cannot look for namespaces; the C library falls back to clone",
    ),
)
