"""A chaperon with the product's own handlers and ledger, as a user, over a real Slurm; and stubs that end where a test wants it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.machines import users
from tests.machines.copies import PYTHON
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for

NAMES = ("sbatch", "squeue", "sinfo", "scancel", "scontrol")
# As a guard starts it. What was left behind is looked for sooner than in the product.
PROGRAM = """
import os, sys
library, top, conf, programs, session = sys.argv[1:6]
sys.path.insert(0, library)
from agent_sandbox.chaperon import gate, main
from agent_sandbox.chaperon.limits import Limits
from agent_sandbox.chaperon.orders import Caps, Orders, pack
from agent_sandbox.chaperon.stubfile import stub_code, stub_file
from agent_sandbox.launcher.audit import Log

gate.OLD = 3.0
main.Limits = lambda: Limits(sweep=0.5, tick=0.2)
orders = Orders(
    session=session, fifos=f"{top}/fifos-{session}", state=f"{top}/state", project=top, project_id="", user=os.environ["USER"], uid=os.getuid(),
    home=os.environ["HOME"], entry="", python=sys.executable, library=library, programs=programs, slurm_conf=conf, settings={}, caps=Caps(),
    scope="project", mail=False, log=Log(directory=f"{top}/audit", host="h", enabled=True, keep_days=None, max_size=None))
os.makedirs(orders.fifos, 0o700)
os.makedirs(f"{top}/bin-{session}")
for name, content in (("stub", stub_file(sys.executable, f"{top}/bin-{session}/code", orders.fifos)), ("code", stub_code())):
    with open(f"{top}/bin-{session}/{name}", "wb") as file:
        file.write(content)
os.chmod(f"{top}/bin-{session}/stub", 0o755)
for name in sys.argv[6].split():
    os.symlink("stub", f"{top}/bin-{session}/{name}")
ask = gate.prepare(orders.fifos)
guard = os.getpid()
child = os.fork()
if child == 0:
    main.run(pack(orders), ask, guard)
os.close(ask)
print(child, flush=True)
os.waitpid(child, 0)
"""
# The stub itself, which is killed instead of making its Nth call of the system's.
KILLED_AT = """
import posix, select, sys
left, path = int(sys.argv[1]), sys.argv[2]
sys.argv = sys.argv[2:]

def counted(call):
    def instead(*words, **more):
        global left
        left -= 1
        if left == 0:
            posix.kill(posix.getpid(), 9)
        return call(*words, **more)
    return instead

class Counted:
    def __init__(self, module, names):
        self.module, self.names = module, names
    def __getattr__(self, name):
        found = getattr(self.module, name)
        return counted(found) if name in self.names else found

class Poll:
    def poll(*words):
        made = select.poll()
        return Counted(made, ("poll",))
    def __getattr__(self, name):
        return getattr(select, name)

sys.modules["posix"] = Counted(posix, ("open", "mkfifo", "write", "read", "close", "unlink", "urandom"))
sys.modules["select"] = Poll()
with open(path) as file:
    exec(compile(file.read(), path, "exec"), {"__name__": "__main__"})
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    slurm: Slurm
    user: users.TestUser
    top: Path
    name: str
    guard: subprocess.Popen[str]
    pid: int  # the chaperon's

    @property
    def fifos(self) -> Path:
        return self.top / f"fifos-{self.name}"

    def stub(self, command: str) -> Path:
        return self.top / f"bin-{self.name}" / command

    def call(self, command: str, *words: str, timeout: float = 60, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return users.run_as(self.user, [self.stub(command), *words], cwd=self.top, timeout=timeout, env=env)

    def start(self, command: str, *words: str) -> subprocess.Popen[str]:
        return users.start_as(self.user, [self.stub(command), *words], cwd=self.top, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def call_killed_at(self, step: int, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        return users.run_as(self.user, [PYTHON, "-IS", "-c", KILLED_AT, str(step), self.stub(command), *words], cwd=self.top)

    def recorded(self) -> list[int]:
        """Ids in the ledger."""
        lines = [line.split("\t") for file in self.top.glob("state/ledger/*/*/*") for line in file.read_text().splitlines()]
        return sorted(int(words[2]) for words in lines if words[0] == "job" and words[-1] == ".")

    def queued(self, name: str) -> list[int]:
        """Ids of the jobs of that name that Slurm has."""
        done = self.slurm.run(self.user, "/usr/bin/squeue", "--me", "--noheader", "--format=%i", f"--name={name}")
        assert done.returncode == 0, done.stderr
        return sorted(map(int, done.stdout.split()))

    def left(self) -> list[str]:
        return sorted(path.name for path in self.fifos.iterdir() if path.name != "ask")

    def children(self) -> list[str]:
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()

    def memory(self) -> int:
        """The most that it ever held, in kilobytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])

    def files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: users.state(self.pid) == "Z", "end of the chaperon")

    def settle(self) -> None:
        """Nobody is being served, nothing runs, and nothing lies about."""
        wait_for(lambda: not self.children() and not self.left(), "rest")


@contextlib.contextmanager
def session(copy: Path, slurm: Slurm, user: users.TestUser, top: Path, programs: str = "/usr/bin") -> Iterator[Session]:
    """With a name of its own, as every session has: by it Slurm knows its jobs, of earlier tests too."""
    name = f"s{time.monotonic_ns()}"
    conf = str(slurm.places.client / "slurm.conf")
    argv = [PYTHON, "-IS", "-c", PROGRAM, str(copy / "lib"), str(top), conf, programs, name, " ".join(NAMES)]
    with users.start_as(user, argv, stdout=subprocess.PIPE) as guard:
        try:
            assert guard.stdout
            yield Session(slurm=slurm, user=user, top=top, name=name, guard=guard, pid=int(guard.stdout.readline()))
        finally:
            guard.kill()
