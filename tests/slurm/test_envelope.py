"""Envelopes on a real Slurm: the agent's script runs jailed, and otherwise as sbatch would have run it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_sandbox.chaperon.envelope import read_data
from agent_sandbox.launcher.own import PORT
from agent_sandbox.launcher.proxy.variables import variables_for
from tests.escapes.backends import BACKENDS
from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for
from tests.slurm.envelopes import Envelopes, text_of

SECRET = "PRIVATE KEY hunter2"
# Of the job's own number, or ours to say: SLURM_CONF is of no use inside, and the tools of the jail come at both ends of PATH.
OTHERWISE = {"PATH", "SLURM_JOB_NAME", "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_TASK_PID", "SLURM_CONF", "MAIL", "_", "TERM", "SHLVL"}


@pytest.fixture
def envelopes(slurm: Slurm, member: users.TestUser, jail: Jail, backend: str) -> Iterator[Envelopes]:
    given = Envelopes(slurm=slurm, jail=jail, settings={"sandbox.backend": backend} if backend else {})
    yield given
    given.settle()


def reaches_out(jail: Jail) -> str:
    """A script that tries what a jail forbids and says how it went."""
    key, outside = jail.write(jail.user.home / ".ssh/id", SECRET, 0o600), jail.user.home / "outside"
    return f"#!/bin/bash\necho inside=$AGENT_SANDBOX; cat {key}; echo x > {outside}; ls /proc/1/root/ >/dev/null; echo ended\n"


@pytest.mark.parametrize("backend", [*BACKENDS, "firejail"], indirect=True)
def test_a_job_runs_in_the_jail(envelopes: Envelopes) -> None:
    jail = envelopes.jail
    script, outside = reaches_out(jail), jail.user.home / "outside"
    control = envelopes.wait(envelopes.directly(script))
    assert (SECRET in control.out, outside.exists()) == (True, True)
    outside.unlink()
    done = envelopes.run(script)
    assert (done.shown["JobState"], done.code) == ("COMPLETED", "0:0"), done.log
    assert "inside=1\n" in done.out
    assert done.out.endswith("ended\n")
    assert SECRET not in done.out
    assert not outside.exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('#!/bin/bash\necho $# "$@"\n', "3 a b  c $HOME\n"),
        ("#!/usr/bin/python3\nimport sys\nprint(sys.argv[1:])\n", "['a', 'b  c', '$HOME']\n"),
        ("#!/usr/bin/env python3\nimport sys\nprint(sys.argv[2])\n", "b  c\n"),
        ('#!/usr/bin/perl -w\nprint "$^W @ARGV\\n";\n', "1 a b  c $HOME\n"),
        ("#! /bin/sh -eu \necho ran; false; echo on\n", "ran\n"),
    ],
    ids=["bash", "python", "env", "perl", "options"],
)
def test_the_first_line_and_the_arguments_count(envelopes: Envelopes, script: str, said: str) -> None:
    done = envelopes.run(envelopes.job(script, arguments=("a", "b  c", "$HOME")))
    assert done.out == said, done.log


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("#!/bin/sh\nexit 3\n", "3:0"),
        ("#!/bin/sh\nexit 139\n", "139:0"),
        ("#!/bin/sh\nsh -c 'kill -SEGV $$'\n", "139:0"),
        ("#!/usr/bin/python3\nimport os\nos.kill(os.getpid(), 11)\n", "0:11"),
        ("#!/usr/bin/env -S python3 -I\nimport os\nos.kill(os.getpid(), 15)\n", "0:15"),
        ("#!/nonexistent/x\n", "2:0"),
        ("#!/etc/passwd\n", "13:0"),
    ],
)
def test_the_exit_code_is_what_it_is_without_us(envelopes: Envelopes, script: str, code: str) -> None:
    control = envelopes.directly(script)
    done = envelopes.run(script)
    assert (envelopes.wait(control).code, done.code) == (code, code), done.log
    assert (code not in ("2:0", "13:0")) or "the job's interpreter" in done.out


@pytest.mark.parametrize(
    "export",
    [None, "ALL", "NONE", "AA", "ALL,AA=9", "AA=9,ALL", "AA='x,y',BB", "'AA=x,y'", "PATH=/p:/usr/bin:/bin,CC=1"],
)
def test_export_gives_what_sbatch_gives(envelopes: Envelopes, export: str | None) -> None:
    """But for what is ours to say: the jail's own variables, and what a log-in shell adds to a list with ALL in it."""
    given = {"AA": "1", "BB": "line\nbreak", "SLURM_FOO": "f", "LANG": "C.UTF-8"}
    script = "#!/bin/sh\nexec env -0\n"
    control = envelopes.wait(envelopes.directly(script, *([] if export is None else [f"--export={export}"]), environment=given))
    environment = {**envelopes.jail.user.environment, **envelopes.slurm.environment, **given}
    done = envelopes.run(envelopes.job(script, export=export), environment=environment)
    ours, theirs = variables(done.out), variables(control.out)
    if export in ("ALL,AA=9", "AA=9,ALL"):
        theirs = {name: value for name, value in theirs.items() if name in environment or name.startswith(("SLURM", "ENV", "HOST"))}
        theirs.pop("SLURM_GET_USER_ENV")
    own = {"AGENT_SANDBOX": "1", "TMPDIR": "/tmp", "PWD": str(envelopes.jail.project), **variables_for(PORT, {}, "/run/agent-sandbox/node.cjs")}
    assert {name: ours.pop(name, None) for name in own} == own
    differ = {name: (ours.get(name), theirs.get(name)) for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    assert differ.keys() <= OTHERWISE | own.keys(), differ
    assert ours["PATH"].removeprefix("/run/agent-sandbox/stubs:").removesuffix(":/run/agent-sandbox/bin") == theirs["PATH"]
    assert "SLURM_CONF" not in ours


def variables(said: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in said.split("\0") if "=" in entry)


def test_no_variable_reaches_our_part_of_the_job(envelopes: Envelopes) -> None:
    """A file of the agent's that every shell, linker or search for a program outside would run."""
    jail, mark = envelopes.jail, envelopes.jail.user.home / "ran-outside"
    evil = jail.write(jail.project / "evil", f"#!/bin/bash\necho x >> {mark}\n", 0o755)
    for name in ("python3", "bwrap", "env", "bash"):
        (jail.project / "bin" / name).parent.mkdir(exist_ok=True)
        jail.write(jail.project / "bin" / name, f'#!/bin/sh\necho x >> {mark}\nexec /usr/bin/{name} "$@"\n', 0o755)
    preload = {"LD_PRELOAD": "/nonexistent/preload.so", "PYTHONPATH": str(jail.project), "PYTHONSTARTUP": str(evil)}
    hostile = {"BASH_ENV": str(evil), "ENV": str(evil), "PATH": f"{jail.project}/bin:/usr/bin:/bin", **preload}
    export = "ALL," + ",".join(f"{name}={value}" for name, value in hostile.items())
    script = f'#!/bin/bash\necho "$BASH_ENV $AGENT_SANDBOX"; test -e {mark}; echo $?\n'
    envelopes.wait(envelopes.directly(script, f"--export={export}"))
    assert mark.exists()  # the control: outside the file is run
    mark.unlink()
    done = envelopes.run(envelopes.job(script, export=export, arguments=(export,)), environment=hostile)
    assert f"{evil} 1\n" in done.out
    assert "/nonexistent/preload.so" in done.out  # the linker's complaint, inside
    assert "preload" not in done.log
    assert not mark.exists()


def test_a_secret_is_not_in_the_script_that_slurm_keeps(envelopes: Envelopes) -> None:
    job = envelopes.submit("#!/bin/sh\necho $MY_SETTING | rev\n", environment={"MY_SETTING": SECRET})
    done = envelopes.wait(job)
    assert done.out == SECRET[::-1] + "\n"
    kept = envelopes.slurm.run(users.current_user(), "scontrol", "write", "batch_script", str(job), "-").stdout
    assert kept.startswith("#!/usr/bin/python3 -IS\nimport sys\n")
    data = re.search(r'main\("(.*)"\)', kept)
    assert data
    assert SECRET not in repr(read_data(data[1]))


def test_a_large_script_and_many_variables_arrive(envelopes: Envelopes) -> None:
    script = "#!/bin/bash\n" + "true # a line of a script that somebody generated\n" * 60_000 + "echo ${#LARGE}; wc -c < $0\n"
    done = envelopes.run(script, environment={"LARGE": "x" * 100_000})
    assert done.out.split() == ["100000", str(len(script))], (done.out[:500], done.log)


def test_the_working_directory_may_be_below_the_project_and_must_be_there(envelopes: Envelopes) -> None:
    project = envelopes.jail.project
    envelopes.jail.write(project / "sub dir" / "file")
    job = envelopes.job("#!/bin/sh\npwd; echo $PWD; ls; umask\n", cwd=str(project / "sub dir"), umask=0o027)
    done = envelopes.run(job, output="sub dir/slurm-%j.out")
    (made,) = (project / "sub dir").glob("slurm-*")
    assert (made.read_text(), oct(made.stat().st_mode)) == (f"{project}/sub dir\n" * 2 + f"file\n{made.name}\n0027\n", "0o100640")
    gone = envelopes.run(envelopes.job("#!/bin/sh\necho ran\n", cwd=str(project / "gone")))
    assert (gone.code, gone.out) == ("125:0", "")
    assert f"the job's directory '{project}/gone': No such file or directory" in gone.log
    assert done.code == "0:0"


def test_an_array_writes_a_file_for_each_task(envelopes: Envelopes) -> None:
    job = envelopes.submit("#!/bin/sh\necho $SLURM_ARRAY_TASK_ID $AGENT_SANDBOX\n", "--array=1,3")
    files = {task: envelopes.jail.project / f"slurm-{job}_{task}.out" for task in (1, 3)}
    wait_for(lambda: all(text_of(path) for path in files.values()), "the tasks")
    assert {task: text_of(path) for task, path in files.items()} == {1: "1 1\n", 3: "3 1\n"}


def test_a_requeued_job_is_jailed_again_and_can_append(envelopes: Envelopes) -> None:
    job = envelopes.job(f"{reaches_out(envelopes.jail)}echo :$SLURM_RESTART_COUNT ready\nsleep 30\n", open_mode="append")
    number = envelopes.submit(job, "--requeue")
    path = envelopes.jail.project / f"slurm-{number}.out"
    wait_for(lambda: " ready" in text_of(path), "the first run")
    assert envelopes.slurm.run(envelopes.jail.user, "scontrol", "requeue", str(number)).returncode == 0
    wait_for(lambda: envelopes.slurm.job(number)["JobState"] == "PENDING", "its return to the queue")
    assert envelopes.slurm.run(users.current_user(), "scontrol", "update", f"JobId={number}", "StartTime=now+2").returncode == 0
    wait_for(lambda: ":1 ready" in text_of(path), "the second run", 60)
    assert envelopes.slurm.run(envelopes.jail.user, "scancel", str(number)).returncode == 0
    said = text_of(path)
    assert (said.count("inside=1\n"), said.count("ended\n"), SECRET in said) == (2, 2, False)


def test_lines_can_be_followed_as_they_come(envelopes: Envelopes) -> None:
    go = envelopes.jail.project / "go"
    job = envelopes.submit(f'#!/bin/sh\necho first\nwhile ! test -e "{go}"; do sleep 0.05; done\necho second\n')
    path = envelopes.jail.project / f"slurm-{job}.out"
    wait_for(lambda: text_of(path) == "first\n", "the first line")
    assert envelopes.slurm.job(job)["JobState"] == "RUNNING"
    envelopes.jail.write(Path(go))
    assert envelopes.wait(job).out == "first\nsecond\n"


def test_the_network_of_a_job_can_be_stricter_than_the_sessions_and_never_looser(envelopes: Envelopes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = f"#!/bin/bash\n(exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]}) && echo reached\necho ended\n"
        for session, jobs, said in (
            ("open", None, "reached\nended\n"), ("open", "isolated", "ended\n"), ("isolated", "open", "ended\n"),
        ):  # fmt: skip
            settings = {"network.mode": session, **({"slurm.network": jobs} if jobs else {})}
            done = envelopes.run(envelopes.job(script, settings=settings))
            assert done.out.endswith(said) and ("reached" in done.out) == ("reached" in said), (session, jobs, done.out, done.log)
