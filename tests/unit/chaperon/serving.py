"""A chaperon in a process of its own, stubs as the launcher writes them, and stubs that misbehave."""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent_sandbox.chaperon import main
from agent_sandbox.chaperon.command import Command, Result
from agent_sandbox.chaperon.gate import Gate, prepare
from agent_sandbox.chaperon.limits import Limits
from agent_sandbox.chaperon.orders import Caps, Orders
from agent_sandbox.chaperon.stubfile import stub_code, stub_file
from agent_sandbox.chaperon.wire import Reply, Request, Want, encode_request
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace
from agent_sandbox.launcher.audit import Log

if TYPE_CHECKING:
    from agent_sandbox.chaperon.command import Step

NAMES = ("sbatch", "squeue", "sacct", "sinfo", "salloc")


def orders_for(top: Path, programs: str = "/usr/bin") -> Orders:
    return Orders(
        session="s1", fifos=str(top / "fifos"), state=str(top / "state"), project=str(top), project_id="p1", user="somebody", uid=os.getuid(),
        home="/nowhere", entry="/e", python=sys.executable, library="/l", programs=programs, slurm_conf="", settings={"a": [["b", 1]]},
        caps=Caps(max_nodes=2, qos=("high",)), scope="project", mail=False,
        log=Log(directory=str(top / "audit"), host="here", enabled=True, keep_days=None, max_size=None),
    )  # fmt: skip


def recorded(top: Path) -> Callable[[Request, Orders], Step]:
    """A handler that does what it is told: `squeue` runs live, `salloc` lives long, `sacct` and `sbatch` are captured, and recorded."""

    def answer(request: Request, orders: Orders) -> Step:
        first, rest = (request.words or ("",))[0], request.words[1:]
        if first == "say":
            return Reply(code=int(rest[0]), out=rest[1].encode("utf-8", "surrogateescape"), err=rest[2].encode("utf-8", "surrogateescape"))
        if first == "fail":
            raise RuntimeError("not for the stub")
        if first == "show":
            return Reply(out=repr(request).encode("utf-8", "surrogateescape"))
        if first == "want":
            have = request.script and request.script.path == rest[0]
            return Reply(out=request.script.content) if have and request.script else Want(path=rest[0])
        if first == "unready":
            return Command(program="sh", words=("-c", 'cat; : > "$0"', rest[0]), stdin=unready)
        return Command(
            program=first, words=rest, live=request.command in ("squeue", "salloc"), lasting=request.command == "salloc",
            seconds=0.4 if request.command == "sinfo" else 60, finish=record if request.command == "sbatch" else None,
            stdin=request.script.content if request.script else b"", most=1 << 16, first=b"first\n" if request.command == "salloc" else b"",
        )  # fmt: skip

    def unready() -> bytes:
        raise UserError("no input for it", hint="wait")

    def record(result: Result) -> Step:
        with (top / "ledger").open("ab") as file:
            file.write(result.out)
        return Reply(code=result.code, out=result.out, err=result.err, facts=(("job", 7),))

    return answer


@dataclass
class Chaperon:
    top: Path
    pid: int = 0
    room: int | None = None  # that the audit log has

    @property
    def fifos(self) -> Path:
        return self.top / "fifos"

    def left(self) -> list[str]:
        return sorted(name for name in os.listdir(self.fifos) if name != "ask")

    def start(self, limits: Limits) -> None:
        ask = prepare(str(self.fifos))
        self.pid = os.fork()
        if self.pid == 0:
            try:
                gc.freeze()  # else looking at what the tests have made would make it this process's own
                os.set_inheritable(os.open("/etc/passwd", os.O_RDONLY), True)  # as a caller may leave one
                ask = main.be_alone(ask)
                wake = main.listen_to_signals()
                orders = orders_for(self.top)
                orders = replace(orders, log=replace(orders.log, max_size=self.room))
                main.serve(orders, Gate(str(self.fifos), ask), wake, recorded(self.top), limits)
            finally:
                os._exit(0)
        os.close(ask)

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.pid:
            os.kill(self.pid, number)
            os.waitpid(self.pid, 0)
            self.pid = 0

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def memory(self) -> int:
        """Kilobytes that it holds for itself: it is a fork of the tests' own process, and shares much with that."""
        pages = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return int(next(line for line in pages.splitlines() if line.startswith("Private_Dirty")).split()[1])

    def children(self) -> list[str]:
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()

    def argv(self, name: str, *words: str | bytes) -> list[str | bytes]:
        return [str(self.top / "bin" / name), *words]

    def call(self, name: str, *words: str | bytes, **options: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.argv(name, *words), capture_output=True, timeout=30, **{"stdin": subprocess.DEVNULL, **options})  # type: ignore[call-overload,no-any-return]

    def popen(self, name: str, *words: str, **options: object) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(self.argv(name, *words), **{**pipes, **options})  # type: ignore[call-overload,no-any-return]


@contextlib.contextmanager
def chaperon(top: Path, limits: Limits | None = None, room: int | None = None) -> Iterator[Chaperon]:
    (top / "fifos").mkdir(mode=0o700)
    (top / "bin").mkdir()
    (top / "bin" / "stub").write_bytes(stub_file(sys.executable, str(top / "bin" / "code"), str(top / "fifos")))
    (top / "bin" / "code").write_bytes(stub_code())
    (top / "bin" / "stub").chmod(0o755)
    for name in NAMES:
        (top / "bin" / name).symlink_to("stub")
    running = Chaperon(top=top, room=room)
    running.start(limits or Limits())
    try:
        yield running
    finally:
        running.kill()


class RawStub:
    """The protocol step by step, in this process, for what no proper stub does."""

    def __init__(self, fifos: Path) -> None:
        self.fifos, self.name = fifos, os.urandom(16).hex()
        for end in ("in", "out"):
            os.mkfifo(fifos / f"{self.name}.{end}", 0o600)
        self.said = os.open(fifos / f"{self.name}.in", os.O_RDWR | os.O_NONBLOCK)
        self.heard = os.open(fifos / f"{self.name}.out", os.O_RDONLY | os.O_NONBLOCK)

    def say(self, data: bytes) -> int:
        return os.write(self.said, data)

    def announce(self) -> None:
        shout(self.fifos, b"\nchaperon/1 %s\n" % self.name.encode())

    def hear(self, patience: float = 10) -> bytes:
        """Everything up to the end."""
        heard, poll = b"", select.poll()
        poll.register(self.heard, select.POLLIN)
        while poll.poll(patience * 1000):
            piece = os.read(self.heard, 1 << 16)
            if not piece:
                return heard
            heard += piece
        raise TimeoutError(f"no end; heard {heard!r}")

    def is_answered(self) -> bool:
        poll = select.poll()
        poll.register(self.heard, select.POLLIN)
        return bool(poll.poll(0))

    def fill(self) -> None:
        """Say until nobody takes any more."""
        with contextlib.suppress(BlockingIOError):
            while self.has_room() and self.say(b"x" * 4096):
                pass

    def has_room(self) -> bool:
        poll = select.poll()
        poll.register(self.said, select.POLLOUT)
        return bool(poll.poll(0))

    def ask(self, request: Request) -> bytes:
        self.say(encode_request(request))
        self.announce()
        return self.hear()

    def close(self) -> None:
        for handle in (self.said, self.heard):
            with contextlib.suppress(OSError):
                os.close(handle)

    def __enter__(self) -> RawStub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shout(fifos: Path, data: bytes) -> None:
    handle = os.open(fifos / "ask", os.O_WRONLY)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)


def request(*words: str, command: str = "sacct", **fields: object) -> Request:
    return Request(**{"command": command, "words": words, "cwd": "/", "environment": {}, **fields})  # type: ignore[arg-type]


def wait_until(true: Callable[[], object], patience: float = 10) -> None:
    deadline = time.monotonic() + patience
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)
