"""What a session sees and controls of a real Slurm: its own jobs in every form, and nothing of anybody else's."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_sandbox.chaperon.command import Command, finished
from agent_sandbox.chaperon.command import Result as Ended
from agent_sandbox.chaperon.ledger import Ledger
from agent_sandbox.chaperon.orders import Caps, Orders
from agent_sandbox.chaperon.views import answer
from agent_sandbox.chaperon.wire import Reply, Request
from agent_sandbox.config.record import replace
from agent_sandbox.launcher.audit import Log
from tests.machines import users
from tests.machines.jail import Result
from tests.machines.slurm.cluster import Slurm
from tests.machines.slurm.keeper import wait_for

SECRET = "their secret name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """A chaperon's view of the cluster: handlers and ledger in this process, the real programs as the user."""

    slurm: Slurm
    orders: Orders
    user: users.TestUser

    def ask(self, command: str, *words: str, environment: dict[str, str] | None = None) -> Result:
        step = answer.view(Request(command=command, words=words, cwd="/", environment=environment or {}), self.orders)
        out = b""
        while isinstance(step, Command):
            done = self.run(step)
            out += done.out if step.live else b""
            step = finished(step, done)
        assert isinstance(step, Reply)
        return Result(code=step.code, out=step.out.decode(), err=step.err.decode())

    def run(self, command: Command) -> Ended:
        path = command.program if command.program.startswith("/") else f"/usr/bin/{command.program}"
        done = users.run_as(self.user, (path, *command.words), env=self.slurm.environment, input=command.stdin.decode() or None)
        return Ended(code=done.returncode, out=done.stdout.encode(), err=done.stderr.encode())

    @property
    def ledger(self) -> Ledger:
        return answer.ledger_of(self.orders)

    def submit(self, *words: str, name: str = "mine", is_recorded: bool = True) -> int:
        """As the handler of sbatch does it: intent, submission with the forced log, record."""
        token = self.ledger.intend()
        for path in Path(self.orders.state).rglob("*"):
            os.chown(path, self.user.uid, self.user.gid)
        log = f"--output={self.ledger.log_directory}/%j.log"
        job = self.slurm.submit(self.user, log, f"--job-name={name}", "--chdir=/", *(words or ("--hold",)), "--wrap=sleep 60")
        if is_recorded:
            self.ledger.record(token, job, 1, name)
        return job

    def other(self, session: str = "", **changes: str) -> Desk:
        """Another session of the user's; without a name this one, with other settings."""
        return Desk(slurm=self.slurm, orders=replace(self.orders, session=self.orders.session + session, **changes), user=self.user)

    def accounted(self, job: int) -> int:
        """The job, once accounting has it: that takes a moment."""
        wait_for(lambda: str(job) in self.slurm.run(self.user, "sacct", "-n", "-X", "-j", str(job)).stdout, "accounting")
        return job

    def restarted(self) -> Desk:
        """A chaperon that knows what is on the disk."""
        answer._ledgers.pop(self.orders.session, None)
        return self


@pytest.fixture(scope="module")
def stranger(slurm: Slurm) -> Iterator[users.TestUser]:
    with users.account() as user:
        slurm.allow(user)
        yield user


@pytest.fixture(scope="module")
def theirs(slurm: Slurm, stranger: users.TestUser) -> Iterator[int]:
    """A job of somebody else's, which everybody can see outside."""
    job = slurm.submit(stranger, "--output=/dev/null", "--chdir=/", f"--job-name={SECRET}", "--wrap=sleep 600")
    assert SECRET in slurm.run(users.current_user(), "squeue", "--noheader", "--format=%j").stdout
    yield job
    slurm.run(stranger, "scancel", str(job))


@pytest.fixture
def desk(slurm: Slurm, member: users.TestUser, copy: Path, theirs: int) -> Iterator[Desk]:
    answer._ledgers.clear()
    state = member.home / "state"
    state.mkdir(mode=0o700)
    os.chown(state, member.uid, member.gid)
    orders = Orders(
        session=f"s{time.monotonic_ns()}", fifos="/nowhere", state=str(state), project=str(member.home / "project"), project_id="p1",
        user=member.name, uid=member.uid, home=str(member.home), entry="/nowhere", python="/usr/bin/python3", library=str(copy / "lib"),
        programs="/usr/bin", slurm_conf="", settings={}, caps=Caps(max_time=3600), scope="project", mail=False,
        log=Log(directory=str(state / "audit"), host="here", enabled=False, keep_days=None, max_size=None),
    )  # fmt: skip
    yield Desk(slurm=slurm, orders=orders, user=member)
    slurm.run(member, "scancel", f"--user={member.name}")
    shutil.rmtree(state, ignore_errors=True)


FORMATS = """
    squeue | squeue -h | squeue -o '%j %i' | squeue -O name:40,jobid | squeue --Format=Name | squeue -l | squeue -a -r | squeue --json | squeue --yaml
    squeue -t all -o '%j,%u' | squeue --start | squeue -s | squeue -p debug,short | squeue --me | squeue --sort=-i
    sacct | sacct -a | sacct -X -n -P -o jobname,jobid | sacct --parsable2 | sacct -l | sacct --json | sacct --yaml | sacct --allusers --brief
    sacct -S 2000-01-01 -E now -o jobname%60 | sacct --state=R,PD -o jobname%60
    scontrol show job | scontrol -o show jobs | scontrol -d show job | scontrol show step | scontrol show node | scontrol -d show node
    scontrol show partition | scontrol show config | scontrol show hostnames n[1-2]
    sinfo | sinfo -N -l | sinfo --json | sinfo -R | sshare | sshare -a | sshare -l -P | sshare -A physics | sstat | sprio | sprio -l
    sacctmgr show cluster | sacctmgr -n list qos format=name | sacctmgr show tres | sacctmgr show configuration
"""


def test_no_form_of_any_view_shows_anything_of_another_user(desk: Desk, stranger: users.TestUser) -> None:
    mine = desk.submit(name="my own")
    seen = 0
    for command, *words in map(shlex.split, FORMATS.strip().replace("\n", "|").split("|")):
        shown = desk.ask(command, *words)
        direct = desk.slurm.run(desk.user, command, *words)
        assert SECRET not in shown.out and SECRET[:8] not in shown.out and stranger.name not in shown.out, (command, words, shown)
        assert shown.code == direct.returncode, (command, words, shown, direct)
        seen += "my own" in shown.out or "my" in shown.out.split() or str(mine) in shown.out
    assert seen >= 15


@pytest.mark.parametrize(
    "spelling", ["{0}", "{0},{1}", "{1} {0}", "{0}_1,{1}", "{0}.batch,{1}.batch", "0{1}", "{0},{0}_4,{1}+0", "{1}_*", "{1}_[1-3]"]
)  # fmt: skip
def test_a_list_with_one_job_of_somebody_elses_is_refused_as_a_whole(desk: Desk, theirs: int, spelling: str) -> None:
    """The control: outside everybody can look at it, and may try to cancel it."""
    mine = desk.submit()
    assert desk.slurm.run(desk.user, "squeue", "-h", "-j", str(theirs), "-o", "%j").stdout.strip() == SECRET
    ids = spelling.format(mine, theirs)
    if "{1}" not in spelling:
        assert desk.ask("squeue", "-h", "-j", ids, "-o", "%i").out.strip() == str(mine)
        return
    for command in ("squeue -j", "sacct -j", "scancel", "scontrol show job", "scontrol hold", "sstat -j"):
        refused = desk.ask(*command.split(), ids)
        assert (refused.code, refused.out) == (1, ""), (command, refused)
        assert "Invalid job id specified" in refused.err and "slurm.scope = project" in refused.err and SECRET not in refused.err
        assert str(mine) not in refused.err.replace(str(theirs), "").split("nothing was done")[0]
    assert desk.slurm.job(mine)["JobState"] == desk.slurm.job(mine)["JobState"] == "PENDING"


def test_a_job_of_somebody_elses_and_one_that_never_was_are_refused_alike(desk: Desk, theirs: int) -> None:
    for command in ("squeue -j", "sacct -j", "scancel", "scontrol show job", "scontrol requeue", "sprio -j", "sstat -j"):
        one, other = desk.ask(*command.split(), str(theirs)), desk.ask(*command.split(), "7654321")
        assert (one.code, one.out, one.err.replace(str(theirs), "N")) == (other.code, other.out, other.err.replace("7654321", "N")), command
        assert "Invalid job id specified" in one.err


def test_an_empty_scope_shows_the_header_alone(desk: Desk) -> None:
    for words in (("squeue",), ("squeue", "-o", "%A"), ("sacct",), ("sacct", "-P")):
        shown = desk.ask(*words)
        assert (shown.code, shown.err) == (0, "")
        assert "JOBID" in shown.out.upper() and not any(char.isdigit() for char in shown.out)
    assert desk.ask("squeue", "-h") == Result(code=0, out="", err="")
    assert json.loads(desk.ask("squeue", "--json").out)["jobs"] == []
    assert desk.ask("scontrol", "show", "job") == Result(code=0, out="No jobs in the system\n", err="")
    assert desk.ask("scancel", "--me") == Result(code=0, out="", err="")


def test_tasks_of_an_array_are_known_by_their_own_ids_too(desk: Desk) -> None:
    array = desk.submit("--array=0-2")
    wait_for(lambda: desk.slurm.run(desk.user, "squeue", "-h", "-t", "R", "-j", str(array)).stdout.count("\n") == 3, "tasks")
    raw = sorted(desk.slurm.run(desk.user, "squeue", "-h", "-j", str(array), "-o", "%A").stdout.split(), key=int)
    assert len(raw) == 3 and raw[0] == str(array)
    assert sorted(desk.ask("squeue", "-h", "-o", "%i").out.split()) == [f"{array}_{n}" for n in range(3)]
    assert desk.ask("squeue", "-h", "-j", raw[1], "-o", "%F").out.strip() == str(array)
    shown = desk.ask("scontrol", "show", "job", raw[2]).out
    assert f"JobId={raw[2]} ArrayJobId={array}" in shown
    assert f"JobId={raw[1]} " in desk.ask("scontrol", "show", "job", str(array)).out
    assert len(json.loads(desk.ask("squeue", "--json").out)["jobs"]) == 3
    assert desk.ask("scancel", f"{array}_1").code == 0
    assert desk.ask("scancel", f"{array}_0").code == 0
    wait_for(lambda: len(desk.ask("squeue", "-h", "-t", "R").out.splitlines()) == 1, "end of two tasks")


def test_components_of_a_job_are_known_by_their_own_ids_too(desk: Desk) -> None:
    first = desk.submit("--hold", "--ntasks=1", ":", "--hold", "--ntasks=1")  # held: on one node it would wait for ever, and all others behind it
    assert desk.slurm.job(first + 1)["HetJobId"] == str(first)  # outside they can be seen
    assert sorted(desk.ask("squeue", "-h", "-o", "%i").out.split()) == [f"{first}+0", f"{first}+1"]
    assert f"JobId={first + 1} " in desk.ask("scontrol", "show", "job", str(first + 1)).out
    assert desk.ask("scancel", str(first)).code == 0


def test_a_task_that_the_controller_forgot_is_known_by_accounting(desk: Desk) -> None:
    array = desk.submit("--array=0-1")
    wait_for(lambda: desk.slurm.run(desk.user, "squeue", "-h", "-t", "R", "-j", str(array)).stdout.count("\n") == 2, "tasks")
    raw = max(desk.slurm.run(desk.user, "squeue", "-h", "-j", str(array), "-o", "%A").stdout.split(), key=int)
    wait_for(lambda: f"{array}_" in desk.slurm.run(desk.user, "sacct", "-n", "-X", "-j", raw, "-o", "jobid").stdout, "accounting")
    scope = desk.ledger.scope()
    from agent_sandbox.chaperon.views import lookup

    step: object = lookup._ask_accounting({int(raw)}, scope, lambda wider: Reply(out=str(int(raw) in wider.jobs).encode()))
    assert isinstance(step, Command)
    assert finished(step, desk.run(step)) == Reply(out=b"True")


def test_the_scope_decides_which_of_the_own_jobs_are_there(desk: Desk) -> None:
    outside = desk.slurm.submit(desk.user, "--hold", "--output=/dev/null", "--wrap=true")
    here, sister, elsewhere = desk.submit(), desk.other("b").submit(), desk.other("c", project_id="p2").submit()
    for kind, expected in (("session", [here]), ("project", [here, sister]), ("user", [here, sister, elsewhere])):
        seen = desk.other(scope=kind).restarted().ask("squeue", "-h", "-o", "%i").out.split()
        assert sorted(map(int, seen)) == expected, kind
    assert desk.slurm.job(outside)["JobState"] == "PENDING"
    refused = desk.other(scope="user").restarted().ask("scancel", str(outside))
    assert (refused.code, desk.slurm.job(outside)["JobState"]) == (1, "PENDING")


def test_the_ledger_is_read_again_after_a_restart(desk: Desk) -> None:
    job = desk.submit()
    assert desk.restarted().ask("squeue", "-h", "-o", "%i").out.split() == [str(job)]


def test_a_job_whose_chaperon_died_before_it_was_recorded_is_found(desk: Desk) -> None:
    lost = desk.submit(is_recorded=False)
    assert desk.ledger.scope().jobs == frozenset()
    assert desk.restarted().ask("squeue", "-h", "-o", "%i").out.split() == [str(lost)]
    assert lost in desk.restarted().ledger.scope().jobs  # on the disk now
    assert desk.ask("scancel", str(lost)).code == 0


def test_a_job_that_began_before_its_chaperon_died_is_found_by_its_log(desk: Desk) -> None:
    lost = desk.submit("--begin=now", is_recorded=False)
    wait_for(lambda: (Path(desk.ledger.log_directory) / f"{lost}.log").exists(), "the log")
    desk.restarted().ledger.recover(())
    assert desk.ledger.scope().jobs == {lost}


def test_an_id_that_is_anothers_now_is_not_touched(desk: Desk, theirs: int) -> None:
    """Slurm gives ids out again: the ledger may have one that belongs to a job that never was ours."""
    own = desk.slurm.submit(desk.user, "--hold", "--output=/dev/null", "--wrap=true")
    for job in (own, theirs):
        desk.ledger.record(desk.ledger.intend(), job, 1, "old")
    assert {own, theirs} <= desk.ledger.scope().jobs
    for command in (("scancel",), ("scontrol", "hold"), ("scontrol", "release"), ("scontrol", "show", "job"), ("scontrol", "requeue")):
        for job in (own, theirs):
            shown = desk.ask(*command, str(job))
            assert SECRET not in shown.out + shown.err and (shown.code != 0 or job == theirs), (command, shown)
    for command in ("squeue -t all -O name:40,jobid", "sacct -o jobid,jobname%40", "squeue --json", "sacct --json", "scontrol show job"):
        assert SECRET not in desk.ask(*command.split()).out
    assert desk.ask("scancel", "--me").code == 0
    assert desk.slurm.job(own)["JobState"] == "PENDING"


def test_what_equals_the_rule_is_accepted_and_other_users_are_refused_with_what_to_do(desk: Desk, stranger: users.TestUser) -> None:
    job = desk.accounted(desk.submit())
    me, them = desk.user.name, stranger.name
    for line in ("squeue --me", f"squeue -u {me}", f"squeue --users={desk.user.uid}", f"sacct -X -u {me}", "sacct -aX"):
        assert str(job) in desk.ask(*line.split()).out, line
    for line in (f"squeue -u {them}", f"squeue -u {me},{them}", f"sacct -u {stranger.uid}", f"sshare -u {them}"):
        refused = desk.ask(*line.split())
        assert (refused.code, refused.out, me in refused.err) == (1, "", True), line
    assert stranger.name in desk.slurm.run(desk.user, "sshare", "-P", "-u", stranger.name).stdout  # the control
    refused = desk.ask("scancel", "-u", stranger.name)
    assert (refused.code, f"--user={desk.user.name}" in refused.err) == (1, True)


def test_sacct_shows_the_time_that_it_shows_without_ids(desk: Desk) -> None:
    """Of a job that may run: one that is held is shown by sacct only where its id is given, and so it is here."""
    job = desk.submit("--begin=now")
    wait_for(lambda: str(job) in desk.slurm.run(desk.user, "sacct", "-X", "-n", "-o", "jobid").stdout, "accounting")
    ended = desk.submit("--begin=now")
    wait_for(lambda: desk.slurm.job(ended)["JobState"] == "RUNNING", "the job")
    assert desk.ask("scancel", str(ended)).code == 0
    wait_for(lambda: str(ended) in desk.slurm.run(desk.user, "sacct", "-n", "-S", "now-1hour", "-E", "now", "-s", "CA").stdout, "accounting")
    time.sleep(1.5)  # its end lies before now, in whole seconds
    shown = {}
    for words in ("", "--state=F", "--state=CA", "--state=R", "-S now", "-S 2000-01-01 -E 2001-01-01", "-S 2000-01-01", "-S now-1hour -E now -s CA"):
        line = f"sacct -X -n -o jobid {words}".split()
        direct, through = desk.slurm.run(desk.user, *line).stdout.split(), desk.ask(*line).out.split()
        for one in (str(job), str(ended)):
            shown[words, one] = one in through
            assert (one in through) == (one in direct), (words, one)
    assert set(shown.values()) == {True, False}


def test_jobs_are_chosen_by_name_state_and_partition_and_none_outside_the_scope(desk: Desk) -> None:
    outside = desk.slurm.submit(desk.user, "--hold", "--job-name=a", "--output=/dev/null", "--wrap=true")
    a, b, running = desk.submit(name="a"), desk.submit(name="b"), desk.submit("--begin=now", name="a")
    wait_for(lambda: desk.slurm.job(running)["JobState"] == "RUNNING", "the job")
    state = lambda: [desk.slurm.job(job)["JobState"] for job in (a, b, running, outside)]  # noqa: E731
    assert desk.ask("scancel", "--name=a", "--state=PENDING") == Result(code=0, out="", err="")
    assert state() == ["CANCELLED", "PENDING", "RUNNING", "PENDING"]
    assert desk.ask("scancel", "--name=a", str(b)).code in (0, 1)
    assert desk.ask("scancel", "--partition=short", "--me") == Result(code=0, out="", err="")
    assert state() == ["CANCELLED", "PENDING", "RUNNING", "PENDING"]
    assert desk.ask("scancel", "--me").code == 0
    wait_for(lambda: state() == ["CANCELLED", "CANCELLED", "CANCELLED", "PENDING"], "end")
    assert desk.ask("scancel") == Result(code=1, out="", err="scancel: error: No job identification provided\n")


def test_a_signal_reaches_the_batch_script_of_the_job_alone(desk: Desk) -> None:
    job = desk.submit("--begin=now")
    wait_for(lambda: desk.slurm.job(job)["JobState"] == "RUNNING", "the job")
    time.sleep(0.5)
    assert desk.ask("scancel", "--batch", "--signal=USR1", str(job)).code == 0
    assert desk.slurm.wait(job)["ExitCode"] != "0:0"


def test_jobs_are_held_released_requeued_and_changed(desk: Desk) -> None:
    job = desk.submit("--begin=now+1hour")
    show = lambda: desk.slurm.job(job)  # noqa: E731
    assert desk.ask("scontrol", "hold", str(job)).code == 0
    assert show()["Priority"] == "0"
    assert desk.ask("scontrol", "release", f"jobid={job}").code == 0
    assert show()["Priority"] != "0"
    assert desk.ask("scontrol", "update", f"JobId={job}", "Comment=a b", "TimeLimit=30", "JobName=new", "Nice=7").code == 0
    assert (show()["Comment"], show()["TimeLimit"], show()["JobName"], show()["Nice"]) == ("a b", "00:30:00", "new", "7")
    refused = desk.ask("scontrol", "update", f"JobId={job}", "TimeLimit=1-0")
    assert (refused.code, show()["TimeLimit"]) == (1, "00:30:00")
    for key in ("StdOut=/tmp/x", "NumNodes=5", "UserId=0", "WorkDir=/tmp"):
        assert desk.ask("scontrol", "update", f"JobId={job}", key).code == 1
    pending = desk.ask("scontrol", "requeue", str(job))
    assert (pending.code, "pending" in pending.err) == (1, True)  # as Slurm has it
    assert desk.ask("scontrol", "update", "JobName=new", "Nice=9").code == 1  # by name it would be every job of that name
    assert show()["Nice"] == "7"


def test_why_a_job_was_not_started_is_told(desk: Desk) -> None:
    job = desk.accounted(desk.submit())
    log = Path(desk.ledger.log_directory) / f"{job}.log"
    log.write_text(f"agent-sandbox: error: job {job} was not started: no jail \x1b[31mhere\n")
    for words in (("scontrol", "show", "job", str(job)), ("sacct", "-j", str(job))):
        shown = desk.ask(*words)
        assert (shown.code, shown.err) == (0, f"agent-sandbox: error: job {job} was not started: no jail \\x1b[31mhere\n")
        assert str(job) in shown.out


def test_running_steps_are_shown(desk: Desk) -> None:
    job = desk.submit("--begin=now")
    wait_for(lambda: f"{job}.batch" in desk.slurm.run(desk.user, "squeue", "-h", "-s").stdout, "the step")
    assert desk.ask("squeue", "-h", "-s").out.split()[0] == f"{job}.batch"
    assert desk.ask("squeue", "-h", "-s", f"--jobs={job}").out.split()[0] == f"{job}.batch"
    assert desk.ask("squeue", "-h", f"--steps={job}.batch").out == desk.slurm.run(desk.user, "squeue", "-h", f"--steps={job}.batch").stdout
    assert f"StepId={job}.batch" in desk.ask("scontrol", "show", "step").out
    assert f"{job}.batch" in desk.ask("sstat", "-a", "-n", "-j", f"{job}.batch", "-o", "jobid").out


def test_variables_cannot_widen_a_view(desk: Desk, stranger: users.TestUser) -> None:
    job = desk.submit()
    shown = desk.ask("squeue", "-h", environment={"SQUEUE_FORMAT": "%i", "SQUEUE_ALL": "1", "SQUEUE_STATES": "all"})
    assert shown.out.split() == [str(job)]
    assert desk.ask("squeue", environment={"SQUEUE_USERS": stranger.name}).code == 1
    assert desk.ask("scancel", environment={"SCANCEL_USER": stranger.name}).code == 1
