"""Only a FIFO that a stub made is ever opened, whatever else lies under its name."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_sandbox.chaperon import gate as gates
from agent_sandbox.chaperon.gate import Gate, prepare
from tests.machines.needs import need_root
from tests.unit.chaperon.serving import RawStub, shout


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    (tmp_path / "fifos").mkdir()
    opened = Gate(str(tmp_path / "fifos"))
    yield opened
    opened.close()


@pytest.fixture
def fifos(gate: Gate, tmp_path: Path) -> Path:
    return tmp_path / "fifos"


def opened() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_stub_is_admitted_and_its_names_disappear(gate: Gate, fifos: Path) -> None:
    with RawStub(fifos) as stub:
        stub.say(b"hello")
        stub.announce()
        assert gate.announced() == [stub.name]
        line = gate.admit(stub.name)
        assert line
        assert os.read(line.hear, 10) == b"hello"
        os.write(line.tell, b"you")
        assert os.read(stub.heard, 10) == b"you"
        assert os.listdir(fifos) == ["ask"]
        assert gate.admit(stub.name) is None
        os.close(line.hear)
        os.close(line.tell)


def link_to_file(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def link_to_fifo(path: Path, victim: Path) -> None:
    os.mkfifo(f"{victim}.fifo")
    path.symlink_to(f"{victim}.fifo")


def hard_link_to_file(path: Path, victim: Path) -> None:
    path.hardlink_to(victim)


def second_name_of_a_fifo(path: Path, victim: Path) -> None:
    os.mkfifo(f"{victim}.fifo")
    path.hardlink_to(f"{victim}.fifo")


def file(path: Path, victim: Path) -> None:
    path.write_text("file")


def directory(path: Path, victim: Path) -> None:
    path.mkdir()


def bound_socket(path: Path, victim: Path) -> None:
    here = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def device(path: Path, victim: Path) -> None:
    need_root()
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))


def fifo_of_another(path: Path, victim: Path) -> None:
    need_root()
    os.mkfifo(path)
    os.chown(path, 12345, 12345)


REPLACED = [link_to_file, link_to_fifo, hard_link_to_file, second_name_of_a_fifo, file, directory, bound_socket, device, fifo_of_another]


@pytest.mark.parametrize("end", ["in", "out"])
@pytest.mark.parametrize("replace", REPLACED, ids=lambda one: one.__name__)
def test_what_was_put_in_place_of_a_fifo_is_not_opened(
    gate: Gate, fifos: Path, tmp_path: Path, replace: Callable[[Path, Path], None], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "bashrc"
    victim.write_text("precious")
    used: list[str] = []
    real = os.open

    def watched(path: str, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if str(path).startswith("/proc/self/fd/") and not flags & os.O_PATH:
            used.append(os.readlink(path))
        return real(path, flags, *rest, dir_fd=dir_fd)

    with RawStub(fifos) as stub:
        (fifos / f"{stub.name}.{end}").unlink()
        replace(fifos / f"{stub.name}.{end}", victim)
        before = opened()
        monkeypatch.setattr(gates.os, "open", watched)
        assert gate.admit(stub.name) is None
        monkeypatch.undo()
        assert used == ([] if end == "in" else [str(fifos / f"{stub.name}.in")])  # the other end, which is a FIFO, and nothing else
        assert (victim.read_text(), opened()) == ("precious", before)
    with RawStub(fifos) as stub:  # control: one that is as it should be
        line = gate.admit(stub.name)
        assert line
        os.close(line.hear)
        os.close(line.tell)


def test_a_stub_that_died_before_it_was_admitted_is_nobody(gate: Gate, fifos: Path) -> None:
    with RawStub(fifos) as stub:
        stub.announce()
    before = opened()
    assert [gate.admit(name) for name in gate.announced()] == [None]
    assert (os.listdir(fifos), opened()) == (["ask"], before)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\0" * 5000, b"chaperon/1 ", b"chaperon/1 ../../../../../../../etc/passw\n", b"\n\n\n", b"chaperon/2 " + b"a" * 32, os.urandom(6000),
        b"chaperon/1 " + b"A" * 32 + b"\n", b"x" * 70, b"chaperon/1 " + b"a" * 33 + b"\n", b"chaperon/1 " + b"a" * 31,
    ],
    ids=range(10),
)  # fmt: skip
def test_garbage_before_an_announcement_is_nobody_and_spoils_nothing(gate: Gate, fifos: Path, garbage: bytes) -> None:
    with RawStub(fifos) as stub:
        shout(fifos, garbage)
        stub.announce()
        found = [name for _ in range(4) for name in gate.announced()]
        assert found == [stub.name]


def test_an_announcement_in_two_reads_is_one(gate: Gate, fifos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "AT_ONCE", 10)
    with RawStub(fifos) as stub:
        stub.announce()
        assert [name for _ in range(6) for name in gate.announced()] == [stub.name]


def test_ask_that_is_no_fifo_is_refused(tmp_path: Path) -> None:
    for make in (lambda path: path.write_text(""), lambda path: path.symlink_to("/dev/null")):
        make(tmp_path / "ask")
        with pytest.raises(OSError, match=r"FIFO|symbolic"):
            prepare(str(tmp_path))
        (tmp_path / "ask").unlink()


def test_fifos_of_the_dead_are_swept_and_those_of_the_living_stay(gate: Gate, fifos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawStub(fifos) as living:
        with RawStub(fifos):
            pass
        os.mkfifo(fifos / f"{'a' * 32}.in")
        (fifos / "other.in").touch()
        gate.sweep()
        assert len(os.listdir(fifos)) == 7  # all are too young
        monkeypatch.setattr(gates, "OLD", -1.0)
        gate.sweep()
        assert sorted(os.listdir(fifos)) == sorted(["ask", "other.in", f"{living.name}.in", f"{living.name}.out"])
        assert gate.admit(living.name)


def test_a_directory_that_is_removed_harms_nobody(gate: Gate, fifos: Path) -> None:
    stub = RawStub(fifos)
    for name in os.listdir(fifos):
        (fifos / name).unlink()
    fifos.rmdir()
    assert gate.admit(stub.name) is None
    gate.sweep()
    stub.close()
