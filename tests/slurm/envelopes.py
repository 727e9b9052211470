"""Envelopes as a test sees them: a job is packed as the chaperon packs it, given to the real sbatch, and looked at when it ended."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_sandbox.chaperon.envelope import Job, Launcher, forced_options, make_script, pack_variables
from agent_sandbox.chaperon.outputs import Files
from agent_sandbox.config.record import replace
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for

PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    id: int
    shown: dict[str, str]  # by scontrol
    out: str  # what the job's own output file says; "" = there is none
    log: str  # what Slurm's own output was

    @property
    def code(self) -> str:
        return self.shown["ExitCode"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelopes:
    slurm: Slurm
    jail: Jail
    settings: Mapping[str, object]

    @property
    def place(self) -> Path:
        """Where logs and variables are, outside every project."""
        return self.jail.user.home / ".local/state/agent-sandbox/jobs/session"

    def job(self, script: str | bytes, **more: Any) -> Job:
        cwd = str(self.jail.project)
        job = Job(
            name="tried", script=script if isinstance(script, bytes) else script.encode(), arguments=(), cwd=cwd, submit_directory=cwd,
            export=None, files=Files(input="", output="", error=""), open_mode="", umask=0o022, project=cwd, session="session",
            settings=self.settings,
        )  # fmt: skip
        return replace(job, **more)

    @property
    def launcher(self) -> Launcher:
        return Launcher(python="/usr/bin/python3", library=str(self.jail.copy / "lib"), entry=str(self.jail.program))

    def submit(
        self, job: Job | str, *options: str, environment: Mapping[str, str] | None = None, launcher: Launcher | None = None
    ) -> int:  # fmt: skip
        whole = job if isinstance(job, Job) else self.job(job)
        file = self.place / f"{time.monotonic_ns()}.env"
        self.jail.write(file, "", 0o600).write_bytes(pack_variables({"PATH": PATH, **(environment or {})}))
        script = make_script(replace(whole, variables=whole.variables or str(file)), launcher or self.launcher)
        forced = [f"--{name}={value}" for name, value in forced_options(str(self.place)).items()]
        words = (f"--job-name={whole.name}", *options, *forced)
        return self.slurm.submit(self.jail.user, *words, cwd=self.jail.project, input=script.decode())

    def directly(self, script: str, *options: str, environment: Mapping[str, str] | None = None) -> int:
        """The control: the same script by sbatch alone."""
        done = users.run_as(
            self.jail.user, ("/usr/bin/sbatch", "--parsable", *options), cwd=self.jail.project, input=script,
            env={**self.slurm.environment, **(environment or {})},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def wait(self, job: int, output: str = "") -> Ended:
        shown = self.slurm.wait(job, 15)
        path = self.jail.project / (output or f"slurm-{job}.out")
        return Ended(id=job, shown=shown, out=text_of(path), log=text_of(self.place / f"{job}.log"))

    def run(
        self, job: Job | str, *options: str, output: str = "", environment: Mapping[str, str] | None = None,
        launcher: Launcher | None = None,
    ) -> Ended:  # fmt: skip
        return self.wait(self.submit(job, *options, environment=environment, launcher=launcher), output)

    def settle(self) -> None:
        """Until nothing of the user's runs: a job that ends writes its last words into a home that the next test has emptied."""
        uid = self.jail.user.uid
        wait_for(lambda: not [pid for pid in users.processes() if users.owner(pid) == uid and users.state(pid) != "Z"], "the last process")


def text_of(path: Path) -> str:
    return os.fsdecode(path.read_bytes()) if path.exists() else ""
