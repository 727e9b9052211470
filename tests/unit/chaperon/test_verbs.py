"""Views and control: what is asked is said in full, ids are read whole, and nothing but what is listed is done."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.rebuild import force, rebuild
from agent_sandbox.chaperon.registry import jobids
from agent_sandbox.chaperon.words import JobId
from agent_sandbox.config.record import replace
from tests.unit.chaperon.asking import FREE, approved, ask, refusals, words


@pytest.mark.parametrize(("text", "expected"), [
    ("123", [JobId(job=123)]), ("0123", [JobId(job=123)]), ("1,2 3,,", [JobId(job=1), JobId(job=2), JobId(job=3)]),
    ("1_4", [JobId(job=1, tasks="4")]),
    ("1_[1-5,7%2],9", [JobId(job=1, tasks="1-5,7%2"), JobId(job=9)]), ("1_*", [JobId(job=1, tasks="*")]), ("1+2", [JobId(job=1, offset=2)]),
    ("1.batch,1.00", [JobId(job=1, step="batch"), JobId(job=1, step="0")]), ("1_2.extern", [JobId(job=1, tasks="2", step="extern")]),
    ("123_1,999", [JobId(job=123, tasks="1"), JobId(job=999)]), ("1_[5]", [JobId(job=1, tasks="5")]), ("1_[1:2],3", None),
    ("1_[1-9:2]", [JobId(job=1, tasks="1-9:2")]),
    ("-1", None), ("٣", None), ("1_-2", None), ("1\t2", None), ("1_[1,2", None), ("1]", None), ("0", None), ("", None), (",", None), ("1_2_3", None),
    ("1.batch.0", None), ("4294967295", None), ("1e3", None), ("1 -1", None), ("１", None), ("1_[*]", [JobId(job=1, tasks="*")]),
])  # fmt: skip
def test_ids_are_read_whole_or_not_at_all(text: str, expected: list[JobId] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match=r"must be|which is not"):
            jobids.read(text)
        return
    assert list(jobids.read(text)) == expected
    assert list(jobids.read(",".join(map(str, expected)))) == expected


def test_a_long_list_of_ids_takes_no_long_time() -> None:
    for text in ("1," * 32_000, "[" * 65_000, "1_[" + "1," * 32_000, ",[" * 32_000):
        assert "scancel" in ask("scancel", text).command


@pytest.mark.parametrize(("typed", "expected"), [
    ("squeue -j 1,2", ["--jobs=1,2"]), ("squeue -j1", ["--jobs=1"]), ("squeue --jobs=1", ["--jobs=1"]), ("squeue --jobs 1", ["--jobs=1"]),
    ("squeue -s 1.0", ["--steps=1.0"]),
    ("squeue --me -h -o %i", ["--format=%i", "--me", "--noheader"]), ("squeue -u alice", ["--users=alice"]),
    ("squeue --user=alice", ["--users=alice"]),
    ("sacct -j 0012.batch -P -o jobid", ["--jobs=12.batch", "--format=jobid", "--parsable2"]), ("sacct -p -P", ["--parsable2"]),
    ("sstat -a -j 1", ["--allsteps", "--jobs=1"]), ("sprio -j 1", ["--jobs=1"]), ("sinfo -N -l --json", ["--json", "--long", "--Node"]),
    ("scontrol show job 5", ["--", "show", "job", "5"]), ("scontrol -o SHOW jobs", ["--oneliner", "--", "show", "job"]),
    ("scontrol show job=5", ["--", "show", "job", "5"]),
    ("scontrol show step 5.0", ["--", "show", "step", "5.0"]), ("scontrol show node n[1-3]", ["--", "show", "node", "n[1-3]"]),
    ("scontrol show config", ["--", "show", "config"]),
    ("scontrol show hostnames n[1-3]", ["--", "show", "hostnames", "n[1-3]"]), ("scontrol show hostlist n1,n2", ["--", "show", "hostlist", "n1,n2"]),
    ("scontrol hold 1 2_3", ["--", "hold", "1,2_3"]), ("scontrol release jobid=1", ["--", "release", "1"]),
    ("scontrol requeue 1,2", ["--", "requeue", "1,2"]),
    ("scontrol update timelimit=5 job=1 nice=3", ["--", "update", "JobId=1", "TimeLimit=5", "Nice=3"]), ("scontrol --version", ["--version"]),
    ("sacctmgr list qos format=name,priority -n", ["--noheader", "--", "show", "qos", "format=name,priority"]),
    ("sacctmgr show tres", ["--", "show", "tres"]),
    ("sacctmgr show clusters where name=a", ["--", "show", "cluster", "name=a"]), ("sacctmgr show configuration", ["--", "show", "configuration"]),
    ("sshare -a -l", ["--long"]), ("sacct -a", []),
])  # fmt: skip
def test_views_are_said_in_one_spelling(typed: str, expected: list[str]) -> None:
    assert words(*typed.split()) == expected
    assert words(typed.split()[0], *expected) == expected


@pytest.mark.parametrize("typed", [
    "scontrol", "scontrol shutdown", "scontrol reconfigure", "scontrol write config", "scontrol write batch_script 1 /tmp/x", "scontrol show",
    "scontrol sh job 1",
    "scontrol show reservation", "scontrol show assoc_mgr", "scontrol show hostlist /etc/passwd", "scontrol show hostlist -",
    "scontrol show hostnames /etc/passwd",
    "scontrol show hostlistsorted n1",
    "scontrol show node ./x", "scontrol show config x", "scontrol show job 1 x", "scontrol show job -1", "scontrol token", "scontrol top 1",
    "scontrol suspend 1",
    "scontrol reboot ASAP n1", "scontrol create reservation", "scontrol delete jobid=1", "scontrol update nodename=n1 state=down",
    "scontrol update timelimit=5",
    "scontrol update jobid=1 stdout=/x", "scontrol update jobid=1 workdir=/x", "scontrol update jobid=1 numnodes=9",
    "scontrol update jobid=1 timelimit+=9",
    "scontrol update jobid=1 timelimit=+9", "scontrol update jobid=1 userid=0", "scontrol update jobid=1,x nice=1",
    "scontrol update jobid=1 nice=-9", "scontrol hold",
    "scontrol hold name=x", "scontrol hold 1 x", "scontrol requeue incomplete 1", "scontrol -u 0 show job", "scontrol -M x show job",
    "scontrol notify 1 x", "scontrol ping",
    "sacctmgr", "sacctmgr show", "sacctmgr show user", "sacctmgr show associations", "sacctmgr add user x", "sacctmgr -i modify user x set y=1",
    "sacctmgr dump x",
    "sacctmgr load /x", "sacctmgr archive dump", "sacctmgr show qos withdeleted=1", "sacctmgr show qos format=a b=c", "sacctmgr shutdown",
    "squeue 1", "squeue -j1 2", "squeue -j 1 2", "squeue -i 5", "squeue -M x", "sacct 1", "sacct -f /etc/passwd", "sacct -c", "sacct -B -j 1",
    "sacct -g 0", "sacct -L", "sinfo -i1",
    "sinfo x", "scancel x", "scancel -i 1", "scancel 1,x", "scancel 1 -- -u", "scancel -s XX 1", "sstat x", "sstat -j 1,y",
])  # fmt: skip
def test_what_is_not_listed_is_refused(typed: str) -> None:
    assert refusals(*typed.split())


def test_an_update_keeps_to_the_caps() -> None:
    rules = replace(FREE, max_time=600, partitions=("a",), qos=("b",), accounts=("c",))
    kept = ["--", "update", "JobId=1", "TimeLimit=10", "Partition=a"]
    assert words("scontrol", "update", "jobid=1", "timelimit=10", "partition=a", rules=rules) == kept
    for change in ("timelimit=11", "TimeLimit=UNLIMITED", "partition=a,x", "qos=x", "account=x", "timelimit=0"):
        assert refusals("scontrol", "update", "jobid=1", change, rules=rules)


def test_hostnames_without_a_list_are_those_of_the_job() -> None:
    assert words("scontrol", "show", "hostnames", env={"SLURM_JOB_NODELIST": "n[1-2]"}) == ["--", "show", "hostnames", "n[1-2]"]
    assert refusals("scontrol", "show", "hostnames", env={"SLURM_JOB_NODELIST": "/etc/passwd"})


def test_what_is_asked_is_there_with_its_meaning() -> None:
    answer = approved("squeue", "-u", "alice,bob", "-p", "a", "-j", "1_2,3", "-t", "pd", "-o", "%i|%j")
    assert answer.jobs == (JobId(job=1, tasks="2"), JobId(job=3))
    assert (answer.meaning("users"), answer.meaning("partitions"), answer.meaning("states")) == (("alice", "bob"), ("a",), ("pd",))
    assert (answer.value("format"), answer.has("me"), answer.value("me")) == ("%i|%j", False, None)
    assert approved("scancel", "7.0", "--name=a b").jobs == (JobId(job=7, step="0"),)
    assert approved("sbatch", "--dependency=afterok:1:2_3,after:4+5").meaning("dependency") == (JobId(job=1), JobId(job=2, tasks="3"), JobId(job=4))


def test_ignored_options_leave_a_note_and_rows_tell_every_verdict() -> None:
    answer = approved("sbatch", "-o", "x", "-n2", "s", script="#!/bin/sh\n#SBATCH --quiet\n", rules=replace(FREE, max_time=60))
    assert answer.notes == ("--quiet (line 2 of the script) is ignored: is read on the command line alone",)
    assert [(row.option, row.value, row.channel, row.verdict) for row in answer.rows] == [
        ("--quiet", "", "line 2 of the script", "ignore"), ("-o", "x", "command line", "force"), ("-n", "2", "command line", "allow"),
        ("--time", "0-00:01:00", "rule", "force"),
    ]  # fmt: skip
    refused = ask("sbatch", "-n2", "--container=x")
    assert [(row.option, row.verdict) for row in refused.rows] == [("-n", "allow"), ("--container", "refuse")]
    unknown = ask("sbatch", "-n2", "--foo", rules=replace(FREE, max_tasks=1))
    assert [(row.option, row.verdict, row.reason) for row in unknown.rows[1:]] == [("--foo", "refuse", "is not an option that is known here")]
    over = ask("sbatch", "-n2", rules=replace(FREE, max_tasks=1))
    assert [(row.option, row.verdict) for row in over.rows] == [("-n", "refuse")]


def test_lines_for_burst_buffers_are_noted() -> None:
    (note,) = approved("sbatch", "s", script="#!/bin/sh\n#DW stage_in source=/etc/passwd\n").notes
    assert note.startswith("line 2 of the script is a comment here: burst buffers would copy files as you")


def test_the_caller_sets_its_own_options_by_the_table() -> None:
    answer = approved("sbatch", "-o", "x", "-n2", "-J", "theirs", "s.sh")
    ours = force(force(force(answer, "output", "/state/log"), "job-name", "ours"), "ignore-pbs")
    assert rebuild(ours) == ("--ntasks=2", "--job-name=ours", "--ignore-pbs", "--output=/state/log")
    assert rebuild(answer) == ("--ntasks=2", "--job-name=theirs")
    for name, value in (("container", "x"), ("nope", "x"), ("output", None), ("hold", "x"), ("time", "x y"), ("output", "a\nb")):
        with pytest.raises(ValueError, match=r"--|must"):
            force(answer, name, value)
