"""Every kind of socket, and every call that writes, tried from inside each backend; the whole of what came out is compared.

Two C programs make the attempts: `families` makes every socket that the kernel knows, `writes` does to a file, a directory, a socket
or a process everything that would change it. What they must find lies in `expected/`, as tables that are meant to be read: a line an
attempt, a column a backend. The same programs outside are the control.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from agent_sandbox.launcher.rights import SCOPES_ABI
from agent_sandbox.launcher.syscalls import landlock_abi
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.needs import missing, need, need_root

SOURCES = Path(__file__).parents[1] / "machines"
EXPECTED = Path(__file__).parent / "expected"
BACKENDS = ("bwrap", "landlock", "firejail")
PLACES = ("hidden", "read-only", "project")
SAME = "="  # in a table: whatever the control finds
NOT_HERE = {"ENOSYS", "EOPNOTSUPP", "ENOTTY"}  # outside: this kernel or filesystem has no such act

# What a jail lets through, in the table for all to see, and why.
SERVICES = {"connect", "connect-by-descriptor", "send-datagram", "send-datagram-of-pair"}  # that listen in what is granted: said at the start
ACCEPTED = {
    "bwrap": SERVICES,
    "landlock": {
        "affinity-set",  # the C library pins threads by number, and a filter cannot tell whose number it is
        "shared-memory",  # the gap `ipc`, closed where somebody insists on it
        "signal-by-pipe",  # that it is told so; the signal does not arrive
    },
    "firejail": SERVICES,
}


@pytest.fixture(scope="session")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("programs")
    for name in ("families", "writes"):
        words = ("-Wall", "-Wextra", "-Werror", "-O1", "-static", "-o", str(folder / name), str(SOURCES / f"{name}.c"))
        subprocess.run((need("gcc"), *words), check=True)
    return {name: (folder / name).read_bytes() for name in ("families", "writes")}


@pytest.fixture
def families(jail: Jail, binaries: dict[str, bytes]) -> Path:
    return placed(jail, "families", binaries)


@pytest.fixture
def writes(jail: Jail, binaries: dict[str, bytes]) -> Path:
    return placed(jail, "writes", binaries)


def placed(jail: Jail, name: str, binaries: dict[str, bytes]) -> Path:
    path = jail.write(jail.project / name, mode=0o755)
    path.write_bytes(binaries[name])
    return path


def needed(backend: str) -> str:
    if backend != "landlock":
        need(backend)
    elif landlock_abi() < SCOPES_ABI:
        missing("this kernel's Landlock has no scopes, and the table is about one that has")
    return backend


# ---- sockets ----


class Line(NamedTuple):
    """A row of the table of sockets: which attempts it is about, and what each column says to them."""

    patterns: tuple[str, ...]
    answers: dict[str, str]

    def covers(self, attempt: tuple[str, ...]) -> bool:
        return all(pattern == "*" or word in pattern.split(",") for pattern, word in zip(self.patterns, attempt, strict=True))


def read_lines(name: str, keys: int) -> list[Line]:
    rows = [line.split() for line in (EXPECTED / name).read_text().splitlines() if line and not line.startswith("#")]
    columns = rows[0][keys:]
    return [Line(tuple(row[:keys]), dict(zip(columns, row[keys:], strict=True))) for row in rows[1:]]


def made(text: str) -> dict[tuple[str, ...], str]:
    return {tuple(words): answer for *words, answer in map(str.split, text.splitlines())}


@pytest.mark.parametrize("network", ["isolated", "open"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_family_type_and_protocol_of_a_socket_is_as_the_table_says(jail: Jail, families: Path, backend: str, network: str) -> None:
    lines = read_lines("families.txt", keys=4)
    inside = jail.run(families, options=["--quiet", "--backend", needed(backend), "--network", network])
    assert (inside.code, inside.out.count("\n")) == (0, 10200), inside.err  # it ran to its end
    control = made(jail.outside(families).out)
    used = set()
    for attempt, answer in made(inside.out).items():
        number = next(number for number, line in enumerate(lines) if line.covers(attempt))
        wanted = lines[number].answers[f"{backend}:{network}"]
        assert answer == (control[attempt] if wanted == SAME else wanted), (*attempt, wanted)
        used.add(number)
    assert used == set(range(len(lines))), "a line of the table is about nothing"


def test_control_sockets_of_every_line_can_be_made_outside(jail: Jail, families: Path) -> None:
    """Each line that some backend refuses has a socket that anybody can make outside – or is about one that needs root."""
    control, lines = made(jail.outside(families).out), read_lines("families.txt", keys=4)
    made_outside = {next(line for line in lines if line.covers(attempt)).patterns for attempt, answer in control.items() if answer == "OK"}
    refused = {line.patterns for line in lines if set(line.answers.values()) != {SAME}}
    assert refused - made_outside == {("*", "INET,INET6", "RAW,PACKET", "*")}


# ---- files ----


@pytest.fixture
def tree(jail: Jail, writes: Path) -> Iterator[Callable[[str], Tree]]:
    with contextlib.ExitStack() as stack:

        def grow(place: str) -> Tree:
            return stack.enter_context(planted(jail, writes, place))

        yield grow


class Tree(NamedTuple):
    path: Path
    datagrams: tuple[socket.socket, ...]

    def arrived(self) -> int:
        """How many datagrams came in since the last time."""
        return sum(map(received, self.datagrams))

    def snapshot(self) -> dict[str, tuple[object, ...]]:
        """Everything about each entry but when it was last read; the time of change is moved by all there is."""
        return {str(path.relative_to(self.path)): facts(path) for path in [self.path, *sorted(self.path.rglob("*"))]}


def received(one: socket.socket) -> int:
    count = 0
    with contextlib.suppress(BlockingIOError):
        while one.recv(16):
            count += 1
    return count


def facts(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    content = path.read_bytes() if path.is_file() else b""
    return found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_nlink, found.st_mtime_ns, found.st_ctime_ns, content


@contextlib.contextmanager
def planted(jail: Jail, writes: Path, place: str) -> Iterator[Tree]:
    """A target for every act, and services that listen among them."""
    parent = jail.project if place == "project" else jail.user.home / place
    jail.write(parent / "anything")
    path = parent / "tree"
    assert jail.outside(writes, "make", path).code == 0
    with contextlib.ExitStack() as stack:
        for name in ("connect", "connect-by-descriptor"):
            stack.enter_context(bound(path / name, jail.user, socket.SOCK_STREAM)).listen(16)
        names = ("send-datagram", "send-datagram-of-pair")
        yield Tree(path, tuple(stack.enter_context(bound(path / name, jail.user, socket.SOCK_DGRAM)) for name in names))


@contextlib.contextmanager
def bound(path: Path, user: users.TestUser, kind: socket.SocketKind) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, kind) as one:
        one.bind(str(path))
        os.chown(path, user.uid, user.gid)
        one.setblocking(False)
        yield one


def answers(text: str) -> dict[str, str]:
    return {words[0]: answer for words, answer in made(text).items()}


def column(name: str, heading: str) -> dict[str, str]:
    return {line.patterns[0]: line.answers[heading] for line in read_lines(name, keys=1)}


def here(found: dict[str, str], wanted: dict[str, str], outside: dict[str, str]) -> dict[str, str]:
    """What is wanted on this machine: an act that it has not got may fail in its own way."""
    return {act: found[act] if outside[act] in NOT_HERE and found[act] != "OK" else answer for act, answer in wanted.items()}


def own_folder(jail: Jail) -> Path:
    return jail.write(jail.project / "own" / "anything").parent


def test_control_outside_each_act_on_a_file_works(jail: Jail, tree: Callable[[str], Tree], writes: Path) -> None:
    target = tree("control")
    before = target.snapshot()
    outside = answers(jail.outside(writes, "try", target.path, own_folder(jail)).out)
    assert outside == here(outside, column("files.txt", "outside"), outside)
    assert target.snapshot() != before
    assert target.arrived() == 2


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_act_on_a_file_is_as_the_table_says(
    jail: Jail, tree: Callable[[str], Tree], writes: Path, backend: str, place: str
) -> None:
    control, target, own = tree("control"), tree(place), own_folder(jail)
    outside = answers(jail.outside(writes, "try", control.path, own).out)
    jail.write(jail.user.home / "read-only" / "anything")
    before = target.snapshot()
    options = ["--quiet", "--backend", needed(backend), "--ro", str(jail.user.home / "read-only")]
    found = answers(jail.run(writes, "try", target.path, own, options=options).out)
    assert found == here(found, column("files.txt", f"{backend}:{place}"), outside)
    if place != "project":
        assert target.snapshot() == before
        assert target.arrived() == sum(found[act] == "OK" for act in ("send-datagram", "send-datagram-of-pair"))


@pytest.mark.parametrize("place", ["hidden", "read-only"])
def test_on_landlock_nothing_can_be_changed_without_the_ready_filter_either(
    jail: Jail, tree: Callable[[str], Tree], writes: Path, place: str
) -> None:
    target, own = tree(place), own_folder(jail)
    jail.write(jail.user.home / "read-only" / "anything")
    jail.configure("[seccomp]\nmode = 'off'\n")
    before = target.snapshot()
    options = ["--quiet", "--backend", needed("landlock"), "--ro", str(jail.user.home / "read-only")]
    found = answers(jail.run(writes, "try", target.path, own, options=options).out)
    assert found.keys() == column("files.txt", "outside").keys()
    assert {act for act, answer in found.items() if answer == "OK" and not act.startswith("look-")} == set()
    assert (target.snapshot(), target.arrived()) == (before, 0)


# ---- processes ----


@pytest.fixture
def victim(jail: Jail, writes: Path) -> Iterator[Victim]:
    need_root()  # it looks into the victim, which the user's own rights to trace may not allow
    with users.start_as(jail.user, [writes, "victim"], stdout=subprocess.PIPE, new_session=True) as process:
        assert process.stdout is not None
        try:
            yield Victim(process, process.stdout.readline().split())
        finally:
            process.kill()


class Victim(NamedTuple):
    process: subprocess.Popen[str]
    facts: list[str]

    def state(self) -> dict[str, object]:
        pid = self.process.pid
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            memory.seek(int(self.facts[1]))
            content = memory.read(20)
        return {
            "memory-write": content,
            "limit-set": Path(f"/proc/{pid}/limits").read_text(),
            "priority-set": os.getpriority(os.PRIO_PROCESS, pid),
            "affinity-set": os.sched_getaffinity(pid),
            "scheduler-set": os.sched_getscheduler(pid),
            "oom-score": Path(f"/proc/{pid}/oom_score_adj").read_text(),
        }

    def signals(self) -> set[str]:
        """The acts whose signals have come."""
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGRTMAX)
        acts: set[str] = set()
        for line in self.process.stdout:
            if line == "done\n":
                return acts
            acts.add(line.strip())
        raise AssertionError("the victim is gone")


def test_control_outside_each_act_on_a_process_works(jail: Jail, victim: Victim, writes: Path) -> None:
    before = victim.state()
    outside = answers(jail.outside(writes, "attack", *victim.facts).out)
    assert outside == column("processes.txt", "outside")
    after = victim.state()
    assert [name for name in before if before[name] == after[name] and not only_one_processor(name)] == []
    assert victim.signals() == {"kill-real-time", "kill-queue", "kill-thread", "kill-pidfd", "signal-by-pipe"}


def only_one_processor(name: str) -> bool:
    return name == "affinity-set" and os.cpu_count() == 1


@pytest.mark.parametrize("network", ["isolated", "open"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_act_on_a_process_is_as_the_table_says(jail: Jail, victim: Victim, writes: Path, backend: str, network: str) -> None:
    before, wanted = victim.state(), column("processes.txt", backend)
    if network == "open":
        wanted["abstract-connect"] = "EPERM"  # its name can be seen; Landlock's scope keeps it out of reach
    inside = jail.run(writes, "attack", *victim.facts, options=["--quiet", "--backend", needed(backend), "--network", network])
    assert answers(inside.out) == wanted
    after = victim.state()
    assert {name for name in before if before[name] != after[name]} <= ACCEPTED[backend]
    assert victim.signals() == set()


def test_on_landlock_who_insists_on_ipc_gets_it(jail: Jail, victim: Victim, writes: Path) -> None:
    jail.configure("[sandbox]\nrequire = ['ipc']\n")
    inside = jail.run(writes, "attack", *victim.facts, options=["--quiet", "--backend", needed("landlock")])
    assert answers(inside.out) == {**column("processes.txt", "landlock"), "shared-memory": "ENOSYS"}


# ---- the tables themselves ----


def test_no_table_lets_anything_be_changed_but_what_is_accepted_by_name() -> None:
    found: dict[str, set[str]] = {backend: set() for backend in BACKENDS}
    for name, places in (("files.txt", ("hidden", "read-only")), ("processes.txt", ("",))):
        for line in read_lines(name, keys=1):
            for backend in BACKENDS:
                headings = [f"{backend}:{place}".rstrip(":") for place in places]
                if any(line.answers[heading] == "OK" for heading in headings) and not line.patterns[0].startswith("look-"):
                    found[backend].add(line.patterns[0])
    assert found == ACCEPTED
