"""A cluster as a test sees it: whom it lets in, what it runs, what became of a job.

Test processes of one clone share one cluster (`shared`): the first that asks starts its keeper, the keeper ends it after the last.
The directory's name tells clones and versions of this code apart. A test that takes daemons down asks for a cluster of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.machines import users
from tests.machines.needs import need, need_root
from tests.machines.slurm.keeper import is_running, lock, wait_for
from tests.machines.slurm.settings import ACCOUNTS, PARTITIONS, QOS, Places

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sbatch", "sacctmgr", "nsenter", "unshare")
FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z_:/]*)=")
ENDED = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurm:
    places: Places
    keeper: int  # its pid

    @property
    def environment(self) -> dict[str, str]:
        """For programs outside the cluster's mount namespace, to which a user's own is added."""
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "SLURM_CONF": str(self.places.client / "slurm.conf")}

    def run(
        self, user: users.TestUser, *words: str | Path, cwd: Path | None = None, input: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        return users.run_as(user, words, env=self.environment, cwd=cwd, input=input)

    def at_default_places(self, user: users.TestUser, cwd: Path, argv: Sequence[str | Path]) -> list[str]:
        """The command line with which root runs `argv` as the user where /etc/slurm, /etc/munge and /run/munge are this cluster's."""
        enter = ["/usr/bin/nsenter", f"--mount=/proc/{self.keeper}/ns/mnt", f"--wdns={cwd}"]
        become = ["/usr/bin/setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--init-groups"]
        return [*enter, "--", *become, "--", *map(str, argv)]

    def allow(self, user: users.TestUser) -> None:
        """Let the user submit, with every account and QOS. Users who are gone leave first: their uid may be this user's now."""
        known = self._accounting("--noheader", "--parsable2", "list", "user", "format=user").split()
        if gone := [name for name in known if name.startswith(users.PREFIX) and not exists(name)]:
            with contextlib.suppress(RuntimeError):  # refused while one of their jobs still runs
                self._accounting("delete", "user", ",".join(gone))
        if user.name not in known:
            self._accounting("add", "user", user.name, f"Account={','.join(ACCOUNTS)}", f"DefaultAccount={ACCOUNTS[0]}", f"Qos={','.join(QOS)}")
        probe = ("/usr/bin/sbatch", "--test-only", f"--account={ACCOUNTS[-1]}", f"--qos={QOS[-1]}", "--wrap=true")
        wait_for(lambda: self.run(user, *probe).returncode == 0, f"association of {user.name}")

    def submit(self, user: users.TestUser, *words: str | Path, cwd: Path | None = None, input: str | None = None) -> int:
        """The id of a job that sbatch took."""
        done = self.run(user, "/usr/bin/sbatch", "--parsable", *words, cwd=cwd, input=input)
        assert done.returncode == 0, done.stderr
        return int(done.stdout.partition(";")[0])

    def job(self, job: int) -> dict[str, str]:
        """What `scontrol show job` says, by its own words."""
        text = self._ask("/usr/bin/scontrol", "show", "job", str(job))
        parts = FIELD.split(text)
        return dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))

    def wait(self, job: int, patience: float = 30) -> dict[str, str]:
        """The job after it ended."""
        wait_for(lambda: self.job(job)["JobState"] in ENDED, f"end of job {job}", patience)
        return self.job(job)

    def records(self, job: int, *fields: str, patience: float = 10) -> list[list[str]]:
        """The rows of sacct for the job and its steps, once accounting has its end."""
        deadline = time.monotonic() + patience
        while True:
            rows = self._ask("/usr/bin/sacct", "-n", "-P", "-j", str(job), f"--format=End,{','.join(fields)}").splitlines()
            if (rows and all(not row.startswith("Unknown") for row in rows)) or time.monotonic() > deadline:
                return [row.split("|")[1:] for row in rows]
            time.sleep(0.05)

    def state(self) -> str:
        """Of the one node: idle, mixed, allocated, down …; empty where the controller does not answer."""
        return self._ask("/usr/bin/sinfo", "-h", "-o", "%T", "-p", PARTITIONS[0]).strip() if self.controller_answers() else ""

    def controller_answers(self) -> bool:
        done = users.run_as(users.current_user(), ("/usr/bin/scontrol", "ping"), env=self.environment)
        return " is UP" in done.stdout

    def stop_controller(self) -> None:
        (self.places.down / "slurmctld").touch()
        wait_for(lambda: not self.controller_answers(), "end of slurmctld")

    def start_controller(self) -> None:
        (self.places.down / "slurmctld").unlink()
        wait_for(lambda: self.state() in ("idle", "mixed", "allocated"), "slurmctld")

    def _accounting(self, *words: str) -> str:
        return self._ask("/usr/bin/sacctmgr", "--immediate", "--quiet", *words)

    def _ask(self, *words: str) -> str:
        done = users.run_as(users.current_user(), words, env=self.environment)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout


def exists(name: str) -> bool:
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwnam(name))
    return False


@contextlib.contextmanager
def cluster(name: str = "shared") -> Iterator[Slurm]:
    """A running cluster for as long as the block lasts."""
    need_root()
    for program in PROGRAMS:
        need(program)
    places = Places(top=directory(name))
    client = places.clients / users.identity(os.getpid())
    with lock():
        pid = running_keeper(places) or start_keeper(places, client)
        client.touch()
    try:
        yield Slurm(places=places, keeper=pid)
    finally:
        client.unlink(missing_ok=True)
        wait_for_end(places)


def directory(name: str) -> Path:
    """Below /run, where only root makes names. Short: the path of a socket has 108 bytes."""
    code = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    mark = hashlib.sha256(b"".join((os.fsencode(ROOT), *code))).hexdigest()[:10]
    return Path(f"/run/agent-sandbox-slurm-{mark}-{name}")


def running_keeper(places: Places) -> int | None:
    """None also where a killed keeper left its directory: its daemons died with it. One whose client was killed may still be starting."""
    with contextlib.suppress(FileNotFoundError):
        identity = places.keeper.read_text()
        wait_for(lambda: places.ready.exists() or not is_running(identity), "the cluster", 60)
        if is_running(identity):
            return int(identity.split()[0])
    return None


def start_keeper(places: Places, client: Path) -> int:
    shutil.rmtree(places.top, ignore_errors=True)
    places.top.mkdir(mode=0o755)
    places.clients.mkdir()
    places.down.mkdir()
    client.touch()
    apart = ("/usr/bin/unshare", "--mount", "--propagation", "slave")
    with tempfile.TemporaryFile("w+") as said:
        keeper = subprocess.Popen(
            (*apart, sys.executable, "-m", "tests.machines.slurm.keeper", str(places.top)), cwd=ROOT, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip
        wait_for(lambda: places.ready.exists() or keeper.poll() is not None, "the cluster", 60)
        if keeper.returncode is not None:
            raise RuntimeError(f"no Slurm: {contents(said)}")
    return keeper.pid


def contents(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def wait_for_end(places: Places) -> None:
    """Where we were the last: what a test run started ends with it."""
    with contextlib.suppress(FileNotFoundError):
        if any(places.clients.iterdir()):
            return
        wait_for(lambda: not places.top.exists(), "end of the cluster")
