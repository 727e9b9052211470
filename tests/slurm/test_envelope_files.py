"""A job's files: named as Slurm names them, opened inside the jail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_sandbox.chaperon.outputs import Files
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.slurm.cluster import Slurm
from tests.slurm.envelopes import Envelopes

PRECIOUS = "precious\n"


@pytest.fixture
def envelopes(slurm: Slurm, member: users.TestUser, jail: Jail) -> Iterator[Envelopes]:
    given = Envelopes(slurm=slurm, jail=jail, settings={})
    yield given
    given.settle()


def asked(output: str = "", error: str = "", input: str = "") -> Files:
    return Files(input=input, output=output, error=error)


def made(project: Path, job: int) -> set[str]:
    """Names of files, the job's number taken out, whatever its width."""
    found = {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()}
    for name in found:
        (project / name).unlink()
    found = {name.replace("4294967294", "<none>").replace(project.parent.name, "<user>") for name in found}  # a small number may be part of them
    widths = sorted({str(job).zfill(width) for width in range(11)}, key=len, reverse=True)
    for one in widths:
        found = {name.replace(one, f"<{len(one) if len(one) > len(str(job)) else 'job'}>") for name in found}
    return found


@pytest.mark.parametrize(
    "pattern",
    [
        "a-%j-%8j-%15j-%A-%8A-%a-%J-%8J-%n-%3n-%t-%2t.o", "b-%N-%5N-%u-%x-%s-%5s.o", "c%%-%%j-%q-%5q-%0j-%-%", "d\\\\%j\\x", "e%5", "f%%%j",
        "sub/%x", "%x",
    ],
)  # fmt: skip
def test_a_pattern_makes_the_file_that_sbatch_makes(envelopes: Envelopes, pattern: str) -> None:
    project = envelopes.jail.project
    envelopes.jail.write(project / "sub" / "x").unlink()
    control = envelopes.directly("#!/bin/sh\n", f"--output={pattern}", "--job-name=na me")
    envelopes.wait(control)
    names = made(project, control)
    done = envelopes.run(envelopes.job("#!/bin/sh\n", name="na me", files=asked(pattern)))
    assert (made(project, done.id), len(names)) == (names, 1), done.log


def test_output_error_and_input_are_separate_files(envelopes: Envelopes) -> None:
    project = envelopes.jail.project
    envelopes.jail.write(project / "in", "given\n")
    envelopes.jail.write(project / "out", "before\n")
    job = envelopes.job("#!/bin/sh\ncat; echo err >&2\n", files=asked("out", "err", "in"))
    envelopes.run(job)
    assert ((project / "out").read_text(), (project / "err").read_text()) == ("given\n", "err\n")
    both = envelopes.job("#!/bin/sh\necho one; echo two >&2; echo three\n", files=asked("out", "./out"))
    envelopes.run(both)
    same = envelopes.job("#!/bin/sh\necho one; echo two >&2; echo three\n", files=asked("out", "out"), open_mode="append")
    envelopes.run(same)
    assert (project / "out").read_text() == "one\ntwo\nthree\n" * 2


def test_what_was_not_asked_for_is_empty_input(envelopes: Envelopes) -> None:
    assert envelopes.run("#!/bin/sh\ncat; readlink /proc/self/fd/0; ls /proc/self/fd | wc -l\n").out == "/dev/null\n4\n"


@pytest.mark.parametrize("way", ["link", "absolute", "dots", "name", "default", "link to a directory", "input"])
def test_a_file_outside_the_jail_is_not_reached(envelopes: Envelopes, way: str) -> None:
    jail = envelopes.jail
    target = jail.write(jail.user.home / "precious" / "file", PRECIOUS)
    plant(jail, target)
    dots = os.path.relpath(target, jail.project)
    ways = {
        "link": (asked("link"), "x"), "absolute": (asked(str(target)), "x"), "dots": (asked(dots), "x"), "name": (asked("%x"), dots),
        "default": (asked(), "x"), "link to a directory": (asked("directory/file"), "x"), "input": (asked(input="link"), "x"),
    }  # fmt: skip
    files, name = ways[way]
    options = [f"--{kind}={value}" for kind, value in files.__dict__.items() if value]
    control = envelopes.directly("#!/bin/sh\ncat; echo written\n", f"--job-name={name}", *options, "--hold")
    if way == "default":
        plant(jail, target, f"slurm-{control}.out")
    envelopes.slurm.run(jail.user, "scontrol", "release", str(control))
    seen = envelopes.wait(control)
    assert PRECIOUS in seen.out if way == "input" else target.read_text() == "written\n"  # the control: Slurm alone gets there
    target.write_text(PRECIOUS)
    job = envelopes.submit(envelopes.job("#!/bin/sh\ncat; echo written\n", name=name, files=files), "--hold")
    if way == "default":
        plant(jail, target, f"slurm-{job}.out")
    envelopes.slurm.run(jail.user, "scontrol", "release", str(job))
    done = envelopes.wait(job)
    assert (target.read_text(), done.code) == (PRECIOUS, "53:0"), done.log
    assert "agent-sandbox: the job's " in done.log
    assert "No such file or directory" in done.log
    assert PRECIOUS not in done.out or way == "default"


def plant(jail: Jail, target: Path, name: str = "link") -> None:
    for path, to in ((jail.project / name, target), (jail.project / "directory", target.parent)):
        if not path.is_symlink():
            path.symlink_to(to)
            os.lchown(path, jail.user.uid, jail.user.gid)
