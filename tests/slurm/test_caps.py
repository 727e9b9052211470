"""Caps against a real Slurm, from inside a jail: what is at the cap is submitted, what is one above it is not, in every channel."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.jail import AS_ADMIN, Result
from tests.machines.slurm.settings import ACCOUNTS, PARTITIONS, QOS
from tests.slurm.conftest import Site

ON = '[slurm]\nenabled = "on"\n'
# Runs every case and prints, one a line of JSON, its code and what was said: name, command line, the script's directives, variables.
DRIVER = r"""
import json, os, subprocess, sys
def start(case):
    with open(case["name"] + ".sh", "w") as file:
        file.write("#!/bin/sh\n" + "".join("#SBATCH %s\n" % line for line in case["lines"]) + "sleep 300\n")
    argv = case["argv"] or ["sbatch", *case["words"], case["name"] + ".sh"]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(argv, env={**os.environ, **case["env"]}, stdin=null, stdout=pipe, stderr=pipe, text=True)
for batch in json.loads(sys.argv[1]):
    for case, one in [(case, start(case)) for case in batch]:
        out, err = one.communicate(timeout=120)
        print(json.dumps([case["name"], one.returncode, out, err]))
"""


def case(name: str, words: str = "", lines: str = "", env: dict[str, str] | None = None, argv: str = "") -> dict[str, object]:
    return {"name": name, "words": ["--hold", *words.split()], "lines": [lines] if lines else [], "env": env or {}, "argv": argv.split()}


def run(site: Site, *batches: list[dict[str, object]]) -> dict[str, tuple[int, str, str]]:
    """Those of a batch at the same time."""
    done = site.inside("/usr/bin/python3", "-I", "-c", DRIVER, json.dumps(batches), options=())
    assert done.code == 0, done.err
    return {name: (code, out, err) for name, code, out, err in map(json.loads, done.out.splitlines())}


@pytest.fixture(autouse=True)
def cleared(site: Site) -> None:
    site.slurm.run(site.jail.user, "scancel", f"--user={site.jail.user.name}")


# name: the caps, what is allowed, what is not (as words; a dict = variables), and what is said of it.
CAPS: dict[str, tuple[str, list[tuple[str, dict[str, str]]], list[tuple[str, dict[str, str]]], str]] = {
    "tasks": ("max_tasks = 3", [("-n3", {})], [("-n4", {})], "asks for up to 4 tasks; slurm.max_tasks is 3"),
    "cpus": ("max_cpus = 4", [("-c4", {})], [("-c5", {})], "asks for up to 5 cpus; slurm.max_cpus is 4"),
    "nodes": ("max_nodes = 1", [("-N1", {})], [("-N2", {})], "asks for up to 2 nodes; slurm.max_nodes is 1"),
    "gpus": ("max_gpus = 0", [("-n1", {})], [("-G1", {}), ("", {"SBATCH_GPUS": "1"})], "asks for up to 1 gpus; slurm.max_gpus is 0"),
    "array": ("max_array = 2", [("-a1-2", {}), ("", {"SBATCH_ARRAY_INX": "1-2"})], [("-a1-3%1", {}), ("", {"SBATCH_ARRAY_INX": "1-3"})],
              "asks for up to 3 array tasks; slurm.max_array is 2"),
    "time": ('max_time = "10m"', [("-t10", {}), ("", {"SBATCH_TIMELIMIT": "10"})], [("-t10:01", {}), ("", {"SBATCH_TIMELIMIT": "11"})],
             "asks for 0-00:11:00; slurm.max_time is 0-00:10:00"),
}  # fmt: skip


@pytest.mark.parametrize("name", CAPS)
def test_the_cap_is_reached_and_not_passed_in_any_channel(site: Site, name: str) -> None:
    setting, fits, exceeds, said = CAPS[name]
    site.jail.configure(f"{ON}{setting}\n")
    good = [case(f"good{at}", words, env=env) for at, (words, env) in enumerate(fits)] + [case("good-line", lines=fits[0][0])]
    bad = [case(f"bad{at}", words, env=env) for at, (words, env) in enumerate(exceeds)] + [case("bad-line", lines=exceeds[0][0])]
    found = run(site, [*good, *bad, case("plain")])
    for one, (code, out, err) in found.items():
        if one.startswith("bad"):
            assert (code, out) == (1, "") and said in err, (one, err)
        else:
            assert code == 0, (one, err)
    assert "line 2 of the script" in found["bad-line"][2]
    job = re.findall(r"\d+", found["plain"][1])[-1]
    if name == "time":
        assert site.slurm.job(int(job))["TimeLimit"] == "00:10:00"


@pytest.fixture
def admin() -> Iterator[Path]:
    """A directory whose config.toml becomes the admin's."""
    os.makedirs("/app", exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="agent-sandbox-admin-", dir="/var/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def under(site: Site, admin: Path, text: str, script: str) -> Result:
    """Inside, where an admin has said this."""
    (admin / "config.toml").write_text(text)
    argv = site.slurm.at_default_places(site.jail.user, site.jail.project, [site.jail.program, "--quiet", "--", "sh", "-c", script])
    place = argv.index("--") + 1
    apart = ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", AS_ADMIN, "sh", str(admin)]
    done = users.run_as(users.current_user(), [*argv[:place], *apart, *argv[place:]], env=site.jail.user.environment, cwd=site.jail.project)
    return Result(code=done.returncode, out=done.stdout, err=done.stderr)


def test_the_admins_lists_hold_in_every_channel_and_the_first_entry_is_taken(site: Site, admin: Path) -> None:
    site.jail.write(site.jail.project / "free.sh", "#!/bin/sh\ntrue\n")
    site.jail.write(site.jail.project / "lined.sh", f"#!/bin/sh\n#SBATCH -p {PARTITIONS[0]}\ntrue\n")
    one = f'partitions = ["{PARTITIONS[1]}"]\naccounts = ["{ACCOUNTS[1]}"]\nqos = ["{QOS[1]}"]\n'
    asked = (f"sbatch --parsable --hold free.sh; sbatch --hold -p {PARTITIONS[0]} free.sh; SBATCH_ACCOUNT={ACCOUNTS[0]} sbatch --hold free.sh; "
             f"sbatch --hold -q {QOS[0]} free.sh; sbatch --hold lined.sh")  # fmt: skip
    done = under(site, admin, ON + one, asked)
    shown = site.slurm.job(int(done.out))  # one was taken
    assert (shown["Partition"], shown["Account"], shown["QOS"]) == (PARTITIONS[1], ACCOUNTS[1], QOS[1])
    assert [key in done.err for key in ("slurm.partitions", "slurm.accounts", "slurm.qos", "line 2 of the script")] == [True] * 4
    assert done.err.count("error:") == 4
    none = under(site, admin, f"{ON}partitions = []\n", "sbatch --hold free.sh")
    assert (none.out, "slurm.partitions is empty" in none.err) == ("", True), none.err
    site.jail.configure(ON + one)  # the control: a person's own word is none
    assert run(site, [case("free", f"-p{PARTITIONS[0]}")])["free"][0] == 0


@pytest.fixture
def slow() -> Iterator[Path]:
    """The real Slurm, where a submission takes long: all who ask meanwhile see a queue without it. Not where a jail can write."""
    with tempfile.TemporaryDirectory(prefix="agent-sandbox-slow-", dir="/opt") as name:
        programs = Path(name, "bin")
        programs.mkdir()
        for one in ("squeue", "scancel", "scontrol", "sacct", "sinfo"):
            (programs / one).symlink_to(f"/usr/bin/{one}")
        (programs / "sbatch").write_text('#!/bin/sh\nsleep 3\nexec /usr/bin/sbatch "$@"\n')
        for path in (Path(name), programs / "sbatch"):
            path.chmod(0o755)
        yield Path(name)


def test_of_twenty_at_once_no_more_than_the_cap_get_in(site: Site, admin: Path, slow: Path) -> None:
    user = site.jail.user
    outside = site.slurm.submit(user, "--hold", "--output=/dev/null", "--chdir=/", "--wrap=true")
    site.jail.write(site.jail.project / "job.sh", "#!/bin/sh\ntrue\n")
    text = f'{ON}max_jobs = 5\nprefix = "{slow}"\n'
    many = "for n in $(seq 20); do sbatch --parsable --hold job.sh & done; wait; sbatch -a1-2 --hold job.sh; sbatch --test-only job.sh && echo tested"
    done = under(site, admin, text, many)
    assert done.out, done.err
    *taken, last = done.out.split()
    queued = site.slurm.run(user, "squeue", "-h", "-u", user.name, "-o", "%i").stdout.split()
    assert sorted(queued) == sorted([str(outside), *taken]), done.err
    assert (len(taken), last) == (4, "tested"), done.err  # and the one from outside
    assert done.err.count("and this would be 1 more: slurm.max_jobs is 5") == 16
    assert "you have 5 jobs in the queue or on their way, and this would be 2 more: slurm.max_jobs is 5" in done.err


def test_a_job_that_ended_is_requeued_only_where_there_is_room(site: Site) -> None:
    site.jail.configure(f"{ON}max_jobs = 2\n")
    site.jail.write(site.jail.project / "short.sh", "#!/bin/sh\ntrue\n")
    short = run(site, [case("ended", argv="sbatch --wait --parsable short.sh")])["ended"]
    assert short[0] == 0, short[2]
    job = short[1].strip()
    fill = run(site, [case("one")], [case("two")], [case("back", argv=f"scontrol requeue {job}")])
    assert [fill[one][0] for one in ("one", "two", "back")] == [0, 0, 1], fill
    assert "you have 2 jobs in the queue or on their way, and this would be 1 more: slurm.max_jobs is 2" in fill["back"][2]
    assert site.slurm.job(int(job))["JobState"] == "COMPLETED"
    held = fill["one"][1].split()[-1]
    steps = {"same": f"scontrol requeue {held}", "free": f"scancel {held}", "back": f"scontrol requeue {job}"}
    again = run(site, *[[case(name, argv=argv)] for name, argv in steps.items()])
    assert "slurm.max_jobs" not in again["same"][2]  # it is in the queue already
    assert again["back"][0] == 0, again["back"][2]


def test_the_rate_is_the_users_over_projects(site: Site) -> None:
    site.jail.configure(f"{ON}max_submit_rate = 3\n")
    first = run(site, [case("a", "-a1-2"), case("b", "-a1-2")])
    assert sorted(code for code, _, _ in first.values()) == [0, 1], first
    other = site.jail.project.parent / "other"
    site.jail.write(other / "job.sh", "#!/bin/sh\ntrue\n")
    script = f"cd {other} && for n in 1 2; do {site.jail.program} --quiet -- sbatch --hold job.sh; done"
    done = site.outside("sh", "-c", script)
    assert done.out.count("Submitted") == 1, (done.out, done.err)
    assert "3 jobs were submitted within a minute, and this would be 1 more: slurm.max_submit_rate is 3" in done.err


def test_an_update_does_not_pass_a_cap(site: Site) -> None:
    site.jail.configure(f'{ON}max_time = "10m"\n')
    job = run(site, [case("job", "-t5")])["job"][1].split()[-1]
    changes = ("TimeLimit=10", "TimeLimit=11", "TimeLimit=UNLIMITED", "TimeLimit=+5", "EndTime=2030-01-01", "TimeMin=11", "NumNodes=2")
    found = run(site, [case(change, argv=f"scontrol update JobId={job} {change}") for change in changes[1:]],
                [case(changes[0], argv=f"scontrol update JobId={job} {changes[0]}")])  # fmt: skip
    assert [found[change][0] for change in changes] == [0, 1, 1, 1, 1, 1, 1], found
    assert site.slurm.job(int(job))["TimeLimit"] == "00:10:00"
