"""The process that is a cluster: it starts the daemons in a mount namespace of their own, and ends them when no client is left.

    python -m tests.machines.slurm.keeper DIRECTORY      (as root, in a fresh mount namespace)

Clients are test processes, each known by a file named by its pid and start time. A killed client counts as gone, so a crashed run
leaves no daemon; a killed keeper takes its daemons with it, by their parent-death signals.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.machines import users
from tests.machines.slurm import settings
from tests.machines.slurm.settings import Places, Ports

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
libc = ctypes.CDLL(None, use_errno=True)


class Keeper:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.host = socket.gethostname().partition(".")[0]
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}

    def run(self) -> None:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what the daemons leave behind is ours to end
        self.places.keeper.write_text(users.identity(os.getpid()))
        try:
            self.prepare()
            self.start_all()
        except BaseException:
            self.tell()
            self.stop_all()
            raise
        self.places.ready.touch()
        self.keep()

    def keep(self) -> None:
        """Until nobody wants the cluster. Who joins holds the lock: under it nobody can join what is about to end."""
        while True:
            self.obey()
            self.reap()
            time.sleep(0.05)
            if not self.wanted():
                with lock():
                    if not self.wanted():
                        return self.stop_all()

    def prepare(self) -> None:
        """Directories, files, and the places where programs look for them."""
        places = self.places
        for path, owner in (
            (places.etc, "root"), (places.client, "root"), (places.key, "munge"), (places.munge, "munge"),
            (places.database, "slurm"), (places.state, "root"), (places.spool, "root"), (places.log, "root"),
        ):  # fmt: skip
            make_directory(path, owner)
        self.write_files()
        Path("/run/munge").mkdir(exist_ok=True)
        run("/bin/mount", "-t", "tmpfs", "-o", f"mode=700,uid={uid('slurm')},gid={gid('slurm')}", "none", str(places.database))
        for path, place in ((places.etc, "/etc/slurm"), (places.key, "/etc/munge"), (places.munge, "/run/munge")):
            run("/bin/mount", "--bind", str(path), place)

    def write_files(self) -> None:
        places, ports = self.places, choose_ports()
        megabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
        conf = settings.slurm_conf(places, ports, self.host, megabytes * 9 // 10)
        write(places.etc / "slurm.conf", conf)
        write(places.etc / "cgroup.conf", settings.cgroup_conf())
        write(places.client / "slurm.conf", settings.client_conf(places))
        write(places.client / "cgroup.conf", settings.cgroup_conf())
        write(places.etc / "slurmdbd.conf", settings.slurmdbd_conf(places, ports), mode=0o600)
        write(places.key / "munge.key", random.SystemRandom().randbytes(64).hex(), owner="munge", mode=0o400)

    def start_all(self) -> None:
        """Munge and the database side by side; then accounting, filled before the controller reads it; then the controller and its node."""
        database = self.make_database()
        self.start("munged")
        wait_for(self.places.socket.is_socket, "munged")
        if database.wait(30):
            raise RuntimeError("mariadb-install-db failed")
        self.start("mariadbd")
        wait_for((self.places.database / "socket").is_socket, "mariadbd")
        self.start("slurmdbd")
        wait_for(self.asker("sacctmgr", "-n", "list", "cluster"), "slurmdbd")
        self.fill_accounting()
        self.start("slurmctld")
        self.start("slurmd")
        wait_for(lambda: self.ask("sinfo", "-h", "-o", "%t").strip() == "idle", "slurmctld and slurmd")

    def make_database(self) -> subprocess.Popen[bytes]:
        log = (self.places.log / "mariadb-install-db").open("wb")
        words = ["--no-defaults", f"--datadir={self.places.database}/data", "--skip-test-db", "--innodb-log-file-size=4M"]
        return subprocess.Popen(
            ["/usr/bin/mariadb-install-db", *words], user="slurm", group="slurm", extra_groups=[], env=self.environment,
            cwd=self.places.database, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip

    def fill_accounting(self) -> None:
        self.change("add", "cluster", settings.CLUSTER)
        self.change("add", "qos", settings.QOS[1], "Priority=100")
        names, more = ",".join(settings.ACCOUNTS), (f"Qos={','.join(settings.QOS)}", f"DefaultQos={settings.QOS[0]}")
        self.change("add", "account", names, "Description=tests", "Organization=tests", *more)

    def start(self, name: str) -> None:
        owner = {"munged": "munge", "mariadbd": "slurm"}.get(name, "root")  # as root, mariadbd would want to be asked twice
        log = (self.places.log / f"{name}.out").open("ab")
        self.running[name] = subprocess.Popen(
            self.command(name), user=owner, group=owner, extra_groups=[], preexec_fn=die_with_parent, start_new_session=True,
            env={**self.environment, "MYSQL_UNIX_PORT": f"{self.places.database}/socket"},
            cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        log.close()

    def command(self, name: str) -> list[str]:
        places = self.places
        words = {
            "munged": [
                "--foreground", "--num-threads=4", f"--key-file={places.key}/munge.key", f"--socket={places.socket}",
                f"--pid-file={places.munge}/pid", f"--seed-file={places.munge}/seed", f"--log-file={places.munge}/log",
            ],
            "mariadbd": [
                "--no-defaults", f"--datadir={places.database}/data", f"--socket={places.database}/socket", "--skip-networking",
                "--skip-grant-tables", f"--pid-file={places.database}/pid", f"--tmpdir={places.database}",
                "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=4M", "--innodb-lock-wait-timeout=900",
                "--innodb-flush-log-at-trx-commit=0",
            ],
            "slurmdbd": ["-D"],
            "slurmctld": ["-D"],
            "slurmd": ["-D", "-N", self.host],
        }  # fmt: skip
        return [f"/usr/sbin/{name}", *words[name]]

    def obey(self) -> None:
        """Daemons that a test wants down go down, and come up when it wants them again."""
        for name in list(self.running):
            if (self.places.down / name).exists():
                stop(self.running.pop(name))
        for name in ("slurmdbd", "slurmctld", "slurmd"):
            if name not in self.running and not (self.places.down / name).exists():
                self.start(name)

    def wanted(self) -> bool:
        return any(is_running(path.name) for path in self.places.clients.iterdir())

    def stop_all(self) -> None:
        """At once: nothing of it is kept. The children of what ends become ours, so until there are none."""
        deadline = time.monotonic() + 10
        while (alive := [pid for pid in children() if users.state(pid) != "Z"]) and time.monotonic() < deadline:
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        subprocess.run(("/bin/umount", "--lazy", str(self.places.database)), stderr=subprocess.DEVNULL)  # a mount point cannot be removed
        shutil.rmtree(self.places.top, ignore_errors=True)

    def reap(self) -> None:
        """Only the adopted: the status of a daemon is for its own Popen."""
        daemons = {process.pid for process in self.running.values()}
        for pid in children():
            if pid not in daemons and users.state(pid) == "Z":
                os.waitpid(pid, os.WNOHANG)

    def tell(self) -> None:
        """What the daemons said, before their logs go."""
        for path in (*self.places.log.glob("*"), *self.places.munge.glob("log")):
            print(f"== {path.name}", *path.read_text(errors="replace").splitlines()[-8:], sep="\n", file=sys.stderr)

    def ask(self, *words: str) -> str:
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout

    def asker(self, *words: str) -> Callable[[], bool]:
        return lambda: subprocess.run(words, env=self.environment, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0

    def change(self, *words: str) -> None:
        run("/usr/bin/sacctmgr", "--immediate", "--quiet", *words, env=self.environment)


def run(*argv: str, env: dict[str, str] | None = None) -> None:
    subprocess.run(argv, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def is_running(identity: str) -> bool:
    pid = int(identity.split()[0])
    return users.identity(pid) == identity and users.state(pid) != "Z"


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def die_with_parent() -> None:
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def children() -> Iterator[int]:
    """Our own, and those whose parents ended before them."""
    me = str(os.getpid())
    return (pid for pid in users.processes() if users.stat_fields(pid)[1] == me)


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """One at a time of those who make, join or end a cluster of this clone."""
    directory = os.open(Path(__file__).parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def choose_ports() -> Ports:
    """Three that are free now, from below the range in which the kernel gives out its own."""
    with contextlib.ExitStack() as stack:
        controller, node, accounting = [stack.enter_context(bound()).getsockname()[1] for _ in range(3)]
    return Ports(controller=controller, node=node, accounting=accounting)


def bound() -> socket.socket:
    while True:
        candidate = socket.socket()
        try:
            candidate.bind(("127.0.0.1", random.randrange(20000, 30000)))
            return candidate
        except OSError:
            candidate.close()


def wait_for(condition: Callable[[], bool], what: str, patience: float = 20) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {patience} s")
        time.sleep(0.02)


def make_directory(path: Path, owner: str) -> None:
    path.mkdir()
    path.chmod(0o755)
    os.chown(path, uid(owner), gid(owner))


def write(path: Path, text: str, owner: str = "root", mode: int = 0o644) -> None:
    path.write_text(text)
    path.chmod(mode)
    os.chown(path, uid(owner), gid(owner))


def uid(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def gid(name: str) -> int:
    return pwd.getpwnam(name).pw_gid


if __name__ == "__main__":
    Keeper(Places(top=Path(sys.argv[1]))).run()
