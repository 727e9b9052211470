"""Stubs that are slow, deaf, silent, huge or write garbage, all at once: others are served meanwhile, and nothing of them stays."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_sandbox.chaperon.limits import Limits
from agent_sandbox.chaperon.wire import Request, encode_request
from tests.machines import users
from tests.machines.copies import PYTHON
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for
from tests.machines.users import TestUser
from tests.slurm.submitting import Session, session
from tests.slurm.test_faults import name, number, submission, top

__all__ = ["name", "top"]  # fixtures of another module's
# python - FIFOS HOW COUNT REQUEST: does so until it is killed. Says on its output that it has begun.
NEIGHBOUR = """
import os, sys, time
fifos, how, count, request = sys.argv[1], sys.argv[2], int(sys.argv[3]), bytes.fromhex(sys.argv[4])
ask = os.open(f"{fifos}/ask", os.O_WRONLY)

def line(first):
    name = os.urandom(16).hex()
    for end in ("in", "out"):
        os.mkfifo(f"{fifos}/{name}.{end}", 0o600)
    said = os.open(f"{fifos}/{name}.in", os.O_RDWR | os.O_NONBLOCK)
    heard = os.open(f"{fifos}/{name}.out", os.O_RDONLY | os.O_NONBLOCK)
    os.write(said, first)
    os.write(ask, b"\\nchaperon/1 %s\\n" % name.encode())
    return said

if how == "garbage":
    print("begun", flush=True)
    while True:
        os.write(ask, os.urandom(4096))
size = {"slow": 12, "silent": 0, "half": len(request) // 2, "deaf": len(request)}[how]
lines = [line(request[:size]) for _ in range(count)]
print("begun", flush=True)
while True:
    time.sleep(0.05)
    if how == "slow" and size < len(request):
        for said in lines:
            os.write(said, request[size:size + 1])
        size += 1
"""
ASKED = encode_request(Request(command="squeue", words=("--long",), cwd="/", environment={"A": "b" * 3000}))
MANY = Limits().talks + 20  # more than there are places
AT_ONCE = 60  # seconds, on a busy machine; places are given away after 3 s


@pytest.fixture
def running(copy: Path, slurm: Slurm, member: TestUser, top: Path) -> Iterator[Session]:
    with session(copy, slurm, member, top) as started:
        assert started.call("sinfo").returncode == 0
        yield started


@contextlib.contextmanager
def neighbour(running: Session, how: str, count: int) -> Iterator[None]:
    argv = [PYTHON, "-IS", "-c", NEIGHBOUR, str(running.fifos), how, str(count), ASKED.hex()]
    with users.start_as(running.user, argv, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        try:
            yield
            assert process.poll() is None  # it went on all the time
        finally:
            process.kill()


@pytest.mark.parametrize(("how", "count"), [("slow", 20), ("silent", MANY), ("half", MANY), ("deaf", MANY), ("garbage", 1)])
def test_others_are_served_beside(running: Session, name: str, how: str, count: int) -> None:
    files = running.files()
    with neighbour(running, how, count):
        taken = [number(running.call("sbatch", *submission(name), timeout=AT_ONCE).stdout) for _ in range(3)]
        assert running.call("squeue", "--noheader", "--format=%i", "--sort=i", timeout=AT_ONCE).stdout.split() == list(map(str, taken))
        assert running.memory() < 100_000
    assert running.recorded() == running.queued(name) == taken
    running.settle()
    wait_for(lambda: running.files() <= files, "closed lines", 90)


def test_all_of_them_at_once(running: Session, name: str) -> None:
    with contextlib.ExitStack() as stack:
        for how, count in (("slow", 10), ("silent", 50), ("half", 50), ("deaf", 50), ("garbage", 1), ("garbage", 1)):
            stack.enter_context(neighbour(running, how, count))
        taken = [number(running.call("sbatch", *submission(name), timeout=AT_ONCE).stdout) for _ in range(5)]
    assert running.recorded() == running.queued(name) == taken
    running.settle()


def test_what_is_too_much_is_refused_in_words_and_stops_nobody(running: Session, name: str) -> None:
    many = running.call("sbatch", *submission(name), *["a"] * 20_000)
    assert (many.returncode, "the arguments" in many.stderr, "16384 are allowed" in many.stderr) == (1, True, True)
    huge = running.call("sbatch", *submission(name), env={f"V{place}": "x" * 100_000 for place in range(12)})
    assert (huge.returncode, "the environment" in huge.stderr, "1048576 are allowed" in huge.stderr) == (1, True, True)
    letters = running.call("sbatch", "-" + "H" * 120_000, *submission(name))
    assert (letters.returncode, "options" in letters.stderr) == (1, True)
    script = running.top / "large.sh"
    script.write_text("#!/bin/sh\n" + "#\n" * (2 << 20))
    os.chmod(script, 0o644)
    large = running.call("sbatch", "--hold", f"--job-name={name}", "large.sh")
    assert (large.returncode, large.stderr) == (1, f"sbatch: error: the script has more than {4 << 20} bytes\n")
    script.write_text("#!/bin/sh\n" + "#\n" * (2 << 19))
    taken = number(running.call("sbatch", "--hold", f"--job-name={name}", "large.sh").stdout)
    assert running.recorded() == running.queued(name) == [taken]
    assert running.memory() < 100_000
    running.settle()
