"""A machine of its own for tests of admin: a mount and a PID namespace with their own /etc, /home, /var, /run, /app and /usr/local.

The programs are the real ones – shadow-utils, sudo, visudo, the kernel – and the accounts, files and processes are nobody else's: tests
run beside each other, with the same names and numbers, and leave nothing.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from agent_sandbox.launcher.syscalls import lock_accounts, unlock_accounts
from tests.machines.copies import PYTHON

CLONE = Path(__file__).resolve().parents[2]
CLONE_INSIDE = Path("/mnt")  # it may lie below what a machine has its own of
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BOTADM, LAUNCHER = "/usr/local/bin/botadm", "/usr/local/bin/agent-sandbox"
ACCOUNT_FILES = ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")
ETC = (
    *ACCOUNT_FILES, "sudoers", "sudoers.d", "sudo.conf", "pam.d", "pam.conf", "security", "login.defs", "default", "nsswitch.conf", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "alternatives", "profile", "profile.d", "bash.bashrc", "hosts", "hostname", "host.conf", "resolv.conf", "localtime",
    "timezone", "environment", "skel", "shells", "inputrc", "terminfo", "locale.alias", "services", "protocols", "gai.conf", "debian_version",
    "firejail",
)  # fmt: skip
SETUP = """
set -e
mount --bind {clone} {inside}
mount --bind {top}/etc /etc
mount --bind {top}/home /home
mount --bind {local} /usr/local
mount -t tmpfs -o mode=755 machine-var /var
mkdir -m 755 /var/lib /var/log /var/mail /var/cache /var/spool
mkdir -m 1777 /var/tmp
ln -s /run /var/run
mount -t tmpfs -o mode=755 machine-run /run
mkdir -m 1777 /run/lock
mount -t tmpfs -o mode=1777 machine-tmp /tmp
mkdir -p /app
mount -t tmpfs -o mode=755 machine-app /app
echo ready
while :; do sleep 1000 & wait; done
"""


class Machine:
    """One namespace, as long as it is open. `root` is its / as the tests see it."""

    def __init__(self, top: Path, local: Path, holder: int, spaces: Sequence[str] = ("--mount", "--pid")) -> None:
        self._top, self._local, self._holder, self._spaces = top, local, holder, spaces
        self.root = Path(f"/proc/{holder}/root")

    def run(
        self, *argv: str | Path, user: str = "root", env: Mapping[str, str] | None = None, cwd: str = "/",
        input: str | None = None, timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """To the end, as a fresh log-in of that user."""
        return subprocess.run(
            self.words(argv, user=user, env=env, cwd=cwd), input=input, stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True, timeout=timeout, encoding="utf-8", errors="surrogateescape", start_new_session=True,
        )  # fmt: skip

    def start(self, *argv: str | Path, user: str = "root", cwd: str = "/") -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self.words(argv, user=user, cwd=cwd), stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8", start_new_session=True)

    def words(self, argv: Sequence[str | Path], *, user: str = "root", env: Mapping[str, str] | None = None, cwd: str = "/") -> list[str]:
        home = "/root" if user == "root" else f"/home/{user}"
        base = {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash", "PATH": PATH, "LANG": "C.UTF-8", "TERM": "xterm", **(env or {})}
        variables = [f"{name}={value}" for name, value in base.items()]
        enter = ["/usr/bin/nsenter", f"--target={self._holder}", *self._spaces, f"--wdns={cwd}", "/usr/bin/env", "-i", *variables]
        become = [] if user == "root" else ["/usr/bin/setpriv", "--reuid", user, "--regid", user, "--init-groups", "--"]
        return [*enter, *become, *(os.fspath(word) for word in argv)]

    def botadm(self, *argv: str, owner: str = "alice", **more: object) -> subprocess.CompletedProcess[str]:
        """As root, called by `owner` with sudo; the words that sudo sets are set here."""
        caller = {"SUDO_USER": owner, "SUDO_UID": str(self.uid(owner))} if owner else {}
        return self.run(BOTADM, *argv, env=caller, **more)  # type: ignore[arg-type]

    def must(self, *argv: str, **more: object) -> subprocess.CompletedProcess[str]:
        """`botadm`, which has to succeed."""
        done = self.botadm(*argv, **more)  # type: ignore[arg-type]
        assert done.returncode == 0, f"botadm {' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def shell(self, script: str, *, user: str = "root", cwd: str = "/") -> str:
        """What a script prints; it has to succeed."""
        done = self.run("/bin/bash", "-ec", script, user=user, cwd=cwd)
        assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
        return done.stdout

    def uid(self, name: str) -> int:
        lines = (self.root / "etc/passwd").read_text().splitlines()
        return next((int(line.split(":")[2]) for line in lines if line.startswith(f"{name}:")), -1)

    def add_person(self, name: str) -> None:
        self.shell(f"useradd --create-home --key HOME_MODE=0700 --shell /bin/bash --user-group {name}")

    def replace_program(self, path: str, script: str) -> None:
        """A program of ours over one of the system's, in this namespace alone; the real one stays at PATH.real."""
        real = self.root / f"tmp/real-{os.path.basename(path)}"
        shutil.copy2(path, real)
        fake = self.root / f"tmp/fake-{os.path.basename(path)}"
        fake.write_text(script.replace("REAL", f"/tmp/{real.name}"))
        fake.chmod(0o755)
        self.shell(f"mount --bind /tmp/{fake.name} {shlex.quote(path)}")

    def state(self, *paths: str) -> dict[str, object]:
        """Account files byte by byte, and every file at and below the paths: kind, owner, mode, ACLs, content."""
        found: dict[str, object] = {f"/etc/{name}": (self.root / "etc" / name).read_bytes() for name in ACCOUNT_FILES}
        for path in ("/etc/sudoers.d", "/etc/sudoers", *(f"/etc/{name}" for name in ACCOUNT_FILES), *paths):
            found.update(self._tree(path))
        return found

    def _tree(self, path: str) -> dict[str, object]:
        top = f"{self.root}{path}"
        if not os.path.lexists(top):
            return {f"tree {path}": None}
        found = {f"tree {path}": describe(top)}
        for folder, names, others in os.walk(top):
            for name in (*names, *others):
                one = f"{folder}/{name}"
                found[f"tree {one.removeprefix(str(self.root))}"] = describe(one)
        return found


def describe(path: str) -> tuple[object, ...]:
    status = os.lstat(path)
    acls = [] if stat.S_ISLNK(status.st_mode) else [(name, os.getxattr(path, name)) for name in sorted(os.listxattr(path)) if "posix_acl" in name]
    content = Path(path).read_bytes() if stat.S_ISREG(status.st_mode) else os.readlink(path) if stat.S_ISLNK(status.st_mode) else None
    return (oct(status.st_mode), status.st_uid, status.st_gid, acls, content)


@contextlib.contextmanager
def machine(local: Path, *, own_processes: bool = True) -> Iterator[Machine]:
    """A fresh one; `local` is what it has for /usr/local. Without processes of its own for firejail, which takes a PID namespace for a jail."""
    top = Path(tempfile.mkdtemp(prefix="sbxt-site-", dir="/var/tmp"))
    try:
        copy_etc(top / "etc")
        (top / "home").mkdir(mode=0o755)
        choose_numbers(top / "etc/login.defs")
        with hold(top, local, own_processes) as holder:
            yield Machine(top, local, holder, ("--mount", "--pid") if own_processes else ("--mount",))
    finally:
        shutil.rmtree(top, ignore_errors=True)


def choose_numbers(path: Path) -> None:
    """New users get numbers that nobody else has: processes, and what they may use, are counted by number on the whole machine."""
    first = 30_000 + os.getpid() % 300 * 100
    ranges = {"SYS_UID_MIN": first, "SYS_UID_MAX": first + 29, "UID_MIN": first + 30, "UID_MAX": first + 99}
    lines = [line for line in path.read_text().splitlines() if line.split()[:1] not in [[name] for name in (*ranges, *map(group, ranges))]]
    chosen = [f"{one}\t{number}" for name, number in ranges.items() for one in (name, group(name))]
    path.write_text("\n".join([*lines, *chosen]) + "\n")


def group(name: str) -> str:
    return name.replace("UID", "GID")


def copy_etc(target: Path) -> None:
    """What accounts, log-ins, sudo and shells read; under the lock, since other tests make accounts at this moment."""
    target.mkdir(mode=0o755)
    parts = [f"/etc/{name}" for name in ETC if os.path.lexists(f"/etc/{name}")]
    for _ in range(20):
        try:
            lock_accounts()
            break
        except OSError:
            time.sleep(0.1)
    try:
        subprocess.run(["/bin/cp", "-a", *parts, str(target)], check=True)
    finally:
        unlock_accounts()
    (target / "pip.conf").write_text("[global]\nno-index = true\n")  # an installation here asks no network


@contextlib.contextmanager
def hold(top: Path, local: Path, own_processes: bool = True) -> Iterator[int]:
    script = SETUP.format(top=shlex.quote(str(top)), local=shlex.quote(str(local)), clone=shlex.quote(str(CLONE)), inside=CLONE_INSIDE)
    os.makedirs("/app", exist_ok=True)  # where an admin's settings are: a machine has its own
    pids = ["--pid", "--fork", "--kill-child=KILL", "--mount-proc"] if own_processes else []
    space = ["/usr/bin/unshare", "--mount", *pids, "--propagation", "private"]
    process = subprocess.Popen([*space, "/bin/bash", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield first_child(process.pid) if own_processes else process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout and process.stdout.close()


def first_child(pid: int) -> int:
    for _ in range(200):
        words = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if words:
            return int(words[0])
        time.sleep(0.01)
    raise TimeoutError("the namespace has no first process")


def install_into(local: Path) -> None:
    """The real installer, as root, with `local` as /usr/local."""
    for name in ("bin", "lib", "sbin"):
        (local / name).mkdir(mode=0o755)
    with machine(local) as one:
        done = one.run(PYTHON, "-I", CLONE_INSIDE / "bootstrap/install.py", "--system", timeout=180)
        assert done.returncode == 0, done.stderr
