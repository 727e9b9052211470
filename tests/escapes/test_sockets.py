"""Services outside that listen on a unix socket: a read-only mount does not stop a connect, so the socket must not be there."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.backends import stopped
from tests.escapes.inside import python
from tests.machines.jail import Jail
from tests.machines.needs import need_root

CONNECT = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1].replace("@", "\\0"))
    print("connected")
except OSError as e:
    print("refused", e.errno)
"""


@contextlib.contextmanager
def listening(jail: Jail, address: str) -> Iterator[None]:
    """A service outside, to which the control connects."""
    with socket.socket(socket.AF_UNIX) as service:
        service.bind(address.replace("@", "\0"))
        service.listen(64)
        if not address.startswith("@"):
            os.chmod(address, 0o777)
        try:
            assert jail.outside(*python(CONNECT, address)).out == "connected\n"
            yield
        finally:
            if not address.startswith("@"):
                os.unlink(address)


def connect(jail: Jail, address: str | Path, *options: str | Path) -> tuple[str, str]:
    inside = jail.run(*python(CONNECT, str(address)), options=["--quiet", *options])
    assert inside.out.startswith(("connected", "refused")) or stopped(inside, "hidden")
    return inside.out, inside.err


@pytest.mark.parametrize("network", ["isolated", "open"])
def test_an_abstract_socket_cannot_be_reached(jail: Jail, network: str) -> None:
    address = f"@agent-sandbox-test-{os.getpid()}"
    with listening(jail, address):
        assert connect(jail, address, "--network", network)[0].startswith("refused")


def test_control_abstract_sockets_work_within_the_jail(jail: Jail) -> None:
    listen = "import socket as s; a = s.socket(s.AF_UNIX); a.bind('\\0own'); a.listen(1)"
    code = f"{listen}; b = s.socket(s.AF_UNIX); b.connect('\\0own'); print('connected')"
    for network in ("isolated", "open"):
        assert jail.run(*python(code), options=["--quiet", "--network", network]).out == "connected\n"


@pytest.mark.parametrize("folder", ["/run", "/tmp", "/var/tmp", "/dev/shm", "/var/run", "/srv"])
@pytest.mark.parametrize("network", ["isolated", "open"])
def test_a_socket_in_a_system_directory_cannot_be_reached(jail: Jail, folder: str, network: str) -> None:
    need_root()
    address = f"{folder}/agent-sandbox-test-{os.getpid()}"
    with listening(jail, address):
        assert connect(jail, address, "--network", network)[0].startswith("refused")


@pytest.mark.parametrize("mode", ["restricted", "tmpwrite"])
def test_a_socket_in_home_cannot_be_reached(jail: Jail, home: Path, mode: str) -> None:
    folder = jail.write(home / "service/file").parent
    with listening(jail, f"{folder}/socket"):
        assert connect(jail, folder / "socket", "--home", mode)[0].startswith("refused")


@pytest.mark.parametrize("how", [["--home", "read"], ["--home", "write"], ["--ro", "service"], ["--rw", "service"]])
def test_where_a_socket_can_be_reached_the_start_says_so(jail: Jail, home: Path, how: list[str]) -> None:
    """An editor, a notebook or a terminal multiplexer that listens there runs what it is told, outside. (The project: SECURITY.md.)"""
    folder = jail.write(home / "service/file").parent
    options = [word.replace("service", str(folder)) for word in how]
    with listening(jail, f"{folder}/socket"):
        out, err = connect(jail, folder / "socket", *options)
    assert out.startswith("refused") or "unix-sockets" in err or "cannot give hidden here" in err


def test_another_sessions_processes_and_files_are_out_of_reach(jail: Jail, backend: str) -> None:
    """/dev/shm and the list of processes are the host's on Landlock: `ipc`, `pids`."""
    shared = "/dev/shm" if backend == "bwrap" else "$TMPDIR"
    first = jail.start(
        "sh",
        "-c",
        f"echo hunter2 > /tmp/mine; echo hunter2 > ~/mine; echo hunter2 > {shared}/mine; echo $TMPDIR > room; echo ready; read go",
        stdin=-1,
        stdout=-1,
    )
    assert first.stdout and first.stdout.readline() == "ready\n"
    room = (jail.project / "room").read_text().strip()
    if backend == "landlock":
        assert jail.outside("cat", f"{room}/mine", f"{room}/../home/mine").out == "hunter2\n" * 2
    look = f"cat /tmp/mine ~/mine {shared}/mine {room}/mine {room}/../home/mine; ls /proc | grep -c '^[0-9]'"
    inside = jail.run("sh", "-c", f"{look}; grep -c hunter2 ${{AGENT_SANDBOX_OWN:-/run/agent-sandbox}}/summary.json")
    first.communicate("go\n", timeout=20)
    assert "hunter2" not in inside.out
    assert backend == "landlock" or int(inside.out.splitlines()[0]) < 10


@pytest.mark.parametrize("how", ["asked", "required"])
def test_system_v_memory_of_the_host_is_out_of_reach(jail: Jail, backend: str, how: str) -> None:
    """On Landlock only where `ipc` is required; else it is named as a gap."""
    jail.configure(f'[sandbox]\nbackend = "{backend}"\nrequire = {["ipc"] if how == "required" else []}\n', "conf.d/backend.toml")
    if backend == "landlock" and how == "asked":
        assert "ipc" in jail.run("true").err
        return
    made = jail.outside("ipcmk", "-M", "4096").out.split()[-1]
    attach = python(f"import ctypes; print('attached' if ctypes.CDLL(None).shmat({made}, None, 0) != -1 else 'refused')")
    try:
        assert jail.outside(*attach).out == "attached\n"
        assert jail.run(*attach).out == "refused\n"
    finally:
        subprocess.run(["ipcrm", "-m", made], check=True)
