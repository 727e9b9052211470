"""A session submits, the node breaks, and the session looks: the job ends with a named reason in its log and in the views, and never runs bare.

The session is on the machine as it is; the node is where the cluster's daemons are, a mount namespace of their own in which things are missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.jail import ADMIN_DIR, Jail, Result
from tests.machines.slurm.cluster import Slurm, cluster
from tests.machines.slurm.keeper import wait_for

JOB = """#!/bin/bash
touch "{project}/mark" "{home}/mark"
echo "ran ${{AGENT_SANDBOX-bare}}"
"""
VIEWS = ("scontrol show job {job}", "sacct -j {job}", "squeue -t all -j {job}", "sacct -X -n -P -j {job} -o jobid", "squeue -h -t all -o %i -j {job}")
FIREJAIL = 'locked = ["sandbox.backend"]\n[sandbox]\nbackend = "firejail"\n'
ADMIN = f'mkdir -p /app && mount -t tmpfs -o mode=755 none /app && mkdir -p {ADMIN_DIR} && printf %s "$1" > {ADMIN_DIR}/config.toml'


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    slurm: Slurm
    jail: Jail

    @property
    def state(self) -> Path:
        return self.jail.user.home / ".local/state/agent-sandbox"

    @property
    def marks(self) -> list[str]:
        """Where the script left one: it does in the project, also in a jail, and at home where it runs bare."""
        home = self.jail.user.home
        return [str(path.relative_to(home)) for path in sorted(home.rglob("mark"))]

    def inside(self, line: str) -> Result:
        return self.jail.run("/bin/bash", "-c", line, env={"SLURM_CONF": self.slurm.environment["SLURM_CONF"]})

    def submit(self, *words: str) -> int:
        done = self.inside(f"sbatch --parsable --hold {' '.join(words)} job.sh")
        assert (done.code, done.err) == (0, ""), done
        return int(done.out)

    def end(self, job: int) -> str:
        """The log of the job, let go from inside."""
        release = ("scontrol", "release", str(job))
        is_gone = self.jail.project.is_symlink()  # for the session too
        assert (self.slurm.run(self.jail.user, *release).returncode if is_gone else self.inside(" ".join(release)).code) == 0
        self.slurm.wait(job, 30)
        uid = self.jail.user.uid
        wait_for(lambda: not [pid for pid in users.processes() if users.owner(pid) == uid and users.state(pid) != "Z"], "the last process")
        logs = [path.read_text() for path in self.state.glob(f"jobs/*/{job}.log")]
        return "".join(logs)

    def seen(self, job: int) -> dict[str, str]:
        """What each view says on stderr, asked from inside, once accounting has the end of the job."""
        ended = ("sacct", "-n", "-X", f"--user={self.jail.user.name}", f"--jobs={job}", "--format=state")
        wait_for(lambda: self.slurm.run(self.jail.user, *ended).stdout.strip() in ("FAILED", "COMPLETED"), "accounting")
        return {view: self.inside(view.format(job=job)).err for view in VIEWS}

    def on_the_node(self, script: str, *words: str | Path) -> None:
        enter = ("/usr/bin/nsenter", f"--mount=/proc/{self.slurm.keeper}/ns/mnt", "--", "/bin/sh", "-ec", script, "sh")
        subprocess.run((*enter, *map(str, words)), check=True)


@pytest.fixture(scope="module")
def breakable() -> Iterator[Slurm]:
    with cluster(f"{os.getpid()}f") as running:
        yield running


@pytest.fixture
def project(user: users.TestUser) -> Path:
    """Below a directory that can be hidden from the node."""
    path = user.home / "work" / "project"
    for made in (path.parent, path):
        made.mkdir()
        os.chown(made, user.uid, user.gid)
    return path


@pytest.fixture
def ground(breakable: Slurm, jail: Jail) -> Iterator[Ground]:
    breakable.allow(jail.user)
    jail.configure('[slurm]\nenabled = "on"\n[sandbox]\nbackend = "bwrap"\n')
    jail.write(jail.project / "job.sh", JOB.format(project=jail.project, home=jail.user.home))
    given = Ground(slurm=breakable, jail=jail)
    yield given
    restore(given)


def restore(ground: Ground) -> None:
    if ground.jail.project.is_symlink():
        ground.jail.project.unlink()
        (ground.jail.project.parent / "away").rename(ground.jail.project)
    ground.on_the_node('for p in "$@" /app; do while umount "$p" 2>/dev/null; do :; done; done', *broken(ground))


def broken(ground: Ground) -> list[Path]:
    """Every place that a fault is mounted on."""
    jail = ground.jail
    programs = [Path(os.path.realpath(f"/usr/bin/{name}")) for name in ("bwrap", "firejail", "python3")]
    return [*programs, jail.copy / "lib", jail.project.parent, jail.user.home / ".local"]


def hide(path: Callable[[Ground], Path]) -> Callable[[Ground], None]:
    return lambda ground: ground.on_the_node('mount -t tmpfs -o mode=755 none "$1"', path(ground))


def cover(path: str, by: str) -> Callable[[Ground], None]:
    return lambda ground: ground.on_the_node('mount --bind "$1" "$2"', by, os.path.realpath(path))


def other_launcher(change: str) -> Callable[[Ground], None]:
    """One that is installed on the node, and is not the session's."""

    def apply(ground: Ground) -> None:
        old = ground.jail.copy.parent / f"old{os.getpid()}"
        shutil.rmtree(old, ignore_errors=True)
        shutil.copytree(ground.jail.copy / "lib", old, symlinks=True)
        for cache in old.rglob("__pycache__"):
            shutil.rmtree(cache)
        subprocess.run(("/bin/sh", "-ec", change), cwd=old / "agent_sandbox/chaperon", check=True)
        ground.on_the_node('mount --bind "$1" "$2"', old, ground.jail.copy / "lib")

    return apply


def admin(text: str) -> Callable[[Ground], None]:
    return lambda ground: ground.on_the_node(ADMIN, text)


def both(*faults: Callable[[Ground], None]) -> Callable[[Ground], None]:
    return lambda ground: [fault(ground) for fault in faults] and None


def no_fault(ground: Ground) -> None:
    """The job's own."""


def link_project(ground: Ground) -> None:
    """Somebody who can write above it, such as an agent whose project that is."""
    project = ground.jail.project
    project.rename(project.parent / "away")
    project.symlink_to(ground.jail.write(ground.jail.user.home / "precious" / "x").parent)


def forget_variables(ground: Ground) -> None:
    for path in ground.state.glob("jobs/*/*.env"):
        path.unlink()


FAULTS: dict[str, tuple[Callable[[Ground], None], str]] = {
    "no launcher": (hide(lambda ground: ground.jail.copy / "lib"), "no usable launcher at "),
    "no interpreter": (cover("/usr/bin/python3", "/dev/null"), "was not started"),
    "an older launcher": (other_launcher("sed -i 's/^FORMAT = 1/FORMAT = 0/' envelope.py"), "another version of agent-sandbox (format 1, here 0)"),
    "a launcher without jobs": (other_launcher("rm node.py"), "no usable launcher at "),
    "a launcher that knows less": (other_launcher("sed -i '/^    umask: int/d' envelope.py"), "umask"),
    "a launcher with a mistake": (other_launcher("sed -i 's/^def open_case/def open_no_case/' node.py"), "open_case"),
    "bwrap does nothing": (cover("/usr/bin/bwrap", "/bin/false"), "bwrap"),
    "bwrap cannot be run": (cover("/usr/bin/bwrap", "/dev/null"), "bwrap"),
    "projects elsewhere": (admin('[project]\nparents = ["/scratch"]\n'), "project.parents"),
    "an admin's mistake": (admin("[filesystem\n"), f"{ADMIN_DIR}/config.toml"),
    "another backend, which is not there": (both(admin(FIREJAIL), cover("/usr/bin/firejail", "/dev/null")), "firejail"),
    "a link for a project": (link_project, "the project is not the directory that it was"),
    "an output that cannot be opened": (no_fault, "the job's output file '/nonexistent/x': No such file or directory"),
    "no project": (hide(lambda ground: ground.jail.project.parent), "the project does not exist, or cannot be reached"),
    "no variables": (forget_variables, "the job's variables cannot be read"),
    "no state": (hide(lambda ground: ground.jail.user.home / ".local"), "was not started"),
}


# Nothing of ours was there to write. Slurm writes why it could not start our part; where there is no place for a log it only says
# that it could not launch the job, and where the answer shows that, the reason follows.
UNLOGGED = ("no state", "no interpreter")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_job_on_a_node_with_a_fault_is_not_started_and_says_why(ground: Ground, fault: str) -> None:
    break_it, reason = FAULTS[fault]
    job = ground.submit("--output=/nonexistent/x" if break_it is no_fault else "")
    break_it(ground)
    log = ground.end(job)
    restore(ground)
    assert (ground.slurm.job(job)["JobState"], ground.marks) == ("FAILED", [])
    assert (reason in log) or fault in UNLOGGED, log
    told = ground.seen(job)
    silent = [view for view, said in told.items() if reason not in said or "was not started" not in said]
    assert silent == ([view for view in VIEWS if "jobid" in view or "%i" in view] if fault == "no state" else [])


def test_control_the_same_job_runs_jailed_on_a_node_without_a_fault_and_bare_without_us(ground: Ground) -> None:
    job = ground.submit()
    assert "was not started" not in ground.end(job)
    assert (ground.jail.project / f"slurm-{job}.out").read_text() == "ran 1\n"
    assert ground.marks == ["work/project/mark"]
    assert set(ground.seen(job).values()) == {""}
    direct = ground.slurm.submit(ground.jail.user, "job.sh", cwd=ground.jail.project)
    ground.slurm.wait(direct)
    assert ground.marks == ["mark", "work/project/mark"]


@pytest.mark.parametrize(
    ("text", "told"),
    [(FIREJAIL, "sandbox.backend"), ('[filesystem]\nhidden = ["PROJECT/secret"]\n', ""), ('[slurm]\nenabled = "off"\n', "slurm.enabled")],
    ids=["another backend", "a hidden path", "no Slurm"],
)
def test_a_stricter_admin_of_the_node_counts_and_what_was_put_back_is_told(ground: Ground, text: str, told: str) -> None:
    project = ground.jail.project
    ground.jail.write(project / "secret", "hunter2\n")
    ground.jail.write(project / "job.sh", "#!/bin/bash\ncat secret\nsqueue >/dev/null && echo squeue\necho ran $AGENT_SANDBOX\n")
    outputs = []
    for is_strict in (False, True):
        job = ground.submit()
        if is_strict:
            admin(text.replace("PROJECT", str(project)))(ground)
        log = ground.end(job)
        outputs.append((project / f"slurm-{job}.out").read_text())
    assert outputs[0] == "hunter2\nsqueue\nran 1\n"
    assert outputs[1].endswith("ran 1\n")
    assert told in log
    assert (outputs[1] != outputs[0]) == (text != FIREJAIL)


def test_every_task_of_an_array_is_jailed_or_none(ground: Ground) -> None:
    job = ground.submit("--array=0-2", "--requeue")
    cover("/usr/bin/bwrap", "/bin/false")(ground)
    assert ground.inside(f"scontrol release {job}").code == 0
    wait_for(lambda: not ground.slurm.run(ground.jail.user, "squeue", "-h", "-j", str(job)).stdout, "the tasks")
    restore(ground)
    assert ground.marks == []
    assert len([path for path in ground.state.glob("jobs/*/*.log") if "was not started" in path.read_text()]) == 3
    assert "was not started" in ground.inside(f"sacct -j {job}").err
