"""Variables: what the filter takes away is gone everywhere, and what the caller has set reaches no process of ours outside."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.escapes.backends import only
from tests.escapes.inside import PYTHON
from tests.machines.jail import Jail
from tests.machines.needs import need

SECRETS_TEXT = """
MYPASS DB_PASSWD SLACK_WEBHOOK HF_HUB_KEY WANDB_KEY MY_PASSPHRASE STRIPE_SK HUGGING_JWT
GITHUB_TOKEN AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN AZURE_CLIENT_SECRET SSH_AUTH_SOCK SSH_AGENT_PID PGPASSWORD DATABASE_URL KUBECONFIG
VAULT_ADDR DOCKER_AUTH_CONFIG TOKEN PASSWORD SECRET MyPassword some_secret_thing CI_JOB_TOKEN TF_VAR_x VSCODE_IPC_HOOK_CLI
DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR XAUTHORITY DISPLAY TMUX SLURM_JWT SLURM_CONF KRB5CCNAME GPG_AGENT_INFO SENTRY_DSN SESSION_COOKIE
"""
SECRETS = SECRETS_TEXT.split()
EVERYWHERE = "cat /proc/*/environ /proc/*/cmdline /proc/*/task/*/environ | tr '\\0' '\\n'; env; cat ${AGENT_SANDBOX_OWN:-/run/agent-sandbox}/*.json"


def test_secret_variables_are_gone_from_every_process(jail: Jail) -> None:
    values = {name: f"hunter-{os.getpid()}-{name}" for name in SECRETS}  # no other process of the machine has it on its command line
    outside = jail.outside("sh", "-c", EVERYWHERE, env=values).out
    assert all(value in outside for value in values.values())
    inside = jail.run("sh", "-c", EVERYWHERE, env={**values, "KEPT": "kept"})
    assert "KEPT=kept" in inside.out
    assert f"hunter-{os.getpid()}" not in inside.out


@only("bwrap")
def test_the_first_process_has_none_of_the_callers_variables(jail: Jail) -> None:
    inside = jail.run("sh", "-c", "tr '\\0' '\\n' < /proc/1/environ; echo $ORDINARY", env={"ORDINARY": "seen", "MYPASS": "hunter2"})
    assert inside.out == "PATH=/usr/bin:/bin\nseen\n"


def test_nothing_of_a_value_shows_on_a_command_line_outside(jail: Jail, backend: str, home: Path) -> None:
    """Other users of the machine can read those."""
    jail.configure("[environment]\nset = { MINE = 'hunter2' }\n")
    process = jail.start("sh", "-c", "echo $MINE; read go", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == "hunter2\n"
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in children_of(process.pid)]
    process.communicate("go\n", timeout=20)
    assert len(lines) >= 3 and (backend != "bwrap" or any(b"bwrap" in line for line in lines))
    assert [line for line in lines if b"hunter2" in line] == []


def children_of(pid: int) -> list[int]:
    below = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*below, *(deeper for one in below for deeper in children_of(one))]


def test_passwords_in_values_that_pass_are_taken_out(jail: Jail) -> None:
    env = {
        "HTTPS_PROXY": "http://me:hunter2@proxy:3128",
        "PIP_INDEX_URL": "https://__token__:hunter2@host/simple",
        "GIT_URL": "https://ghp_0123456789abcdefhunter2@host/x",
    }
    inside = jail.run("env", options=["--quiet", "--network", "isolated"], env=env)  # with a proxy of ours the variable is ours, too
    assert "HTTPS_PROXY=http://proxy:3128\n" in inside.out
    assert "hunter2" not in inside.out


def test_an_admins_block_beats_a_persons_allow(jail: Jail) -> None:
    admin = {"config.toml": "[environment]\nblock = ['MINE*']\n"}
    env = {"MINE_OWN": "hunter2", "OTHER_KEY": "passes"}
    for allow in (["--env", "MINE_OWN"], ["--env", "*"], ["--set-env", "MINE_OWN=hunter2"]):
        inside = jail.run("env", options=["--quiet", "--env", "OTHER_KEY", *allow], env=env, admin=admin)
        assert "OTHER_KEY=passes" in inside.out
        assert "hunter2" not in inside.out
    assert "hunter2" in jail.run("env", options=["--quiet", "--env", "MINE_OWN"], env=env).out  # control: without an admin


PRELOADED = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void loaded(void)
{
    char name[4096] = {0};
    readlink("/proc/self/exe", name, sizeof name - 1);
    FILE *log = fopen(LOG, "a");
    if (!log) return;
    fprintf(log, "%s %d\n", name, getenv("AGENT_SANDBOX") != 0);
    fclose(log);  /* now: a program that becomes another one, or ends by _exit, writes nothing out */
}
"""


def test_a_preloaded_library_reaches_the_command_and_not_the_backend(jail: Jail) -> None:
    """The interpreter of the launcher itself was loaded with it before a line of ours ran: that is the caller's own doing."""
    log, source = jail.project / "log", jail.write(jail.project / "preloaded.c", PRELOADED)
    library = Path(f"/var/tmp/agent-sandbox-preloaded-{os.getpid()}.so")  # LD_PRELOAD is split at spaces
    subprocess.run([need("gcc"), "-shared", "-fPIC", f'-DLOG="{log}"', "-w", "-o", library, source], check=True)
    library.chmod(0o755)
    try:
        inside = jail.run("/usr/bin/id", "-u", env={"LD_PRELOAD": str(library)}, options=["--quiet", "--ro", library])
    finally:
        library.unlink()
    assert (inside.code, inside.out) == (0, f"{jail.user.uid}\n")
    seen = [line.rsplit(" ", 1) for line in log.read_text().splitlines()]
    programs_outside = {Path(name).name for name, in_jail in seen if in_jail == "0"}
    programs_inside = {Path(name).name for name, in_jail in seen if in_jail == "1"}
    assert "id" in programs_inside
    assert any(name.startswith("python3") for name in programs_outside)  # control: what is loaded outside is seen
    assert {name for name in programs_outside if not name.startswith("python3")} == set()


VERSION = Path(PYTHON).resolve().name  # python3.11
RUN_BY = {
    "BASH_ENV": ("bash", "-c", "true"),
    "PYTHONSTARTUP": (PYTHON, "-i"),
    "PYTHONPATH": (PYTHON, "-c", "import signal, enum, json, planted_module"),
    "PYTHONUSERBASE": (PYTHON, "-c", "pass"),
    "PYTHONHOME": (PYTHON, "-c", "pass"),
}
NAMED = {
    "PYTHONPATH": ("planted_module", "sitecustomize", "usercustomize", "os", "agent_sandbox/__init__", "enum", "signal", "fcntl", "json"),
    "PYTHONUSERBASE": (f"lib/{VERSION}/site-packages/usercustomize", f"lib/{VERSION}/site-packages/sitecustomize"),
    "PYTHONHOME": (f"lib/{VERSION}/encodings/__init__",),
}
# Of built-in parts alone: `encodings` is loaded before there is an open().
TRACE = """
import posix
trace = posix.open("trace", posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o644)
posix.write(trace, b"inside\\n" if b"AGENT_SANDBOX" in posix.environ else b"OUTSIDE\\n")
posix.close(trace)
"""
SHELL_TRACE = "test $AGENT_SANDBOX && echo inside >> trace || echo OUTSIDE >> trace\n"


@pytest.mark.parametrize("name", RUN_BY)
def test_code_named_by_a_variable_runs_inside_alone(jail: Jail, name: str) -> None:
    folder = jail.project / "planted"
    for module in NAMED.get(name, ()):
        jail.write(folder / f"{module}.py", TRACE)
    script = jail.write(jail.project / "start", SHELL_TRACE if name == "BASH_ENV" else TRACE)
    env = {name: str(folder if name in NAMED else script)}
    trace = jail.project / "trace"
    jail.outside(*RUN_BY[name], env=env, input="")
    assert set(trace.read_text().split()) == {"OUTSIDE"}  # control: it works
    trace.unlink()
    inside = jail.run(*RUN_BY[name], env=env, input="")
    assert set(trace.read_text().split()) == {"inside"}, inside


PLANTED = [
    "ctypes",
    "json",
    "sitecustomize",
    "usercustomize",
    "os",
    "signal",
    "tomllib",
    "agent_sandbox",
    "pwd",
    "re",
    "encodings",
    "site",
    "_sha256",
    "resource",
]


def test_modules_planted_in_the_project_are_not_imported_outside(jail: Jail) -> None:
    """The launcher runs in the project directory, and so do its guard and helpers."""
    trace = "import sys; sys.stderr.write('PLANTED ' + __name__)\n"
    for name in PLANTED:
        jail.write(jail.project / f"{name}.py", trace)
        jail.write(jail.project / name / "__init__.py", trace)
    assert "PLANTED" in jail.outside(PYTHON, "-c", "import json, ctypes, tomllib").err  # control: Python looks there
    for words in (
        ["--", "true"],
        ["--dry-run", "--", "true"],
        ["config", "show"],
        ["explain", "filesystem.home"],
        ["doctor"],
        ["audit", "show"],
        ["ps"],
    ):
        asked = jail.ask(*words)
        assert "PLANTED" not in asked.err + asked.out, words


def test_programs_planted_on_the_callers_path_are_not_run_outside(jail: Jail) -> None:
    names = ["bwrap", "env", "id", "getent", "unshare", "python3", "mount", "uname", "hostname", "git", "sh", "newuidmap", "readlink"]
    for name in names:
        jail.write(
            jail.project / "bin" / name, "#!/bin/sh\ntest $AGENT_SANDBOX || echo OUTSIDE >> /proc/self/cwd/trace\n", mode=0o755
        )
    env = {"PATH": f"{jail.project}/bin:/usr/bin:/bin"}
    assert jail.outside("/usr/bin/env", "git", env=env).code == 0
    assert (jail.project / "trace").read_text() == "OUTSIDE\n"  # control
    (jail.project / "trace").unlink()
    for words in (["--quiet", "--", "/bin/true"], ["--dry-run", "--", "/bin/true"], ["doctor"], ["config", "show"]):
        jail.ask(*words, env=env)
    assert not (jail.project / "trace").exists()
