"""Facts that change while the supervisor looks, in a whole jail: memory, descriptors and directories swapped under a connect.

A service outside says `OUT` to whoever reaches it, one inside says `in`. One second each; five with SANDBOX_SOAK=1.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.escapes.backends import only
from tests.escapes.inside import python
from tests.machines.jail import Jail

pytestmark = only("landlock")
SECONDS = "5" if os.environ.get("SANDBOX_SOAK") == "1" else "1"

# argv: the seconds, the outside folder with a socket `s`; the same folder inside is `here`.
START = """
import collections, ctypes, mmap, os, socket, sys, threading, time
sys.setswitchinterval(1e-5)
seconds, outside = float(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)
os.mkdir("here")
def serve(server):
    while True:
        with server.accept()[0] as one:
            try: one.send(b"in")
            except OSError: pass  # gone already
server = socket.socket(socket.AF_UNIX); server.bind("here/s"); server.listen(64)
threading.Thread(target=serve, args=(server,), daemon=True).start()
def address(path): return (b"\\1\\0" + path.encode()).ljust(110, b"\\0")
memory = mmap.mmap(-1, 4096); memory[:110] = address("here/s")
place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
outcomes = collections.Counter()
def attempt(descriptor):
    if libc.connect(descriptor, ctypes.c_void_p(place), 110):
        outcomes["refused"] += 1
        return
    one = socket.socket(fileno=os.dup(descriptor)); one.settimeout(2)
    outcomes[one.recv(10).decode()] += 1
    one.close()
def tries():
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield socket.socket(socket.AF_UNIX)
"""
END = """
print(outcomes["in"], outcomes["OUT"], outcomes["refused"], flush=True)
os._exit(0)
"""
MEMORY = """
good, bad = address("here/s"), address(outside + "/s")
if os.fork() == 0:  # another process, for which no lock of this interpreter is in the way
    end = time.monotonic() + seconds + 1
    while time.monotonic() < end:
        memory[:110] = bad; memory[:110] = good
    os._exit(0)
for one in tries(): attempt(one.fileno())
"""
DESCRIPTOR = """
fixed = os.dup(0)
def swap():
    while True:  # the same number is a file, a fresh socket and, after a try, one that is connected
        with socket.socket(socket.AF_UNIX) as fresh:
            for path in (bad, good):
                os.dup2(0, fixed); memory[:110] = path; os.dup2(fresh.fileno(), fixed)
                time.sleep(0.0002)
good, bad = address("here/s"), address(outside + "/s")
threading.Thread(target=swap, daemon=True).start()
for one in tries():
    try: attempt(fixed)
    except OSError: outcomes["refused"] += 1
"""
DIRECTORY = """
os.symlink(outside, "link")
if os.fork() == 0:
    end = time.monotonic() + seconds + 1
    while time.monotonic() < end:
        os.rename("here", "aside"); os.rename("link", "here"); os.rename("here", "link"); os.rename("aside", "here")
    os._exit(0)
for one in tries(): attempt(one.fileno())
"""
MODE = """
os.symlink(outside + "/s", "link"); open("file", "w").close()
if os.fork() == 0:
    end = time.monotonic() + seconds + 1
    while time.monotonic() < end:
        os.rename("file", "aside"); os.rename("link", "file"); os.rename("file", "link"); os.rename("aside", "file")
    os._exit(0)
number = 0
for _ in tries():
    number += 1
    try:
        os.chmod("file", 0o700 + number % 8); os.utime("file", (1, 1)); outcomes["in"] += 1
    except OSError: outcomes["refused"] += 1
before = os.stat(outside + "/s")
outcomes["OUT"] = int(before.st_mode & 0o777 != 0o777 or before.st_mtime == 1)
"""


@pytest.fixture
def outside(jail: Jail, home: Path) -> Iterator[Path]:
    folder = jail.write(home / "service/file").parent
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/s")
        os.chmod(f"{folder}/s", 0o777)
        os.chown(f"{folder}/s", jail.user.uid, jail.user.gid)
        server.listen(64)
        thread = threading.Thread(target=answer, args=(server,), daemon=True)
        thread.start()
        yield folder
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def answer(server: socket.socket) -> None:
    while True:
        try:
            one = server.accept()[0]
        except OSError:  # shut down
            return
        with one, contextlib.suppress(BrokenPipeError):
            one.send(b"OUT")


@pytest.mark.parametrize("race", [MEMORY, DESCRIPTOR, DIRECTORY, MODE], ids=["memory", "descriptor", "directory", "mode"])
def test_no_race_reaches_the_service_outside(jail: Jail, outside: Path, race: str) -> None:
    control = jail.outside(*python(START + race + END, "0.5", str(outside)))
    reached = int(control.out.split()[1])
    for path in (jail.project / "here", jail.project / "aside", jail.project / "link", jail.project / "file"):
        jail.outside("rm", "-rf", path)
    os.chmod(outside / "s", 0o777)
    os.utime(outside / "s")
    inside = jail.run(*python(START + race + END, SECONDS, str(outside)))
    done, bypasses, refused = map(int, inside.out.split())
    print(f"{done + refused} tries, {done} allowed, {refused} refused, {bypasses} bypasses; without a jail {reached}")
    assert reached > 0  # control: the race does lead there
    assert done > 0 and refused > 0  # both sides of the swap were met
    assert bypasses == 0
