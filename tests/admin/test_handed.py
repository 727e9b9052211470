"""A strict bot's owner against its rule: what is handed over is made up, and still nothing runs as the bot without a jail."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.site import Machine, machine

PROJECT = "/home/alice/work"
ADMIN = "/app/lib/agent-sandbox"
# The person's side as it is installed, but for what it hands over: `change` is done to that first.
FORGE = """
import glob, json, sys
(here,) = glob.glob("/usr/local/lib/agent-sandbox/versions/*")
sys.path.insert(0, f"{here}/lib")
sys.argv[0], change = f"{here}/bin/agent-sandbox", sys.argv.pop(1)
from agent_sandbox.admin.bots import launch
from agent_sandbox.launcher.__main__ import main
attend = launch.attend

def attend_forged(words, environment, frame, *more):
    said = json.loads(frame[8:])
    known = {"said": said, "settings": said["settings"], "content": None}
    exec(change, known)
    content = known["content"] or json.dumps(said).encode()
    return attend(words, environment, len(content).to_bytes(8, "big") + content, *more)

launch.attend = attend_forged
sys.exit(main())
"""
SAYS_WHO = "#!/bin/sh\nid -un >/home/alice/marks/ran-$$\necho a-secret-of-some-length\n"


@pytest.fixture(scope="module")
def strict(local: Path) -> Iterator[Machine]:
    """Everybody can write into /home/alice/marks, which no jail shows: a file in it was made outside."""
    with machine(local) as site:
        site.add_person("alice")
        site.must("init")
        site.must("create", "clio", "--strict")
        site.shell(f"mkdir {PROJECT} slurm slurm/bin marks && chmod 777 marks", user="alice", cwd="/home/alice")
        site.must("share", "-r", PROJECT)
        site.shell("setfacl -m g:bot:rwx marks; setfacl -R -m g:bot:rx slurm", user="alice", cwd="/home/alice")
        (site.root / "tmp/forge.py").write_text(FORGE)
        for path in ("bin/sbatch", "bin/squeue", "bin/sinfo", "says-who"):
            (site.root / "home/alice/slurm" / path).write_text(SAYS_WHO)
            (site.root / "home/alice/slurm" / path).chmod(0o755)
        yield site


def forged(site: Machine, change: str, *command: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    words = ("/usr/bin/python3", "-I", "/tmp/forge.py", change, "--bot", "clio", "--quiet", *options, "--", *command)
    return site.run(*words, user="alice", cwd=PROJECT)


def ran_outside(site: Machine) -> list[str]:
    return [f"{path.name}: {path.read_text()}" for path in (site.root / "home/alice/marks").iterdir()]


def test_what_is_handed_over_unchanged_runs_in_a_jail(strict: Machine) -> None:
    done = forged(strict, "pass", "sh", "-c", "id -un; echo $AGENT_SANDBOX; touch /home/alice/marks/made")
    assert (done.returncode, done.stdout) == (1, "clio\n1\n"), done.stderr
    assert ran_outside(strict) == []
    assert strict.run("/usr/bin/touch", "/home/alice/marks/x", user="clio").returncode == 0  # without a jail it can
    (strict.root / "home/alice/marks/x").unlink()


def test_a_slurm_of_the_owners_is_not_run_as_the_bot(strict: Machine) -> None:
    change = "settings['slurm.prefix'] = '/home/alice/slurm'; settings['slurm.enabled'] = 'auto'"
    done = forged(strict, change, "sh", "-c", "id -un; squeue; sinfo; true")
    assert (done.returncode, done.stdout.startswith("clio\n")) == (0, True), done.stderr
    assert ran_outside(strict) == []


def test_a_command_for_a_credential_is_not_run_as_the_bot(strict: Machine) -> None:
    text = "x=host api.example.com\\nheader Authorization: Bearer {secret}\\ncommand /home/alice/slurm/says-who"
    done = forged(strict, f"settings['network.inject'] = [['{text}', 3]]", "id", "-un", options=("--network", "proxied"))
    assert (done.returncode, done.stdout, "does nothing without a jail" in done.stderr) == (125, "", True), done.stderr
    assert ran_outside(strict) == []


def test_a_credential_of_the_admins_works_for_a_strict_bot(strict: Machine) -> None:
    fields = ('name = "x"', 'host = "api.example.com"', 'header = "Authorization: Bearer {secret}"', 'command = ["/bin/echo", "long-enough"]')
    table = "\n".join(("[[network.inject]]", *fields, ""))
    strict.shell(f"mkdir -p {ADMIN}")
    try:
        (strict.root / ADMIN[1:] / "config.toml").write_text(table)
        done = forged(strict, "pass", "id", "-un", options=("--network", "proxied"))
        assert (done.returncode, done.stdout, done.stderr) == (0, "clio\n", ""), done.stderr
    finally:
        strict.shell(f"rm -r {ADMIN}")


WRONG = {
    "deeper than JSON is read": "content = b'[' * 200000",
    "no table": "content = b'[]'",
    "a path that is no path": r"said['project'] = said['asked'] = '/\ud800'",
    "a variable that is none": r"said['environment'] = {'A\ud800': 'b'}",
    "a variable with an end in it": r"said['environment'] = {'A\0': 'b'}",
    "numbers for texts": "settings['environment.set'] = [[5, 1]]",
    "a rank that is none": "settings['filesystem.hidden'] = [['/a', 99]]",
    "an unknown key": "settings['sandbox.none'] = True",
}  # fmt: skip


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_nonsense_is_refused_in_words(strict: Machine, change: str) -> None:
    done = forged(strict, change, "id", "-un")
    assert (done.returncode, done.stdout, "cannot be used: " in done.stderr, "Traceback" in done.stderr) == (125, "", True, False), done.stderr


def test_a_path_that_the_site_keeps_names_no_slurm_of_the_owners(strict: Machine) -> None:
    """Not every site's sudo chooses the PATH itself."""
    keep = "Defaults !secure_path\nDefaults env_keep += \"PATH SLURM_CONF PYTHONPATH\"\n"
    (strict.root / "etc/sudoers.d/zz-site").write_text(keep)
    script = FORGE.replace("attend(words, environment", "attend(words, {**environment, 'PATH': '/home/alice/slurm/bin:/usr/bin:/bin'}")
    (strict.root / "tmp/forge-path.py").write_text(script)
    words = ("/usr/bin/python3", "-I", "/tmp/forge-path.py", "pass", "--bot", "clio", "--quiet", "--", "sh", "-c", "id -un; squeue; sinfo; true")
    try:
        done = strict.run(*words, user="alice", cwd=PROJECT)
    finally:
        (strict.root / "etc/sudoers.d/zz-site").unlink()
    assert (done.returncode, done.stdout.startswith("clio\n")) == (0, True), done.stderr
    assert ran_outside(strict) == []
