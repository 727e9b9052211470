"""What the jail without namespaces is becomes the rules and the filter that close what Landlock leaves open. Pure but for the list of numbers.

Landlock judges opening, making, moving and removing files, TCP ports, signals, abstract sockets and whatever asks for the right to
trace. This table is for the calls it does not see: refused here, or – where only the file behind a path or a descriptor can tell –
put to the supervisor (ASK). It is stacked on the ready filter, and holds without one: the kernel takes the strictest answer.

Left alone, since Landlock or the kernel judges them as it does any act on another process or file:
* process_vm_readv and writev, pidfd_getfd, ptrace, kcmp, move_pages, migrate_pages, process_madvise, get_robust_list, perf_event_open of
  a pid, PR_SCHED_CORE, /proc/PID/mem, fd, environ, root: all need the right to trace, which ends at the Landlock domain;
* kill, tgkill, rt_sigqueueinfo, pidfd_send_signal, fcntl F_SETOWN, ioctl FIOSETOWN and SIOCSPGRP: Landlock's signal scope (ABI 6);
* bind and mknod (MAKE_SOCK …), link and rename (REFER), execveat of an O_PATH descriptor, O_TRUNC (ABI 3), ioctl on devices (ABI 5);
* mount, pivot_root, chroot, swapon, acct, quotactl that changes, settimeofday: need capabilities, and the jail has none;
* ftruncate, fallocate, copy_file_range, FICLONE, EXT4_IOC_MOVE_EXT, XFS_IOC_EXCHANGE_RANGE, io_submit: need a descriptor open for writing;
* flock, fcntl leases and locks, dnotify: need a file or directory that could be opened, as in every other jail;
* process_mrelease: only of a process that is already dying.

Left open, and so gaps to be named: stat, access, readlink, getxattr, statfs and chdir show that a path exists, its owner, times and
attributes; getpriority, sched_get…, ioprio_get, getpgid, pidfd_open show that a process exists; sched_setaffinity moves any process of the
user's to other processors (the C library pins new threads by their number, which no filter can tell from that of a stranger).
"""

from __future__ import annotations

from agent_sandbox.launcher.seccomp.assemble import ASK, PRETEND, assemble
from agent_sandbox.launcher.seccomp.numbers import read_numbers
from agent_sandbox.launcher.seccomp.rules import (
    AF_INET,
    AF_INET6,
    AF_UNIX,
    CLONE_NAMESPACES,
    RULES,
    SOCK_TYPE_MASK,
    SOCKETS,
    Rule,
    is_among,
    is_other_than,
)

SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET = 1, 2, 5
IPPROTO_TCP = 6
TCP_FASTOPENS = (23, 30, 33, 34)  # TCP_FASTOPEN, …_CONNECT, …_KEY, …_NO_COOKIE
MSG_FASTOPEN = 0x2000_0000
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1
CLONE_NEWTIME = 0x80  # where the exit signal is for clone()
O_TRUNC, O_ACCMODE = 0x200, 0x3
O_NEITHER = 0x3  # the fourth access mode: neither reads nor writes, and Landlock asks no right for it

# A request of ioctl is a direction, a size, a letter and a number: 2, 14, 8 and 8 bits.
LETTER = 0xFF00
EXT4_LETTER, BTRFS_LETTER, F2FS_LETTER, BCACHEFS_LETTER, SOCKET_LETTER = 0x6600, 0x9400, 0xF500, 0xBC00, 0x8900
READ_ONLY_REQUESTS = (  # of the letter that ext4, fscrypt, fs-verity, Lustre and BeeGFS share
    0x8008_6601, 0x8004_6601, 0x8008_6603,  # FS_IOC_GETFLAGS, FS_IOC32_GETFLAGS, EXT4_IOC_GETVERSION
    0xC020_660B,  # FS_IOC_FIEMAP, for sparse files
    0x4008_669B, 0x8008_66AD, 0x8008_66A8, 0xC008_66A4,  # LL_IOC_LOV_GETSTRIPE, LL_IOC_PATH2FID, LL_IOC_GETOBDCOUNT, IOC_OBD_STATFS
)  # fmt: skip
CLONING_REQUESTS = (0x4004_9409, 0x4020_940D)  # FICLONE, FICLONERANGE; not FIDEDUPERANGE, which compares with a file that it cannot read
CHANGING_REQUESTS = (
    0x401C_5820, 0x4008_7602, 0x4004_7602,  # FS_IOC_FSSETXATTR, FS_IOC_SETVERSION, FS_IOC32_SETVERSION
    0x4004_7211, 0x4018_6F04, 0x4028_9702, 0x4028_9705,  # FAT_IOCTL_SET_ATTRIBUTES, OCFS2_IOC_REFLINK, CEPH_IOC_SET_LAYOUT, …_POLICY
    0x4008_4301,  # AFS: VIOC_SYSCALL, which sets access lists by path
)  # fmt: skip
OWNER_REQUESTS = (0x8901, 0x8902, 0x8903, 0x8904, 0x8905, 0x8906, 0x8907, 0x89E0)  # FIOSETOWN … SIOCGSTAMPNS, SIOCUNIXFILE
TIOCGPTPEER = 0x5441
PR_SET_DUMPABLE = 4

OF_THE_READY_FILTER = tuple(
    rule
    for rule in RULES
    if {"io_uring_setup", "keyctl", "name_to_handle_at", "fanotify_init", "ioctl"}.intersection(rule.calls)
)

ALWAYS = (
    *OF_THE_READY_FILTER,
    Rule(
        calls=("setxattrat", "removexattrat", "file_setattr"),
        error="ENOSYS",
        reason="change attributes of files that Landlock does not guard; programs fall back to the older calls, which are asked about",
    ),
    Rule(
        calls=("ioctl",),
        matches=(is_among(1, *CHANGING_REQUESTS),),
        when="the request changes attributes of a file, or makes one",
        reason="needs only a descriptor that was opened to read",
    ),
    Rule(
        calls=("ioctl",),
        matches=(is_among(1, EXT4_LETTER, mask=LETTER), is_other_than(1, *READ_ONLY_REQUESTS)),
        when="the request is one of ext4, fscrypt, fs-verity, Lustre or BeeGFS that does more than look",
        reason="flags, layouts, seals and even removal by file number need only a descriptor that was opened to read",
    ),
    Rule(
        calls=("ioctl",),
        matches=(is_among(1, BTRFS_LETTER, mask=LETTER), is_other_than(1, *CLONING_REQUESTS)),
        when="the request is one of btrfs, cloning of files excepted",
        reason="makes and removes subvolumes below any directory that can be opened",
    ),
    Rule(
        calls=("ioctl",),
        matches=(is_among(1, F2FS_LETTER, BCACHEFS_LETTER, mask=LETTER),),
        when="the request is one of f2fs or bcachefs",
        reason="changes files through a descriptor that was opened to read",
    ),
    Rule(
        calls=("prlimit64",),
        matches=(is_other_than(0, 0),),
        when="the process is named by its number; 0 is the caller",
        reason="limits of the user's other processes could be changed",
    ),
    Rule(
        calls=("sched_setscheduler", "sched_setparam", "sched_setattr"),
        matches=(is_other_than(0, 0),),
        when="the process is named by its number; 0 is the caller",
        reason="the user's other processes could be put last",
    ),
    Rule(
        calls=("setpriority",),
        matches=(is_other_than(0, PRIO_PROCESS),),
        when="it is about a process group or a user",
        reason="the user's other processes could be put last",
    ),
    Rule(
        calls=("setpriority",),
        matches=(is_other_than(1, 0),),
        when="the process is named by its number; 0 is the caller",
        reason="the user's other processes could be put last",
    ),
    Rule(
        calls=("ioprio_set",),
        matches=(is_other_than(0, IOPRIO_WHO_PROCESS),),
        when="it is about a process group or a user",
        reason="the user's other processes could be put last",
    ),
    Rule(
        calls=("ioprio_set",),
        matches=(is_other_than(1, 0),),
        when="the process is named by its number; 0 is the caller",
        reason="the user's other processes could be put last",
    ),
)

UNIX_KINDS = (
    Rule(
        calls=("socket",),
        error="EACCES",
        matches=(is_among(0, AF_UNIX), is_other_than(1, SOCK_STREAM, SOCK_SEQPACKET, mask=SOCK_TYPE_MASK)),
        when="the family is AF_UNIX and the type is other than SOCK_STREAM and SOCK_SEQPACKET",
        reason="a datagram goes to any socket's path without connect()",
    ),
    Rule(
        calls=("socketpair",),
        error="EACCES",
        matches=(is_among(0, AF_UNIX), is_other_than(1, SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, mask=SOCK_TYPE_MASK)),
        when="the family is AF_UNIX and the type is other than SOCK_STREAM, SOCK_DGRAM and SOCK_SEQPACKET",
        reason="a datagram goes to any socket's path without connect()",
    ),
)

DATAGRAM_PAIR = (is_among(0, AF_UNIX), is_among(1, SOCK_DGRAM, mask=SOCK_TYPE_MASK))
DATAGRAM_WHEN = "the family is AF_UNIX and the type is SOCK_DGRAM"
MODE_CALLS = ("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat")
TIME_CALLS = ("utime", "utimes", "futimesat", "utimensat")
ATTRIBUTE_CALLS = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")

SUPERVISED = (
    Rule(calls=("connect",), error=ASK, reason="where it leads lies in memory, and Landlock lets it reach every socket's path"),
    Rule(
        calls=("socketpair",),
        error=ASK,
        matches=DATAGRAM_PAIR,
        when=DATAGRAM_WHEN,
        reason="the supervisor gives a pair of SOCK_SEQPACKET, which has the same borders of messages and reaches nobody else",
    ),
    Rule(
        calls=(*MODE_CALLS, *TIME_CALLS, *ATTRIBUTE_CALLS),
        error=ASK,
        reason="Landlock does not guard modes, owners, times and attributes of files",
    ),
    Rule(calls=("inotify_add_watch",), error=ASK, reason="Landlock lets every path be watched"),
    Rule(
        calls=("prctl",),
        error=PRETEND,
        matches=(is_among(0, PR_SET_DUMPABLE), is_among(1, 0)),
        when="the option is PR_SET_DUMPABLE and the value 0",
        reason="the supervisor could serve such a process no more; outside the jail its memory is the user's own, inside it is the jail's",
    ),
    Rule(
        calls=("ioctl",),
        error=ASK,
        matches=(is_among(1, TIOCGPTPEER),),
        when="the request is TIOCGPTPEER",
        reason="the jail cannot open the directory of terminals, where the user's others are; the supervisor hands over this one",
    ),
)

NOBODY_TO_ASK = (  # TIOCGPTPEER is not here: without a supervisor it is Landlock that refuses
    Rule(
        calls=("socket",),
        error="EACCES",
        matches=(is_among(0, AF_UNIX),),
        when="the family is AF_UNIX",
        reason="it could be connected to every socket's path",
    ),
    Rule(
        calls=("socketpair",),
        error="EACCES",
        matches=DATAGRAM_PAIR,
        when=DATAGRAM_WHEN,
        reason="a datagram goes to any socket's path without connect()",
    ),
    Rule(calls=(*MODE_CALLS, *TIME_CALLS), reason="Landlock does not guard modes, owners and times of files"),
    Rule(
        calls=ATTRIBUTE_CALLS,
        error="EOPNOTSUPP",  # what a filesystem without attributes says: copying programs go on
        reason="Landlock does not guard attributes of files",
    ),
    Rule(calls=("inotify_add_watch",), error="EACCES", reason="Landlock lets every path be watched"),
)
# A pair that is connected stays so: with no other unix socket to be had, connect() is left to those of the internet.
NOBODY_TO_ASK_CLOSED = (Rule(calls=("connect",), error="EACCES", reason="where it leads lies in memory, and nobody is there to look"),)

OPEN = tuple(rule for rule in RULES if rule.calls == SOCKETS)

ISOLATED = (
    Rule(
        calls=SOCKETS,
        error="EAFNOSUPPORT",  # what a kernel without that family says
        matches=(is_other_than(0, AF_UNIX),),
        when="the family is other than AF_UNIX",
        reason="the network is the host's: without a namespace of its own a jail is isolated by having no socket for it",
    ),
    Rule(
        calls=("ioctl",),
        matches=(is_among(1, SOCKET_LETTER, mask=LETTER), is_other_than(1, *OWNER_REQUESTS)),
        when="the request is one about interfaces, routes and addresses",
        reason="any socket, of AF_UNIX too, tells the host's addresses by it",
    ),
)

INTERNET = is_among(0, AF_INET, AF_INET6)
PROXIED = (
    Rule(
        calls=SOCKETS,
        error="EAFNOSUPPORT",
        matches=(is_other_than(0, AF_UNIX, AF_INET, AF_INET6),),
        when="the family is other than AF_UNIX, AF_INET and AF_INET6",
        reason="leads around the proxy",
    ),
    Rule(
        calls=SOCKETS,
        error="EACCES",
        matches=(INTERNET, is_other_than(1, SOCK_STREAM, mask=SOCK_TYPE_MASK)),
        when="the family is AF_INET or AF_INET6 and the type is other than SOCK_STREAM",
        reason="datagrams lead around the proxy",
    ),
    Rule(
        calls=SOCKETS,
        error="EPROTONOSUPPORT",
        matches=(INTERNET, is_other_than(2, 0, IPPROTO_TCP)),
        when="the family is AF_INET or AF_INET6 and the protocol is other than TCP",
        reason="Landlock's rules are for TCP alone: MPTCP and SCTP pass them",
    ),
    Rule(
        calls=("sendto", "sendmmsg"),
        error="EOPNOTSUPP",  # what a kernel with fast open switched off says; programs fall back to connect()
        matches=(is_among(3, MSG_FASTOPEN, mask=MSG_FASTOPEN),),
        when="the flag MSG_FASTOPEN is set",
        reason="connects without connect()",
    ),
    Rule(
        calls=("sendmsg",),
        error="EOPNOTSUPP",
        matches=(is_among(2, MSG_FASTOPEN, mask=MSG_FASTOPEN),),
        when="the flag MSG_FASTOPEN is set",
        reason="connects without connect()",
    ),
    Rule(
        calls=("setsockopt",),
        error="ENOPROTOOPT",
        matches=(is_among(1, IPPROTO_TCP), is_among(2, *TCP_FASTOPENS)),
        when="the option is one of TCP fast open",
        reason="connects later than connect()",
    ),
)
LISTENING = "without bind() it takes any port, and Landlock does not look: others could then connect to the jail"
PROXIED_SUPERVISED = (Rule(calls=("listen",), error=ASK, reason=LISTENING),)
PROXIED_ALONE = (Rule(calls=("listen",), error="EACCES", reason=LISTENING),)

NAMESPACES = (
    Rule(calls=("setns",), reason="a user namespace gives back capabilities"),
    Rule(
        calls=("unshare",),
        matches=(is_other_than(0, 0, mask=CLONE_NAMESPACES | CLONE_NEWTIME),),
        when="a namespace flag (CLONE_NEW…) is set",
        reason="a user namespace gives back capabilities",
    ),
    Rule(
        calls=("clone",),
        matches=(is_other_than(0, 0, mask=CLONE_NAMESPACES),),
        when="a namespace flag (CLONE_NEW…) is set",
        reason="a user namespace gives back capabilities",
    ),
    Rule(
        calls=("clone3",),
        error="ENOSYS",
        reason="its flags lie in memory, where a filter cannot look for namespaces; the C library falls back to clone",
    ),
)

PRIVATE_IPC = (
    Rule(
        calls=("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl"),
        error="ENOSYS",  # what a kernel without it says
        reason="memory, semaphores and messages of the user's other processes",
    ),
    Rule(calls=("mq_open", "mq_unlink"), error="ENOSYS", reason="message queues of the user's other processes"),
)

TRUNCATING_FLAGS = {"mask": O_TRUNC | O_ACCMODE}
TRUNCATING_WHEN = "O_TRUNC is set, and neither O_WRONLY nor O_RDWR"
TRUNCATING = (
    Rule(calls=("truncate",), reason="this kernel's Landlock does not guard the length of files"),
    Rule(
        calls=("open",),
        matches=(is_among(1, O_TRUNC, O_TRUNC | O_NEITHER, **TRUNCATING_FLAGS),),
        when=TRUNCATING_WHEN,
        reason="empties a file that may only be read",
    ),
    Rule(
        calls=("openat",),
        matches=(is_among(2, O_TRUNC, O_TRUNC | O_NEITHER, **TRUNCATING_FLAGS),),
        when=TRUNCATING_WHEN,
        reason="empties a file that may only be read",
    ),
    Rule(calls=("openat2",), error="ENOSYS", reason="its flags lie in memory, where a filter cannot look for O_TRUNC"),
)

NETWORKS = {"isolated": ISOLATED, "proxied": PROXIED, "open": OPEN}


def mediated_rules(
    *, network: str, supervised: bool, nested: bool, private_ipc: bool, covers_truncate: bool
) -> tuple[Rule, ...]:
    """Of several rules for a call the first that holds decides: refusals come before what is asked."""
    return (
        *ALWAYS,
        *UNIX_KINDS,
        *NETWORKS[network],
        *_listening(network, supervised),
        *(() if nested else NAMESPACES),
        *(PRIVATE_IPC if private_ipc else ()),
        *(() if covers_truncate else TRUNCATING),
        *(SUPERVISED if supervised else NOBODY_TO_ASK),
        *(() if supervised or network == "open" else NOBODY_TO_ASK_CLOSED),
    )


def _listening(network: str, supervised: bool) -> tuple[Rule, ...]:
    if network != "proxied":
        return ()
    return PROXIED_SUPERVISED if supervised else PROXIED_ALONE


def mediated_filter(
    machine: str, *, network: str, supervised: bool, nested: bool, private_ipc: bool, covers_truncate: bool
) -> bytes:
    """The program for seccomp(): an array of struct sock_filter. Supervised, it must be loaded with a listener."""
    rules = mediated_rules(
        network=network, supervised=supervised, nested=nested, private_ipc=private_ipc, covers_truncate=covers_truncate
    )
    return assemble(rules, machine, read_numbers(machine))
