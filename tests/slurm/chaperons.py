"""A chaperon of the installed copy's, as a user, over a real Slurm: started as a guard starts it, with handlers of the test's own."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.machines import users
from tests.machines.copies import PYTHON
from tests.machines.slurm.cluster import Slurm

NAMES = ("sbatch", "squeue", "sinfo", "scancel", "strigger")
PROGRAM = """
import os, sys
library, top, conf = sys.argv[1:4]
sys.path.insert(0, library)
from agent_sandbox.chaperon import answers, main
from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.gate import prepare
from agent_sandbox.chaperon.orders import Caps, Orders, pack
from agent_sandbox.chaperon.stubfile import stub_code, stub_file
from agent_sandbox.chaperon.wire import Reply, Want
from agent_sandbox.launcher.audit import Log

def submit(request, orders):
    if request.script is None:
        return Want(path=request.words[-1])
    return Command(program="sbatch", words=("--parsable", "--output=/dev/null"), stdin=request.script.content, finish=record)

def record(result):
    with open(f"{top}/ledger", "a") as file:
        file.write(result.out.decode())
    return Reply(code=result.code, out=result.out, err=result.err)

def show(request, orders):
    return Command(program=request.command, words=request.words, live=True)

answers.HANDLERS.update(sbatch=submit, squeue=show, sinfo=show)
orders = Orders(
    session="s", fifos=f"{top}/fifos", state=top, project=top, project_id="p", user=os.environ["USER"], uid=os.getuid(), home=os.environ["HOME"],
    entry="", python=sys.executable, library=library, programs="/usr/bin", slurm_conf=conf, settings={}, caps=Caps(), scope="project", mail=False,
    log=Log(directory=f"{top}/audit", host="h", enabled=True, keep_days=None, max_size=None))
os.makedirs(f"{top}/fifos", 0o700)
os.mkdir(f"{top}/bin")
for name, content in (("stub", stub_file(sys.executable, f"{top}/bin/code", orders.fifos)), ("code", stub_code())):
    with open(f"{top}/bin/{name}", "wb") as file:
        file.write(content)
os.chmod(f"{top}/bin/stub", 0o755)
for name in sys.argv[4].split():
    os.symlink("stub", f"{top}/bin/{name}")
ask = prepare(orders.fifos)
guard = os.getpid()
child = os.fork()
if child == 0:
    main.run(pack(orders), ask, guard)
os.close(ask)
print(child, flush=True)
os.waitpid(child, 0)
"""


@contextlib.contextmanager
def chaperon(copy: Path, slurm: Slurm, user: users.TestUser, top: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The guard's process, and the chaperon's id."""
    conf = str(slurm.places.client / "slurm.conf")
    argv = [PYTHON, "-IS", "-c", PROGRAM, str(copy / "lib"), str(top), conf, " ".join(NAMES)]
    with users.start_as(user, argv, stdout=subprocess.PIPE) as guard:
        try:
            assert guard.stdout
            yield guard, int(guard.stdout.readline())
        finally:
            guard.kill()


def call(user: users.TestUser, top: Path, name: str, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A stub outside any jail: the line that it speaks over is the same."""
    return users.run_as(user, [top / "bin" / name, *words], cwd=cwd or top)


def alive(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}") and users.state(pid) != "Z"
