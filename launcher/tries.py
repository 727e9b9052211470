"""A backend becomes a Tried: it was run here, or was run before and nothing that it depends on has changed since.

Only a success is remembered. One that is out of date makes a launch fail, in words; a failure that is out of date would let a
launch choose a weaker backend than it could have, so a failed backend is run again each time. The same holds for a record
that somebody forged: at worst a launch fails, or takes a backend whose gaps are then named and checked.
"""

from __future__ import annotations

import os
import stat

from agent_sandbox.launcher.policy import Tried

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.plan import Plan
    from agent_sandbox.launcher.policy import Host
    from agent_sandbox.launcher.seeing.child import Ended
    from agent_sandbox.launcher.seeing.reasons import Reason

SECONDS = 5
MOST = 8192  # bytes of a record
RECORDS = "tried"
FAILED = 125

# The kinds of namespaces that a jail has of its own, by the name of the sysctl that counts them.
KINDS = ("user", "mnt", "pid", "net", "ipc", "uts")
SYSCTLS = (
    "kernel/unprivileged_userns_clone", "kernel/apparmor_restrict_unprivileged_userns",
    *(f"user/max_{kind}_namespaces" for kind in KINDS),
)  # fmt: skip
STATUS = (b"CapEff", b"CapBnd", b"NoNewPrivs", b"Seccomp", b"Seccomp_filters")
FIREJAIL_FILES = ("/etc/firejail/firejail.config", "/etc/firejail/firejail.users")

# Every option that a launch uses and every kind of mount: a bwrap that does not know one of them fails here.
BWRAP_OPTIONS = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net", "--die-with-parent",
    "--cap-drop", "ALL", "--json-status-fd", "{status}", "--add-seccomp-fd", "{filter}",
    "--ro-bind", "/usr", "/usr", "--ro-bind-try", "/bin", "/bin", "--ro-bind-try", "/lib", "/lib", "--ro-bind-try", "/lib64", "/lib64",
    "--perms", "1777", "--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev", "--symlink", "tmp", "/link", "--perms", "0600",
    "--file", "{file}", "/tmp/file", "--ro-bind-data", "{data}", "/tmp/data", "--remount-ro", "/tmp", "--remount-ro", "/",
    "--chdir", "/tmp", "--setenv", "NAME", "value",
)  # fmt: skip
ALLOW_ALL = b"\x06\0\0\0\0\0\xff\x7f"  # a seccomp program of one instruction
ENDED_WELL = '"exit-code": 0'

# No `--` at the end: with that the user's shell starts the command, and a bot has none.
FIREJAIL_OPTIONS = ("--noprofile", "--quiet", "--nonewprivs", "--caps.drop=all", "--restrict-namespaces", "--net=none")
OWN_PIDS = "/proc/self/ns/pid"
READLINKS = ("/usr/bin/readlink", "/bin/readlink")


def try_backend(name: str, host: Host, state: str, *, remember: bool = True) -> Tried:
    """For a launch: what is remembered counts, where everything is as it was."""
    if _is_remembered(name, host, state):
        return Tried(backend=name, problem="")
    return tried(name, find_out(name, host, state, remember=remember))


def find_out(name: str, host: Host, state: str, *, remember: bool = True) -> tuple[Reason, ...]:
    """Run it, whatever is remembered; none = it ran."""
    reasons = _find_reasons(name, host)
    if remember and name != "landlock":  # that one only has to be asked for, which costs less than remembering
        (_forget if reasons else _remember)(name, host, state)
    return reasons


def tried(name: str, reasons: tuple[Reason, ...]) -> Tried:
    """In one line each; `doctor` has more to say."""
    return Tried(backend=name, problem="; ".join(one.what for one in reasons), fix="; ".join(one.advice for one in reasons))


def _find_reasons(name: str, host: Host) -> tuple[Reason, ...]:
    if name == "landlock" and host.landlock:
        return ()
    from agent_sandbox.launcher.seeing.reasons import why_no_bwrap, why_no_firejail, why_no_landlock

    if name == "landlock":
        return why_no_landlock()
    from agent_sandbox.launcher.seeing.facts import read_bwrap, read_firejail

    if name == "firejail":
        return why_no_firejail(read_firejail(host, run_firejail(host)))
    return why_no_bwrap(read_bwrap(host, run_bwrap(host)))


def run_bwrap(host: Host) -> str:
    """The smallest jail of ours, built as every launch builds one; what went wrong, or ""."""
    from agent_sandbox.launcher.seeing.child import in_child, watched

    if not host.bwrap:
        return "not installed"
    plan = _smallest_plan(host)
    ended = in_child(lambda: watched(lambda: _become(plan), SECONDS))
    return "" if ended.code == 0 and ENDED_WELL in ended.out else _said(ended)


def _smallest_plan(host: Host) -> Plan:
    from agent_sandbox.launcher.backends.bwrap import FIRST_DATA_FD, OPTIONS_FD, OWN_USER_NAMESPACES, STATUS_FD
    from agent_sandbox.launcher.plan import Data, Plan, Stage
    from agent_sandbox.launcher.policy import Limits

    contents = {"filter": ALLOW_ALL, "file": b"", "data": b""}
    data = tuple(Data(fd=FIRST_DATA_FD + at, content=content, label=label) for at, (label, content) in enumerate(contents.items()))
    numbers = {"{status}": STATUS_FD, **{f"{{{one.label}}}": one.fd for one in data}}
    return Plan(
        backend="bwrap", command=("/bin/true",), program=host.bwrap, words=("--args", str(OPTIONS_FD), "--"),
        options=tuple(str(numbers.get(word, word)) for word in BWRAP_OPTIONS), options_fd=OPTIONS_FD, status_fd=STATUS_FD, data=data,
        stage=Stage(limits=Limits(), ignored_signals=(), most_user_namespaces=OWN_USER_NAMESPACES),
    )  # fmt: skip


def _become(plan: Plan) -> int:
    """In a child. What bwrap reports comes out as the child's output."""
    from agent_sandbox.launcher import stage

    try:
        stage.become(plan, 1, {"PATH": "/usr/bin:/bin"}, ready=lambda: None)
    except stage.StageError as error:
        os.write(2, str(error).encode())
    return FAILED


def run_firejail(host: Host) -> str:
    """With the options that no jail of ours does without; what went wrong, or ""."""
    from agent_sandbox.launcher.seeing.child import in_child, watched

    if not host.firejail:
        return "not installed"
    if _is_foreign(host.home, host.uid):
        return f"it makes no throw-away home over {host.home}, which belongs to another user"
    readlink = next((path for path in READLINKS if os.access(path, os.X_OK)), READLINKS[0])
    argv = (host.firejail, *FIREJAIL_OPTIONS, readlink, OWN_PIDS)
    ended = in_child(lambda: watched(lambda: execute(argv), SECONDS))
    inside = ended.out.strip()
    if ended.code or not inside.startswith("pid:["):
        return _said(ended)
    # In what it takes for a container it runs the command with no jail around it, and says so in a line that nobody reads.
    return "" if inside != os.readlink(OWN_PIDS) else "it ran the command without a jail"


def _is_foreign(home: str, uid: int) -> bool:
    """A bot's is its owner's."""
    try:
        return os.stat(home).st_uid != uid
    except OSError:
        return False


def execute(argv: tuple[str, ...]) -> int:
    os.chdir("/")
    os.execve(argv[0], argv, {"PATH": "/usr/bin:/bin"})


def _said(ended: Ended) -> str:
    last = (ended.err.strip() or ended.out.strip()).splitlines()[-1:] or [f"it ended with status {ended.code}"]
    return last[0].strip()[:300]


def _is_remembered(name: str, host: Host, state: str) -> bool:
    """There is nothing to understand in a record: it says what would be written now, or it does not count."""
    try:
        handle = os.open(_record(name, host, state), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return False
    try:
        found = os.fstat(handle)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == host.uid and not found.st_mode & 0o022
        return ours and os.read(handle, MOST) == depends_on(name, host)
    except OSError:
        return False
    finally:
        os.close(handle)


def _remember(name: str, host: Host, state: str) -> None:
    """Written in place, so that nobody who is killed leaves half a file of another name: half a record is not believed.

    Where home cannot be written, or another launch is just writing the same, it costs the time of another run and nothing else.
    """
    path = _record(name, host, state)
    _remove(path)
    mask = os.umask(0o077)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except (OSError, ValueError):
        return
    finally:
        os.umask(mask)
    try:
        os.write(handle, depends_on(name, host))
    except OSError:
        pass
    finally:
        os.close(handle)


def _forget(name: str, host: Host, state: str) -> None:
    _remove(_record(name, host, state))


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except (OSError, ValueError):
        pass


def _record(name: str, host: Host, state: str) -> str:
    """One for each machine: homes are shared."""
    return f"{state}/{RECORDS}/{host.name.replace('/', '_')}/{name}"


def depends_on(name: str, host: Host) -> bytes:
    """All that could turn a success into a failure: the boot, the program, our own code, the container, the switches, this process."""
    program = host.firejail if name == "firejail" else host.bwrap
    files = FIREJAIL_FILES if name == "firejail" else ()
    top = os.stat("/")
    lines = [
        f"{name} {program!r} {host.package!r} {host.uid} {host.gid} {top.st_dev} {top.st_ino} {os.readlink('/proc/self/ns/user')}",
        *(_identity(path) for path in (program, __file__, *files)),
    ]
    sysctls = [read(f"/proc/sys/{path}") for path in ("kernel/random/boot_id", *SYSCTLS)]
    status = [line for line in read("/proc/self/status").split(b"\n") if line.partition(b":")[0] in STATUS]
    return b"\n".join([*(line.encode("utf-8", "backslashreplace") for line in lines), *sysctls, read("/proc/self/attr/current"), *status])


def _identity(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_mode}"


def read(path: str) -> bytes:
    """A small file of the kernel's; nothing where there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(handle, MOST).strip()
    except OSError:
        return b""
    finally:
        os.close(handle)
