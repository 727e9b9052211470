"""Views and control attacked from inside a real jail: no spelling of an id, no format and no filter shows or changes a job of others.

There is a job of another user's, one of the user's own from outside any jail, and one from a jail in another project. Their names must not be
seen, and they must be afterwards as they were.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from tests.machines import users
from tests.machines.jail import Jail, Result
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for
from tests.slurm.attacks import drive
from tests.slurm.conftest import Site

BACKENDS = ("bwrap", "landlock", "firejail")
NAMES = {"X": "hush-stranger", "Y": "hush-outside", "Z": "hush-elsewhere"}
FACTS = ("JobState", "JobName", "Priority", "Nice", "TimeLimit", "Comment", "Requeue", "Restarts", "Partition")

# Each in the place of `ID`; x is the id of a job that is not ours, $M and $A are of this project.
SPELLINGS = (
    "$x", "$M,$x", "$x,$M", "${A}_1,$x", "${A}_[0-1],$x", "$M,,$x", "$x,", ",$x", "$M $x", " $x", "0$x", "000000$x", "${x}_*", "${x}_[*]", "${x}_0",
    "${x}_[0-3]",
    "${x}+0", "${x}.batch", "${x}.0", "+$x", "-$x", "$UNI", "$BIG", "0x$HEX", "${x}e0", "$x;", "$x|", "$M;$x", "[$x]", "$x-$x", "$x:$M", "$x%",
    "'$x'", "$x#",
    "jobid=$x", "$x\\u00a0", "$M\\n$x", "$M\\t$x", "$x\\0",
)  # fmt: skip
LOOKS = ("squeue -h -o '%j %i' -j ID", "squeue -O name:40 --jobs=ID", "sacct -n -X -o jobname%40 -j ID", "scontrol show job ID", "sstat -a -n -j ID")
ACTS = ("scancel ID", "scontrol hold ID", "scontrol release ID", "scontrol update JobId=ID Nice=77 Comment=changed", "scontrol requeue ID")

VIEWS = {
    "squeue": (
        "", "-a", "-h -o %j", "-o '%j %i'", "-o '%j|%i'", "-o '%i\\n%j'", "-O name:40,jobid", "-O name:40", "--format='%all'", "-l", "-r", "-s",
        "-t all -o %j", "-A users,physics -o %j", "-p debug -o %j", "-w $(hostname) -o %j", "-n hush-stranger,hush-outside -o %j",
        "--name=hush-elsewhere -o %j",
        "-u $THEM -o %j", "-u root -o %j", "--users=$THEIRS -o %j", "-u $USER,$THEM -o %j", "-u '' -o %j", "-u ALL -o %j", "-S j -o %j", "--json",
        "--yaml", "-t R --json",
        "--me -o %j", "-u $USER -o %j", "-q normal -o %j", "--start -o %j", "-i 1", "-M test -o %j", "-j $X --json", "-j $X --yaml",
        "--steps=$X.batch", "-s -j $X", "-s $X"),
    "sacct": (
        "-a -o jobname%40", "-a -X -P -o jobname,jobid", "-o jobname%40", "-A users -o jobname%40", "-u $THEM -o jobname%40", "-u root,$THEM",
        "--uid=$THEIRS",
        "-g $THEM -o jobname%40", "-N $(hostname) -o jobname%40", "--name=hush-stranger -o jobname%40", "-a --name=hush-outside",
        "-S 2000-01-01 -a -o jobname%40",
        "--json", "-a --json", "--yaml", "-P --delimiter=$'\\n' -o jobname,jobid", "-P --delimiter=, -o jobname", "-r debug -o jobname%40",
        "-s R -a -o jobname%40",
        "-a -D -o jobname%40", "-L -a", "-M all -a", "-j $X --json", "-j $X -u $THEM -o jobname%40", "-f /dev/null", "-c -a", "-B -j $M",
        "--format=ALL -a"),
    "scontrol": (
        "show job", "show jobs", "-a show job", "-o show job", "-d show jobs", "show job=$X", "show jobid $X", "show jobid=$Y", "-o show job $Z",
        "show steps", "show step $X",
        "show step $X.batch", "show assoc_mgr", "show users", "show reservation", "listpids $X", "write batch_script $Y -",
        "write batch_script $Y $P/stolen",
        "show JoB $X", "sho job $X", "show job $M $X", "show job $M,$X", "notify $Y hello", "completing", "ping", "show licenses", "show dwstat x",
        "getaddrs $(hostname)"),
    "sstat": ("-a -j $X.batch", "-j $Y.batch -o jobid", "-a", "-j $M,$Y.batch"),
    "sprio": ("-l", "-j $X", "-u $THEM", "-o '%i %u'"),
    "sshare": ("-a", "-u $THEM", "-A users -a", "-U -a"),
    "sinfo": ("-o %all", "-N -l", "-T", "-s", "--json"),
    "sacctmgr": (
        "show user", "show assoc", "-n show user $THEM withassoc", "show runawayjobs", "show event", "dump test file=$P/stolen", "show transaction",
        "show job"),
    "sreport": ("user top", "job sizesbyaccount"), "sdiag": ("",),
}  # fmt: skip
SHOWN_OUTSIDE = {
    "squeue -h -o %j", "squeue -o '%j %i'", "squeue -o '%j|%i'", "squeue -O name:40", "squeue -t all -o %j", "squeue -A users,physics -o %j",
    "squeue -p debug -o %j",
    "squeue -u $THEM -o %j", "squeue -n hush-stranger,hush-outside -o %j", "squeue --json", "squeue --yaml", "squeue -j $X --json",
    "squeue -u $USER -o %j",
    "sacct -a -o jobname%40", "sacct -u $THEM -o jobname%40", "sacct -A users -o jobname%40", "sacct -a --json", "sacct -N $(hostname) -o jobname%40",
    "scontrol show job", "scontrol -o show job", "scontrol show job=$X", "scontrol show jobid $X",
    *(look.replace("ID", f"'{spelling}'") for look in ("squeue -h -o '%j %i' -j ID",) for spelling in ("$x", "$M,$x", "0$x")),
}  # fmt: skip
CONTROLS = (
    "scancel -u $THEM", "scancel -u root", "scancel -u $USER,$THEM", "scancel --name=hush-outside", "scancel -n hush-stranger",
    "scancel -u $USER -n hush-elsewhere",
    "scancel -n hush-outside $M", "scancel -t RUNNING -n hush-outside", "scancel -A users -n hush-outside", "scancel -w $(hostname) -n hush-outside",
    "scancel -p debug -t RUNNING",
    "scancel -q normal -t RUNNING", "scancel -s KILL $Y", "scancel -b -s USR1 $Y", "scancel -f $Y", "scancel $Y.batch", "scancel -i $Y",
    "scancel -v $Y", "scancel -- $Y", "scancel -M test $Y",
    "scancel --hurry $Y", "scancel --ctld $Y", "SCANCEL_USER=$THEM scancel", "SCANCEL_NAME=hush-outside scancel -t RUNNING",
    "scancel --me -n hush-outside", "scancel --sibling=test $Y",
    "scontrol hold name=hush-outside", "scontrol hold jobname=hush-elsewhere", "scontrol release name=hush-elsewhere", "scontrol uhold $Y",
    "scontrol suspend $Y", "scontrol resume $Y",
    "scontrol requeuehold $Y", "scontrol top $Y", "scontrol update JobName=hush-outside Nice=77", "scontrol update jobid=$M jobid=$Y Nice=77",
    "scontrol update JobId=$Y JobId=$M Nice=77",
    "scontrol update job $Y Nice=77", "scontrol update Nice=77 JobId=$M,$Y", "scontrol update JobId=$M UserId=$THEIRS",
    "scontrol update JobId=$M StdOut=$P/x", "scontrol update JobId=$M Dependency=expand:$Y",
    "scontrol update NodeName=$(hostname) State=DRAIN Reason=x", "scontrol update PartitionName=debug State=DOWN", "scontrol reconfigure",
    "scontrol shutdown", "scontrol takeover",
    "scontrol update StepId=$Y.batch TimeLimit=1", "echo update JobId=$Y Nice=77 | scontrol", "scontrol -- update JobId=$Y Nice=77",
    "scontrol update JobId=$M 'Comment=a JobId=$Y'",
    "scontrol create reservation user=$USER starttime=now duration=1 nodes=ALL", "scontrol delete jobid=$Y", "scontrol cancel_reboot ALL",
    "scontrol wait_job $Y & sleep 0.2; kill $!",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Jobs of everybody's, and one jail's view of them."""

    site: Site
    them: users.TestUser
    theirs: int
    outside: int
    elsewhere: int
    mine: int
    array: int

    @property
    def values(self) -> dict[str, str]:
        ids = {"X": self.theirs, "Y": self.outside, "Z": self.elsewhere, "M": self.mine, "A": self.array}
        numbers = {name: str(job) for name, job in ids.items()}
        return {**numbers, "THEM": self.them.name, "THEIRS": str(self.them.uid), "P": str(self.site.jail.project)}

    def run(self, lines: list[str], *, jailed: bool = True) -> dict[str, Result]:
        """Each line by itself; x in it is a job that is not of this project."""
        orders = [(line, self.site.jail.project, {**self.values, **spelled(job)}) for line in lines for job in self.strange_to(line)]
        named = [f"{line}  ({values['x']})" if "x" in values and is_spelled(line) else line for line, _, values in orders]
        return dict(zip(named, drive(self.site, orders, jailed=jailed), strict=True))

    def strange_to(self, line: str) -> list[int]:
        """Half of the lines are about one of the two."""
        return [(self.theirs, self.outside)[sum(line.encode()) % 2]] if is_spelled(line) else [0]

    def facts(self) -> list[dict[str, str]]:
        jobs = [self.site.slurm.job(job) for job in (self.theirs, self.outside, self.elsewhere)]
        return [{name: job[name] for name in FACTS if name in job} for job in jobs]


def is_spelled(line: str) -> bool:
    return re.search(r"\$\{?x|\$UNI|\$BIG|\$HEX", line) is not None


def spelled(job: int) -> dict[str, str]:
    """The id, in digits of another script, a turn of 32 bits later, and to the base of 16."""
    other = "".join(chr(0x660 + int(digit)) for digit in str(job))
    return {"x": str(job), "UNI": other, "BIG": str(job + 2**32), "HEX": f"{job:x}"}


def spellings(commands: tuple[str, ...]) -> list[str]:
    """Those with escapes go through printf."""
    shown = [f"\"$(printf '%b' \"{one}\")\"" if "\\" in one else f'"{one}"' for one in SPELLINGS]
    return [command.replace("ID", one) for command in commands for one in shown]


@contextlib.contextmanager
def jobs_of_everybody(site: Site, them: users.TestUser) -> Iterator[Queue]:
    slurm, user = site.slurm, site.jail.user
    words = ("--output=/dev/null", "--chdir=/", "--wrap=sleep 600")
    theirs = slurm.submit(them, *words, f"--job-name={NAMES['X']}")
    outside = slurm.submit(user, *words, f"--job-name={NAMES['Y']}", "--requeue")
    other = replace(site, jail=elsewhere(site.jail))
    site.jail.configure('[slurm]\nenabled = "on"\n')
    submit = "sbatch --parsable --hold -o /dev/null"
    held = drive(other, [(f"{submit} -J {NAMES['Z']} --wrap=true", other.jail.project, {})], jailed=True)
    mine = drive(site, [(f"{submit} --wrap=true", site.jail.project, {}), (f"{submit} --array=0-2 --wrap=true", site.jail.project, {})], jailed=True)
    numbers = [int(one.out) for one in (*held, *mine)]
    wait_for(lambda: all(slurm.job(job)["JobState"] == "RUNNING" for job in (theirs, outside)), "the others' jobs")
    try:
        yield Queue(site=site, them=them, theirs=theirs, outside=outside, elsewhere=numbers[0], mine=numbers[1], array=numbers[2])
    finally:
        slurm.run(them, "scancel", "--me")
        slurm.run(user, "scancel", "--me")


def elsewhere(jail: Jail) -> Jail:
    place = jail.write(jail.user.home / "another project" / "x").parent
    return Jail(copy=jail.copy, user=jail.user, project=place)


@pytest.fixture(scope="module")
def stranger(slurm: Slurm) -> Iterator[users.TestUser]:
    with users.account() as user:
        slurm.allow(user)
        yield user


@pytest.fixture
def queue(site: Site, stranger: users.TestUser) -> Iterator[Queue]:
    with jobs_of_everybody(site, stranger) as made:
        yield made


def leaks(results: dict[str, Result], *more: str) -> list[str]:
    """Lines whose answer has a name of a job of others, or one of `more` on its standard output."""
    names = NAMES.values()
    return [line for line, it in results.items() if any(name in it.out + it.err for name in names) or any(name in it.out for name in more)]


def some(lines: list[str], backend: str) -> list[str]:
    """All of them on one backend. The answers are the chaperon's, the same on each: on the others every fifth."""
    return lines if backend == BACKENDS[0] else lines[::5]


def views() -> list[str]:
    return [f"{command} {words}".strip() for command, list_ in VIEWS.items() for words in list_]


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_no_view_shows_the_jobs_of_others(queue: Queue, backend: str) -> None:
    named_lines = some(spellings(LOOKS), backend)
    seen = queue.run(["squeue -h -o '%i %j'", *some(views(), backend), *named_lines])
    assert f"{queue.mine} wrap\n" in seen.pop("squeue -h -o '%i %j'").out  # it is not that nothing is shown
    assert leaks(seen, queue.them.name) == []
    named = {line: done for line, done in seen.items() if is_spelled(line.partition("  (")[0])}
    assert len(named) == len(named_lines)
    assert [line for line, done in named.items() if done.code == 0 or done.out] == []  # all or nothing
    assert not (queue.site.jail.project / "stolen").exists()


def test_control_outside_the_same_lines_show_them(queue: Queue) -> None:
    lines = [line for line in (*views(), *spellings(LOOKS)) if line in SHOWN_OUTSIDE or line.replace('"', "'") in SHOWN_OUTSIDE]
    assert len(lines) == len(SHOWN_OUTSIDE)
    wait_for(lambda: str(queue.theirs) in queue.site.slurm.run(queue.them, "sacct", "-X", "-n", "-o", "jobid").stdout, "accounting")
    seen = queue.run(lines, jailed=False)
    assert set(seen) - set(leaks(seen, queue.them.name)) == set()


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_no_command_changes_the_jobs_of_others(queue: Queue, backend: str) -> None:
    before = queue.facts()
    done = queue.run([*CONTROLS, *some(spellings(ACTS), backend)])
    assert leaks(done) == [] or leaks(done) == [line for line in leaks(done) if "hush" in line]  # what was typed may be said again
    assert queue.facts() == before
    named = {line: how for line, how in done.items() if is_spelled(line.partition("  (")[0])}
    assert [line for line, how in named.items() if how.code == 0] == []
    mine = queue.site.slurm.job(queue.mine)
    assert (mine["JobState"], mine["Nice"]) == ("PENDING", "0")  # of a list with one of others', nothing was done
    assert queue.run([f"scontrol update JobId={queue.mine} Nice=77", "scancel --me"]).popitem()[1].code == 0
    assert (queue.site.slurm.job(queue.mine)["JobState"], queue.facts()) == ("CANCELLED", before)


def test_control_outside_the_same_commands_change_them(queue: Queue) -> None:
    x = queue.outside
    done = queue.run([f"scontrol update JobId={queue.mine},{x} Nice=77 Comment=changed", f"scancel 0{x}"], jailed=False)
    assert [how.code for how in done.values()] == [0, 0]
    assert queue.site.slurm.wait(x)["Comment"] == "changed"


@pytest.mark.parametrize("backend", BACKENDS[:1], indirect=True)
def test_what_belongs_to_a_session_follows_the_settings_and_the_project_wherever_it_moves(queue: Queue) -> None:
    look, jail = ["squeue -h -o %i", f"squeue -h -j {queue.mine} -o %i", f"scancel {queue.mine}"], queue.site.jail
    assert queue.run(look[:2])[look[1]].out == f"{queue.mine}\n"
    jail.configure('[slurm]\nenabled = "on"\nscope = "session"\n')
    alone = queue.run(look)
    assert [(how.code == 0, how.out) for how in alone.values()] == [(True, ""), (False, ""), (False, "")]
    jail.configure('[slurm]\nenabled = "on"\n')
    moved = jail.project.rename(jail.user.home / "moved")
    os.mkdir(jail.project)
    os.chown(jail.project, jail.user.uid, jail.user.gid)
    assert str(queue.mine) not in queue.run(look[:1])[look[0]].out  # another directory with the old name
    there = replace(queue, site=replace(queue.site, jail=Jail(copy=jail.copy, user=jail.user, project=moved)))
    assert str(queue.mine) in there.run(look[:1])[look[0]].out.split()

