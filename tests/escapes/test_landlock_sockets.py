"""Without a mount namespace every socket's path can be named: the supervisor alone decides which are reached.

Services outside, each with its control (abstract names: test_sockets.py); a granted one; and the supervisor gone, for which no
call may wait or go through.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.backends import only
from tests.escapes.inside import python
from tests.escapes.test_sockets import CONNECT, connect, listening
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.needs import need, need_root

pytestmark = only("landlock")

SERVICES = {  # below a directory of the test's own
    "munge": ("/run", "munge.socket.2"),
    "user bus": ("/run", "user/1000/bus"),
    "docker": ("/var/lib", "docker.sock"),
    "X": ("/tmp", ".X11-unix/X0"),
}


@contextlib.contextmanager
def service(jail: Jail, name: str) -> Iterator[str]:
    """The address of one that listens, and that the user can reach outside."""
    need_root()
    where, rest = SERVICES[name]
    with tempfile.TemporaryDirectory(prefix="agent-sandbox-service-", dir=where) as top:
        os.chmod(top, 0o755)
        os.makedirs(os.path.dirname(f"{top}/{rest}"), exist_ok=True)
        with listening(jail, f"{top}/{rest}"):
            yield f"{top}/{rest}"


@pytest.mark.parametrize("network", ["isolated", "open"])
@pytest.mark.parametrize("name", SERVICES)
def test_the_service_cannot_be_reached(jail: Jail, name: str, network: str) -> None:
    with service(jail, name) as address:
        assert connect(jail, address, "--network", network)[0].startswith("refused")


WAYS = """
import os, socket, sys
path = sys.argv[1]
folder, _, name = path.rpartition("/")
os.symlink(path, "link"); os.symlink(folder, "way")
descriptor = os.open(folder, os.O_PATH)
ways = ["link", "way/" + name, f"/proc/self/fd/{descriptor}/{name}", f"/dev/fd/{descriptor}/{name}", "/proc/self/root" + path,
        f"/proc/{os.getpid()}/root" + path, "../" * 12 + path, f"/proc/{os.getppid()}/root" + path, "//" + path.replace("/", "//")]
for way in ways:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try:
            s = socket.socket(socket.AF_UNIX, kind); s.setblocking(False); s.connect(way); print("REACHED", way)
        except OSError:
            pass
os.chdir(folder)
try:
    s = socket.socket(socket.AF_UNIX); s.setblocking(False); s.connect(name); print("REACHED by the working directory")
except OSError:
    pass
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        socket.socket(socket.AF_UNIX, kind); print("MADE", kind)
    except OSError:
        pass
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    one.sendto(b"x", path); other.recv(1)  # to its other end, whatever the address
except OSError:
    pass
print("ran")
"""


def test_no_other_way_to_its_path_reaches_it(jail: Jail) -> None:
    with service(jail, "munge") as address:
        assert "REACHED link\n" in jail.outside(*python(WAYS, address)).out
        for name in ("link", "way"):
            (jail.project / name).unlink()
        assert jail.run(*python(WAYS, address)).out == "ran\n"


@pytest.mark.parametrize("network", ["isolated", "open"])
def test_a_granted_socket_can_be_reached_and_no_other(jail: Jail, network: str) -> None:
    with service(jail, "munge") as address, service(jail, "docker") as other:
        jail.configure(f"[sockets]\nallow = ['{address}']\n")
        assert connect(jail, address, "--network", network)[0] == "connected\n"
        assert connect(jail, other, "--network", network)[0].startswith("refused")
        inside = jail.run(*python(CONNECT, address), options=["--quiet"], admin={"config.toml": f"[sockets]\ndeny = ['{address}']\n"})
        assert inside.out.startswith("refused")


@pytest.fixture
def agent(jail: Jail, home: Path) -> Iterator[Path]:
    """A real ssh-agent of the user's, with a key."""
    path = jail.write(home / "agent/key", "").parent / "socket"
    (path.parent / "key").unlink()
    jail.outside(need("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", path.parent / "key")
    process = users.start_as(jail.user, [need("ssh-agent"), "-D", "-a", path], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 5
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        assert jail.outside("ssh-add", path.parent / "key", env={"SSH_AUTH_SOCK": str(path)}).code == 0
        yield path
    finally:
        process.kill()
        process.wait()


def test_an_ssh_agent_signs_nothing_unless_it_is_granted(jail: Jail, agent: Path) -> None:
    options = ["--quiet", "--set-env", f"SSH_AUTH_SOCK={agent}"]
    assert "ED25519" in jail.outside("ssh-add", "-l", env={"SSH_AUTH_SOCK": str(agent)}).out
    inside = jail.run("ssh-add", "-l", options=options)
    assert (inside.code, inside.out) == (2, "") and "connecting to" in inside.err
    jail.configure(f"[sockets]\nallow = ['{agent}']\n")
    assert "ED25519" in jail.run("ssh-add", "-l", options=options).out


def test_a_datagram_socket_as_standard_input_is_refused(jail: Jail, home: Path) -> None:
    """Through it every path could be sent to: nobody looks at sendto()."""
    code = """
import os, socket, subprocess, sys
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); log.bind(os.environ["HOME"] + "/log"); log.settimeout(0.2)
send = "import os, socket, sys; socket.socket(fileno=0).sendto(b'out', sys.argv[1])"
ours, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
done = subprocess.run([*sys.argv[1:], "/usr/bin/python3", "-c", send, os.environ["HOME"] + "/log"], stdin=ours, capture_output=True)
try:
    print(done.returncode, log.recv(9).decode())
except TimeoutError:
    print(done.returncode, "nothing")
os.unlink(os.environ["HOME"] + "/log")
"""
    assert jail.outside(*python(code, "/usr/bin/env")).out == "0 out\n"
    assert jail.outside(*python(code, str(jail.program), "--quiet", "--")).out == "125 nothing\n"


ORPHAN = """
import errno, os, signal, socket, sys, time
if os.fork():  # the command itself may die with the supervisor
    os.wait(); print("hung\\n" * 9, flush=True); os._exit(0)
signal.alarm(20)
own = socket.socket(socket.AF_UNIX); own.bind("own"); own.listen(8)
def attempt(act):
    start = time.monotonic()
    try:
        act(); word = "done"
    except OSError as error:
        word = errno.errorcode[error.errno]
    print(word, "late" if time.monotonic() - start > 1 else "at once", flush=True)
acts = [lambda: socket.socket(socket.AF_UNIX).connect("own"), lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[1]),
        lambda: os.chmod("own", 0o700), lambda: os.chmod(sys.argv[2], 0o755), lambda: os.utime(sys.argv[2])]
for act in acts: attempt(act)
sys.stdin.readline()
for act in acts: attempt(act)
"""


def test_with_its_supervisor_killed_calls_are_refused_at_once(jail: Jail, home: Path) -> None:
    """The guard is stopped first: else it would end the jail, which is what happens in life."""
    with service(jail, "munge") as address:
        pipe = subprocess.PIPE
        process = jail.start(*python(ORPHAN, address, str(home)), stdin=pipe, stdout=pipe)
        assert process.stdin and process.stdout
        before = [process.stdout.readline() for _ in range(5)]
        guard = only_child(process.pid)
        os.kill(guard, signal.SIGSTOP)
        try:
            os.kill(only_child(guard), signal.SIGKILL)
            process.stdin.write("go\n")
            process.stdin.flush()
            after = [process.stdout.readline() for _ in range(5)]
        finally:
            os.kill(guard, signal.SIGCONT)
        process.communicate(timeout=20)
    assert before == ["done at once\n", "EACCES at once\n", "done at once\n", "EPERM at once\n", "EPERM at once\n"]
    assert after == ["ENOSYS at once\n"] * 5


def only_child(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


MANY = """
import os, socket, sys, time
processes, each = 8, int(sys.argv[1])
server = socket.socket(socket.AF_UNIX); server.bind("many"); server.listen(64)
if os.fork() == 0:
    for _ in range(processes * each):
        server.accept()[0].close()
    os._exit(0)
start = time.monotonic()
for _ in range(processes):
    if os.fork() == 0:
        for _ in range(each):
            client = socket.socket(socket.AF_UNIX); client.connect("many"); client.close()
        os._exit(0)
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(processes + 1)]
print(sum(code != 0 for code in codes), round(processes * each / (time.monotonic() - start)))
"""


def test_thousands_of_connections_of_eight_processes_all_stand(jail: Jail) -> None:
    inside = jail.run(*python(MANY, "500"))
    failed, rate = map(int, inside.out.split())
    print(f"{rate} connections a second")
    assert (failed, inside.err) == (0, "")
    assert rate > 0
