"""The real Slurm from inside a jail, by every way around the names on PATH: its programs, its configuration, munge's socket and key.

Each act works outside as the same user on the same machine, and fails inside; inside, sockets of one's own work, so it is
not the jail that keeps programs from talking to each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.escapes.inside import PYTHON, python
from tests.machines.needs import need
from tests.machines.slurm.keeper import wait_for
from tests.slurm.conftest import Site

ACTS = Path(__file__).with_name("acts.py")
MUNGE = "/run/munge/munge.socket.2"
BACKENDS = ("bwrap", "landlock", "firejail")

CONNECT = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1].replace('@', '\\0'))"
BY_DIRECTORY = """
import os, socket, sys
folder = os.open(os.path.dirname(sys.argv[1]), os.O_PATH)
socket.socket(socket.AF_UNIX).connect(f"/proc/self/fd/{folder}/{os.path.basename(sys.argv[1])}")
"""
FROM_THE_DIRECTORY = """
import os, socket, sys
os.chdir(os.path.dirname(sys.argv[1]))
socket.socket(socket.AF_UNIX).connect(os.path.basename(sys.argv[1]))
"""
RELAY = """
import os, select, socket, subprocess, sys
listener, far = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
path = f"{sys.argv[2]}{os.getpid()}"
listener.bind(path)
listener.listen(1)
far.connect(sys.argv[1])
client = subprocess.Popen(["/usr/bin/munge", "-n", "--socket=" + path])
near = listener.accept()[0]
other = {near: far, far: near}
while client.poll() is None:
    for end in select.select(other, (), (), 0.05)[0]:
        if data := end.recv(65536):
            other[end].sendall(data)
sys.exit(client.returncode)
"""
OWN_SOCKET = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
    listener.bind(sys.argv[1])
    listener.listen(1)
    client.connect(sys.argv[1])
    os.unlink(sys.argv[1])
"""


@dataclass(frozen=True, slots=True)
class Act:
    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    patience: float = 4  # outside all are done in two; inside some try again for a minute


def commands(project: Path) -> list[Act]:
    """Slurm's own programs: with the configuration where it is, with one named, with one brought along; and copies of them."""
    conf = {"SLURM_CONF": "/etc/slurm/slurm.conf"}
    own = {"SLURM_CONF": str(project / "slurm.conf")}
    submit = ("--parsable", "--output=/dev/null", "--wrap=true")
    return [
        Act("sbatch", ("/usr/bin/sbatch", *submit)),
        Act("sbatch, configuration named", ("/usr/bin/sbatch", *submit), conf, patience=3),
        Act("sbatch, own configuration", ("/usr/bin/sbatch", *submit), own),
        Act("sbatch, a copy of all", (str(project / "sbatch"), *submit), own),
        Act("srun", ("/usr/bin/srun", "--quiet", "--output=/dev/null", "true"), own),
        Act("squeue", ("/usr/bin/squeue",), own),
        Act("scontrol ping", ("/usr/bin/scontrol", "ping"), own),
        Act("scontrol, a copy", (str(project / "scontrol"), "show", "node"), own),
        Act("sinfo", ("/usr/bin/sinfo",), own),
        Act("sacct", ("/usr/bin/sacct",), own),
        Act("scancel", ("/usr/bin/scancel", "--me", "--name=none"), own),
    ]


def credentials(project: Path, stepd: Path, abstract: str) -> list[Act]:
    """Munge's socket by every name that leads there, its key, and the sockets of a job on this node."""
    roundabout = "/".join([".."] * 12) + MUNGE
    named = {
        "at its place": MUNGE,
        "a link in the project": str(project / "link"),
        "a link to its directory": str(project / "links/munge.socket.2"),
        "relative": roundabout,
        "/var/run": f"/var{MUNGE}",
        "/proc/self/root": f"/proc/self/root{MUNGE}",
        "/proc/self/cwd": f"/proc/self/cwd/{roundabout}",
        "doubled slashes": MUNGE.replace("/", "//./"),
    }
    return [
        Act("munge", ("/usr/bin/munge", "-n")),
        Act("munge, a copy", (str(project / "munge"), "-n")),
        *(Act(f"munge, {name}", ("/usr/bin/munge", "-n", f"--socket={path}")) for name, path in named.items()),
        *(Act(f"connect, {name}", python(CONNECT, path)) for name, path in named.items()),
        Act("connect, by the open directory", python(BY_DIRECTORY, MUNGE)),
        Act("connect, from the directory", python(FROM_THE_DIRECTORY, MUNGE)),
        Act("munge, a relay of one's own", python(RELAY, MUNGE, str(project / "relay"))),
        Act("connect, an abstract relay outside", python(CONNECT, abstract)),
        Act("a key that is readable by mistake", ("/bin/cat", "/etc/munge/readable.key")),
        Act("slurm.conf", ("/bin/cat", "/etc/slurm/slurm.conf")),
        Act("the socket of a running job", python(CONNECT, str(stepd))),
    ]


def bring_along(site: Site) -> None:
    """What an agent may have put into the project before."""
    project = site.jail.project
    for program in ("sbatch", "scontrol", "munge"):
        copied = site.jail.write(project / program, mode=0o755)
        copied.write_bytes(Path(need(program)).read_bytes())
    site.jail.write(project / "slurm.conf", (site.slurm.places.etc / "slurm.conf").read_text())
    shutil.copy(site.slurm.places.etc / "cgroup.conf", project)
    (project / "link").symlink_to(MUNGE)
    (project / "links").symlink_to(Path(MUNGE).parent)
    key = site.slurm.places.key / "readable.key"
    key.write_text("hunter2")
    key.chmod(0o644)


@contextlib.contextmanager
def running_job(site: Site) -> Iterator[Path]:
    """The socket on which the step of a running job of the user's listens."""
    job = site.slurm.submit(site.jail.user, "--output=/dev/null", "--wrap=sleep 100")
    try:
        wait_for(lambda: bool(sockets(site, job)), "a step of the job")
        yield sockets(site, job)[0]
    finally:
        site.slurm.run(site.jail.user, "scancel", str(job))


def sockets(site: Site, job: int) -> list[Path]:
    return [path for path in site.slurm.places.spool.glob(f"*_{job}.*") if path.is_socket()]


@contextlib.contextmanager
def abstract_listener() -> Iterator[str]:
    """A service outside, such as a relay to munge would be."""
    name = f"@agent-sandbox-munge-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name.replace("@", "\0"))
        listener.listen(64)  # a connect needs no accept
        yield name


def try_all(site: Site, acts: list[Act], options: tuple[str, ...] | None) -> dict[str, tuple[bool, str]]:
    """How each act ended: inside with `options`, outside without."""
    patience = {"patience": 30} if options is None else {}
    command = (PYTHON, "-I", str(site.jail.project / "acts.py"), json.dumps([asdict(act) | patience for act in acts]))
    done = site.outside(*command) if options is None else site.inside(*command, options=options)
    assert done.code == 0, done.err
    return {name: (worked, said) for name, (worked, said) in json.loads(done.out).items()}


def jobs(site: Site) -> set[str]:
    return set(site.slurm.run(site.jail.user, "squeue", "--noheader", "--states=all", "--format=%i", "--me").stdout.split())


@pytest.mark.parametrize(("network", "chaperon"), [("isolated", "off"), ("open", "off"), ("open", "auto")])
@pytest.mark.parametrize("backend", BACKENDS)
def test_slurm_and_munge_are_out_of_reach(site: Site, backend: str, network: str, chaperon: str) -> None:
    """With a chaperon, which answers in the place of Slurm's own programs, as well as without one."""
    bring_along(site)
    site.jail.configure(f'[slurm]\nenabled = "{chaperon}"\n')
    project = site.jail.project
    site.jail.write(project / "acts.py", ACTS.read_text())
    own = Act("a socket of one's own", python(OWN_SOCKET, str(project / "own")))
    with running_job(site) as stepd, abstract_listener() as abstract:
        real = [act for act in commands(project) if chaperon == "off" or act.argv[0].startswith(str(project))]
        acts = [*real, *credentials(project, stepd, abstract), own]
        before = jobs(site)
        inside = try_all(site, acts, ("--backend", backend, "--network", network))
        assert jobs(site) == before
        outside = try_all(site, acts, None)
    assert {name: said for name, (worked, said) in outside.items() if not worked} == {}
    assert {name: said for name, (worked, said) in inside.items() if worked} == {own.name: ""}
    assert inside.keys() == outside.keys() == {act.name for act in acts}
    assert len(jobs(site)) - len(before) == (5 if chaperon == "off" else 1)  # four of sbatch, one of them by a copy, and one of srun


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_variable_brings_the_cluster_in(site: Site, backend: str) -> None:
    given = {"SLURM_CONF": "/etc/slurm/slurm.conf", "SLURM_JWT": "hunter2", "SLURM_CONFIG_DIR": "/etc/slurm", "MY_SLURM_JWT": "hunter2"}
    seen = ("/bin/sh", "-c", "env | grep -E 'SLURM_(CONF|JWT)'; echo ran")
    assert len(site.outside(*seen, env=given).out.splitlines()) == 5
    assert site.inside(*seen, options=("--backend", backend), env=given).out == "ran\n"


@pytest.mark.parametrize("backend", BACKENDS)
def test_control_munge_works_inside_where_its_socket_is_granted(site: Site, backend: str) -> None:
    """So it is the socket that is out of reach, and not the program that does not run."""
    site.jail.configure(f'[sockets]\nallow = ["{MUNGE}"]\n[filesystem]\nreveal = ["/run/munge"]\n')
    inside = site.inside("/usr/bin/munge", "-n", options=("--backend", backend))
    assert (inside.code, inside.out[:6]) == (0, "MUNGE:"), inside.err
