"""What jobs left in the state directory → what of it can go: variables that no run of a job will read again, old logs, old ledgers.

A program of its own beside the chaperon, now and then. A job can be requeued for as long as the controller knows it, so the controller is
asked first; where it does not answer nothing goes. Several clusters may share one home, with ids of their own: what another machine
submitted goes by its age alone.
"""

from __future__ import annotations

import os
import time

from agent_sandbox.chaperon.ledger import host_name, read_file
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_sandbox.chaperon.orders import Orders

HOUR, DAY = 3600.0, 86400.0
LOGS_KEPT, ALL_KEPT = 30 * DAY, 180 * DAY
EVERY = 6 * HOUR
PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from agent_sandbox.chaperon.tidy import main; main(*sys.argv[1:])"


@record
class Left:
    """A file, how old it is, and what the ledger knows of it."""

    path: str
    age: float
    size: int
    job: int | None = None
    is_here: bool = False  # it was submitted from this machine


def start_when_due(orders: Orders) -> None:
    """Once in a while, whichever session comes first. Nobody waits for it; it holds nothing of ours."""
    jobs = f"{orders.state}/jobs"
    try:
        if time.time() - os.stat(f"{orders.state}/tidied").st_mtime < EVERY:
            return
    except OSError:
        if not os.path.isdir(jobs):
            return
    _start(orders)


def _start(orders: Orders) -> None:
    try:
        os.close(os.open(f"{orders.state}/tidied", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError:  # a full disk, say: another time
        return
    words = ["python3", "-IS", "-c", PROGRAM, orders.library, orders.state, f"{orders.programs}/squeue", orders.user, orders.slurm_conf]
    try:
        os.posix_spawn(orders.python, words, {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}, setsid=True)
    except OSError:  # no process left, which a jail can bring about: the chaperon goes on
        pass


def main(state: str, squeue: str, user: str, slurm_conf: str) -> None:
    known = ask(squeue, user, slurm_conf)
    if known is not None:
        for path in doomed(found(state, time.time()), known):
            _remove(path)
    for directory in (*_entries(f"{state}/jobs"), *(one for project in _entries(f"{state}/ledger") for one in _entries(project))):
        if time.time() - _changed(directory) > DAY:
            _remove(directory)


def ask(squeue: str, user: str, slurm_conf: str) -> frozenset[int] | None:
    """The jobs of this user's that the controller knows, also those that have ended; None = it did not say."""
    import subprocess  # costs more than all the rest, and the chaperon loads us, too

    words = [squeue, "--noheader", "--states=all", f"--user={user}", "--format=%F"]
    environment = {"PATH": "/usr/bin:/bin", **({"SLURM_CONF": slurm_conf} if slurm_conf else {})}
    try:
        done = subprocess.run(words, env=environment, capture_output=True, timeout=60)
        return frozenset(map(int, done.stdout.split())) if done.returncode == 0 else None
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def doomed(left: Iterable[Left], known: frozenset[int]) -> Iterator[str]:
    for one in left:
        is_over = one.is_here and one.job not in known
        kept = (HOUR if one.path.endswith(".env") or one.size == 0 else LOGS_KEPT) if is_over and one.path.endswith((".env", ".log")) else ALL_KEPT
        if one.age > kept:
            yield one.path


def found(state: str, now: float) -> Iterator[Left]:
    ledgers = [file for project in _entries(f"{state}/ledger") for session in _entries(project) for file in _entries(session)]
    jobs = {token: job for file in ledgers for token, job in read_file(file).items()}
    submitted = {job: _is_from_here(token) for token, job in jobs.items() if job}
    for path in (file for session in _entries(f"{state}/jobs") for file in _entries(session)):
        stem = path.rpartition("/")[2].rpartition(".")[0]
        if path.endswith(".env"):
            yield _left(path, now, jobs.get(stem), is_here=_is_from_here(stem) and stem in jobs)
        else:
            job = int(stem) if stem.isascii() and stem.isdecimal() else None
            yield _left(path, now, job, is_here=submitted.get(job or 0, False))
    for path in ledgers:
        yield _left(path, now, None, is_here=False)


def _is_from_here(token: str) -> bool:
    """HOST-PID-START-NUMBER; a host's name may begin with another's."""
    return token.rsplit("-", 3)[0] == host_name()


def _left(path: str, now: float, job: int | None, *, is_here: bool) -> Left:
    try:
        seen = os.lstat(path)
    except OSError:
        return Left(path=path, age=0.0, size=0)
    return Left(path=path, age=now - seen.st_mtime, size=seen.st_size, job=job, is_here=is_here)


def _entries(directory: str) -> list[str]:
    try:
        return [f"{directory}/{name}" for name in os.listdir(directory)]
    except OSError:
        return []


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return time.time()


def _remove(path: str) -> None:
    """A file; of directories those that are empty."""
    try:
        os.rmdir(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    except OSError:
        pass
