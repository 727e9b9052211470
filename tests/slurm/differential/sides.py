"""The two sides: the same cases, run directly and through the chaperon, each in directories of its own, against one Slurm."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.machines import users
from tests.machines.copies import PYTHON
from tests.machines.jail import Jail
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for

DIRECT, JAILED = "direct", "jailed"  # names of one length: nothing moves in a column
DRIVER = Path(__file__).parent / "drive.py"
PATIENCE = 300.0
RESTING = {"JobHeldUser", "Dependency", "DependencyNeverSatisfied", "BeginTime", "JobHeldAdmin"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command line, and what it finds where it is run."""

    label: str  # what the table of differences knows it by
    name: str  # of its directory
    line: str
    before: tuple[str, ...] = ()  # submissions; their ids are {0}, {1} in the line
    files: Mapping[str, str] = field(default_factory=dict)
    input: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    umask: int = 0o022


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a case ended, on one side."""

    code: int
    out: str
    err: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    slurm: Slurm
    jail: Jail

    def run(self, side: str, cases: Sequence[Case]) -> list[Ended]:
        """All of them in one go: the jail is launched once."""
        orders = self.jail.write(self.jail.project / f"{side}.json", json.dumps([self._order(side, case) for case in cases]))
        driver = self.jail.write(self.jail.project / "drive.py", DRIVER.read_text())
        command: list[str | Path] = [PYTHON, "-I", driver, orders]
        if side == JAILED:
            command = [self.jail.program, "--quiet", "--", *command]
        argv = self.slurm.at_default_places(self.jail.user, self.jail.project, command)
        done = users.run_as(users.current_user(), argv, env=self.jail.user.environment, cwd=self.jail.project, timeout=PATIENCE)
        assert done.returncode == 0 and not done.stderr, done
        said = json.loads(done.stdout)
        assert said["jailed"] == ("1" if side == JAILED else "")
        return [Ended(**{**ended, "ids": tuple(filter(None, ended["ids"]))}) for ended in said["ended"]]

    def directory(self, side: str, case: Case) -> Path:
        return self.jail.project / side / case.name

    def _order(self, side: str, case: Case) -> dict[str, object]:
        directory = self.directory(side, case)
        for name, text in case.files.items():
            self.jail.write(directory / name, text, 0o755)
        if not directory.exists():
            self.jail.write(directory / "empty").unlink()
        line = case.line.replace("{cwd}", str(directory))
        return {
            "directory": str(directory), "words": shlex.split(line), "before": [shlex.split(line) for line in case.before],
            "input": case.input, "env": dict(case.env), "umask": case.umask,
        }  # fmt: skip

    def settle(self, patience: float = 120) -> None:
        """Until every job of the user's has ended, or waits for something that does not come by itself."""
        wait_for(lambda: all(row in RESTING for row in self._waiting()), "the jobs' ends", patience)

    def _waiting(self) -> Iterable[str]:
        """Why those that are not over do not run; those that do have no such reason."""
        shown = self.slurm.run(users.current_user(), "squeue", "-h", "-r", "-u", self.jail.user.name, "-o", "%T:%r").stdout
        return [row.partition(":")[2] if row.startswith("PENDING:") else "runs" for row in shown.splitlines()]

    def attributes(self, job: str) -> list[dict[str, str]]:
        """What `scontrol show job` says; of an array one entry for each task."""
        shown = self.slurm.run(users.current_user(), "scontrol", "-d", "-o", "show", "job", job).stdout
        return [fields(line) for line in shown.splitlines()]

    def files(self, side: str, case: Case) -> dict[str, tuple[str, str]]:
        """Everything that is in a case's directory: name → mode and content."""
        top = self.directory(side, case)
        found = {}
        for directory, _, names in os.walk(top):
            for name in names:
                path = Path(directory, name)
                content = path.read_bytes().decode("utf-8", "surrogateescape")
                found[str(path.relative_to(top))] = (oct(path.stat().st_mode & 0o777), content)
        return found


def fields(line: str) -> dict[str, str]:
    """`A=1 B=2 C=x y` → its fields. Names of tasks and nodes in the details have spaces before them too, and no value of interest."""
    found: dict[str, str] = {}
    name = ""
    for word in line.split(" "):
        key, equals, value = word.partition("=")
        if equals and key[:1].isupper() and key.replace("_", "").replace(":", "").replace("/", "").isalnum():
            name = key
            found[name] = value
        elif name:
            found[name] += f" {word}"
    return {name: value.strip() for name, value in found.items()}
