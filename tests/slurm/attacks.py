"""Attacks as data: lines of shell that an agent runs in its jail and, as the control, a person outside, and what came of each.

Every attack has a directory of its own in the project and a file outside, `$T`, that only the attack would make. The script that most of
them submit, `$S`, tries to read a key and to write outside, and leaves a report that says whether it was jailed, by the kernel's word.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machines.jail import Result
from tests.machines.needs import need
from tests.machines.slurm.keeper import wait_for
from tests.slurm.conftest import Site

# The job ran jailed; it could not open its files; nothing was submitted, and somebody said why; or nobody did.
JAILED, CLOSED, REFUSED, NOTHING = "jailed", "closed", "refused", "nothing"
SECRET = "PRIVATE KEY hunter2"
NOT_OPENED = {"53:0", "125:0"}  # of a job whose files, or whose directory, could not be opened
PLUGINS = "/usr/lib/x86_64-linux-gnu/slurm-wlm"
SUBMITTED = re.compile(r"^Submitted batch job (\d+)$", re.MULTILINE)
SLOT = b"/the/file/outside" + b"/" * 239
FUNCTIONS = r"""
j() { printf '#!/bin/bash\n%b\nexec bash "%s"\n' "$1" "$S" > job.sh; }
held() { J=$(sbatch --parsable --hold "$@"); echo "Submitted batch job $J"; }
go() { scontrol release "$J"; }
"""
DRIVER = """
import json, os, subprocess, sys
ended = []
for line, cwd, values in json.load(open(sys.argv[1])):
    done = subprocess.run(["/bin/bash", "-c", line], cwd=cwd, env={**os.environ, **values}, stdin=subprocess.DEVNULL, capture_output=True)
    ended.append([done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")])
print(json.dumps(ended))
"""
SCRIPT = """#!/bin/bash
cd {reports}
state=$(sed -n 's/^\\(NoNewPrivs\\|Seccomp\\):\\t//p' /proc/self/status | tr '\\n' ' ')
{{ echo "$state${{AGENT_SANDBOX-bare}}"; cat {key}; echo x > {outside} && echo wrote; }} > $SLURM_JOB_ID 2>&1
"""
MODULES = ("sitecustomize", "usercustomize", "os", "zlib", "marshal", "binascii", "_signal", "encodings/__init__", "agent_sandbox/__init__")
IN_A_JAIL, BARE = "1 2 1", "0 0 bare"  # what the kernel says of a process in a jail, and of one outside
LIBRARY = """
#include <fcntl.h>
#include <unistd.h>
static const char path[] = "%s";
__attribute__((constructor)) static void run(void) { close(open(path, O_WRONLY | O_CREAT, 0600)); }
"""


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    line: str
    expected: str = JAILED
    works: bool = True  # outside, with Slurm alone, the file is made or the key comes out
    said: str = ""  # by a refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    attack: Attack
    code: int
    out: str
    err: str
    jobs: tuple[int, ...]
    reports: tuple[str, ...]  # first lines
    codes: tuple[str, ...]
    reached: bool

    @property
    def became(self) -> str:
        """One of the four words, or what happened instead."""
        if self.jobs and all(report == IN_A_JAIL for report in self.reports) and len(self.reports) == len(self.jobs):
            return JAILED
        if self.jobs and not self.reports and set(self.codes) <= NOT_OPENED:
            return CLOSED
        if not self.jobs and self.code and self.attack.said in self.err:
            return REFUSED if self.err else NOTHING
        return f"{self.code} {self.out!r} {self.err!r} jobs {self.jobs} {self.codes} reports {self.reports}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The place where attacks are tried: a site with a key, hostile files, and a directory outside."""

    site: Site

    @property
    def project(self) -> Path:
        return self.site.jail.project

    @property
    def outside(self) -> Path:
        return self.site.jail.user.home / "outside"

    @property
    def key(self) -> Path:
        return self.site.jail.user.home / ".ssh/id_ed25519"

    def prepare(self) -> None:
        jail = self.site.jail
        jail.configure('[slurm]\nenabled = "on"\n')
        jail.write(self.key, f"{SECRET}\n", 0o600)
        jail.write(self.outside / "x").unlink()
        jail.write(self.project / "reports" / "x").unlink()
        jail.write(self.project / "slurm.conf", (self.site.slurm.places.etc / "slurm.conf").read_text())
        jail.write(self.project / "multi", "0 touch /x\n")
        places = {"reports": self.project / "reports", "key": self.key, "outside": self.outside / "body"}
        jail.write(self.project / "s.sh", SCRIPT.format(**{name: shlex.quote(str(path)) for name, path in places.items()}), 0o755)

    def run(self, attacks: Sequence[Attack], *, jailed: bool) -> list[Outcome]:
        """All of them, one after the other, in one jail or in none; then until the last job has ended."""
        for number, attack in enumerate(attacks):
            self._plant(number, attack)
        orders = [(attack.line, self._room(number), self._values(number)) for number, attack in enumerate(attacks)]
        ended = drive(self.site, orders, jailed=jailed)
        self.settle()
        return [self._outcome(number, attack, how) for number, (attack, how) in enumerate(zip(attacks, ended, strict=True))]

    def settle(self) -> None:
        user = self.site.jail.user
        wait_for(lambda: not self.site.slurm.run(user, "squeue", "-h", "--me").stdout, "the last job", 120)

    def _room(self, number: int) -> Path:
        return self.project / f"a{number}"

    def _target(self, number: int) -> Path:
        return self.outside / f"t{number}"

    def _other(self, number: int) -> Path:
        """In another project of the user's, where an agent may have been before."""
        return self.site.jail.user.home / f"other{number}"

    def _values(self, number: int) -> dict[str, str]:
        """What the lines speak of."""
        values = {"T": self._target(number), "P": self.project, "S": self.project / "s.sh", "K": self.key, "E": self._room(number) / "evil"}
        up = os.path.relpath(self._target(number), self._room(number))
        return {**{name: str(path) for name, path in values.items()}, "UP": up, "O": str(self._other(number)), "PLUGINS": PLUGINS}

    def _plant(self, number: int, attack: Attack) -> None:
        """Files that make the target wherever one of them is run, sourced, loaded or imported. They know its path themselves."""
        jail, evil, target = self.site.jail, self._room(number) / "evil", shlex.quote(str(self._target(number)))
        jail.write(evil / "x").unlink()
        if "$E" not in attack.line and "$O" not in attack.line:
            return
        jail.write(evil / "plugins" / "x").unlink()
        jail.write(evil / "source", f"echo x >> {target}\n", 0o755)
        for name in ("python3", "bwrap", "firejail", "env", "bash", "sh", "sbatch", "squeue", "newuidmap", "true"):
            for place in (evil / "bin", self._other(number)):
                jail.write(place / name, f'#!/bin/bash -p\necho x >> {target}\nexec /usr/bin/{name} "$@"\n', 0o755)
        for name in MODULES:
            jail.write(evil / "modules" / f"{name}.py", f"import posix\nposix.close(posix.open({str(self._target(number))!r}, 65, 384))\n")
        library = jail.write(evil / "library.so", mode=0o755)
        library.write_bytes(compiled(self.project).replace(SLOT, os.fsencode(self._target(number)).ljust(len(SLOT), b"\0")))

    def _outcome(self, number: int, attack: Attack, how: Result) -> Outcome:
        jobs = tuple(int(found) for found in SUBMITTED.findall(how.out))
        reports = [self.project / "reports" / str(job) for job in jobs]
        written = [path.read_text(errors="replace") for path in self._room(number).iterdir() if path.is_file() and not path.is_symlink()]
        return Outcome(
            attack=attack, code=how.code, out=how.out, err=how.err, jobs=jobs, reports=tuple(text_of(path) for path in reports if path.exists()),
            codes=tuple(self.site.slurm.job(job)["ExitCode"] for job in jobs),
            reached=os.path.lexists(self._target(number)) or any(SECRET in text for text in (how.out, how.err, *written)),
        )  # fmt: skip

    def everything_written(self) -> str:
        """In the project, but for what was planted."""
        return "".join(path.read_text(errors="replace") for path in self.project.rglob("*") if path.is_file() and not path.is_symlink())

    def clear(self) -> None:
        for path in (*self.outside.iterdir(), *self.project.glob("a[0-9]*"), *(self.project / "reports").iterdir()):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def drive(site: Site, orders: Sequence[tuple[str, Path, Mapping[str, str]]], *, jailed: bool) -> list[Result]:
    """Lines of shell, each with its directory and its variables, one after the other in one jail or in none."""
    jail = site.jail
    packed = jail.write(jail.project / "orders.json", json.dumps([(FUNCTIONS + line, str(cwd), dict(values)) for line, cwd, values in orders]))
    command = ("/usr/bin/python3", "-I", jail.write(jail.project / "driver.py", DRIVER), packed)
    done = site.inside(*command, options=()) if jailed else site.outside(*command)
    assert done.code == 0, done.err
    return [Result(code=code, out=out, err=err) for code, out, err in json.loads(done.out)]


def text_of(report: Path) -> str:
    """Its first line; the whole of it where the script got out."""
    first, _, rest = report.read_text(errors="replace").partition("\n")
    return f"{first} {rest}" if SECRET in rest or "wrote" in rest else first


def compiled(project: Path) -> bytes:
    """A library that makes a file when it is loaded; where its path goes is filled in later."""
    path = project.parent / "library.so"
    if not path.exists():
        source = LIBRARY % SLOT.decode()
        subprocess.run((need("gcc"), "-shared", "-fPIC", "-O1", "-o", path, "-x", "c", "-"), input=source.encode(), check=True)
    return path.read_bytes()


