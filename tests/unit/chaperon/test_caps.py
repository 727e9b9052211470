"""Sizes add up as Slurm adds them, and what is over a cap is refused with both numbers."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.words import Rules, Sizes
from agent_sandbox.config.record import replace
from tests.unit.chaperon.asking import FREE, approved, refusals, words


def capped(**caps: object) -> Rules:
    return replace(FREE, **caps)


@pytest.mark.parametrize(("typed", "nodes", "tasks", "cpus", "gpus"), [
    ("", 1, 1, 1, 0), ("-n 4", 4, 4, 4, 0), ("-N 2", 2, 2, 2, 0), ("-N 2 -n 4", 2, 4, 4, 0), ("-N 1-3 --ntasks-per-node=4", 3, 12, 12, 0),
    ("-n 4 -c 8", 4, 4, 32, 0), ("-N 2 --mincpus=16", 2, 2, 32, 0), ("-w n[1-8]", 8, 8, 8, 0), ("-N 2 -w n[1-8]", 8, 8, 8, 0),
    ("-G 4", 4, 4, 4, 4), ("-C [a*2&b*4]", 6, 6, 6, 0), ("-N 2 --gpus-per-node=a100:4", 2, 2, 2, 8), ("-N 2 --gres=gpu:2,shard:1", 2, 2, 2, 4),
    ("-N1 -n 4 --gpus-per-task=2", 1, 4, 4, 8),
    ("-N1 --sockets-per-node=2 --gpus-per-socket=3", 1, 2, 2, 6), ("-N1 -G 2 --cpus-per-gpu=8", 1, 1, 16, 2),
    ("-N1 -G 2 --ntasks-per-gpu=3", 1, 6, 6, 2),
    ("-N2 -B 2:4:1", 2, 16, 16, 0), ("-N1 --cores-per-socket=8", 1, 8, 8, 0), ("-N2 -n 2 --ntasks-per-node=8", 2, 2, 2, 0),
])  # fmt: skip
def test_sizes_add_up(typed: str, nodes: int, tasks: int, cpus: int, gpus: int) -> None:
    sizes = approved("sbatch", *typed.split(), "--wrap=x").sizes
    assert sizes == Sizes(nodes=nodes, tasks=tasks, cpus=cpus, gpus=gpus, array=1, seconds=None)


@pytest.mark.parametrize(("typed", "caps", "said"), [
    ("-N 5", {"max_nodes": 4}, "-N 5 (command line): asks for up to 5 nodes; slurm.max_nodes is 4"),
    ("-N 2-5", {"max_nodes": 4}, "up to 5 nodes"), ("-w n[1-9]", {"max_nodes": 4}, "up to 9 nodes"), ("-N 5", {"max_nodes": 0}, "max_nodes is 0"),
    ("-C [a*2&b*4]", {"max_nodes": 4}, "up to 6 nodes"),
    ("-n 5", {"max_tasks": 4}, "up to 5 tasks; slurm.max_tasks is 4"), ("-N 3 --ntasks-per-node=2", {"max_tasks": 4}, "up to 6 tasks"),
    ("-c 64", {"max_cpus": 32}, "up to 64 cpus; slurm.max_cpus is 32"), ("-N 2 --mincpus=64", {"max_cpus": 32}, "up to 128 cpus"),
    ("--gres=gpu", {"max_gpus": 0}, "up to 1 gpus; slurm.max_gpus is 0"), ("-G a:2,b:3", {"max_gpus": 4}, "up to 5 gpus"),
    ("-n 8 --gres=gpu:4", {"max_gpus": 8}, "up to 32 gpus"), ("--gres=shard:1", {"max_gpus": 8}, "shares of GPUs"),
    ("--gres=mps:50", {"max_gpus": 8}, "shares"),
    ("--exclusive", {"max_cpus": 8}, "takes whole nodes"), ("--exclusive", {"max_gpus": 8}, "takes whole nodes"),
    ("-S 1", {"max_cpus": 8}, "takes whole nodes"),
    ("-a 0-10", {"max_array": 10}, "up to 11 array tasks; slurm.max_array is 10"), ("-a 1-3,2-4", {"max_array": 5}, "up to 6 array tasks"),
    ("-t 61", {"max_time": 3600}, "asks for 0-01:01:00; slurm.max_time is 0-01:00:00"), ("-t 0", {"max_time": 3600}, "no time limit"),
    ("-t UNLIMITED", {"max_time": 3600}, "no time limit"), ("-t -1", {"max_time": 3600}, "no time limit"),
    ("-t 60:01", {"max_time": 3600}, "asks for 0-01:01:00"),
    ("-t 5 --time-min=99", {"max_time": 3600}, "asks for 0-01:39:00"),
    ("-p a,c", {"partitions": ("a", "b")}, "c is not in slurm.partitions; use a, b"), ("-A x", {"accounts": ("a",)}, "x is not in slurm.accounts"),
    ("-q high", {"qos": ("normal",)}, "high is not in slurm.qos"), ("-B 2 --cores-per-socket=4", {}, "says again"),
    ("--spread-job", {"max_nodes": 4, "max_cpus": 2}, "up to 4 cpus; slurm.max_cpus is 2"), ("--spread-job", {"max_cpus": 2}, "say how many with"),
    ("--spread-job", {"max_nodes": 4, "max_tasks": 3}, "up to 4 tasks"), ("--spread-job", {"max_tasks": 2}, "takes any number of nodes"),
])  # fmt: skip
def test_what_is_over_a_cap_is_refused_with_both_numbers(typed: str, caps: dict[str, object], said: str) -> None:
    assert said in refusals("sbatch", *typed.split(), "--wrap=x", rules=capped(**caps))[0]


@pytest.mark.parametrize(("typed", "caps", "expected"), [
    ("", {"max_time": 3600}, ["--time=0-01:00:00"]), ("", {"max_time": 30}, ["--time=0-00:01:00"]), ("", {"max_time": 90061}, ["--time=1-01:01:00"]),
    ("-t 60", {"max_time": 3600}, ["--time=60"]), ("-t 1", {"max_time": 30}, ["--time=1"]),
    ("-n 8", {"max_nodes": 4}, ["--nodes=1-4", "--ntasks=8"]), ("-n 4", {"max_nodes": 4}, ["--ntasks=4"]),
    ("-N 1 -n 8", {"max_nodes": 4}, ["--nodes=1", "--ntasks=8"]),
    ("--spread-job", {"max_nodes": 4}, ["--nodes=1-4", "--spread-job"]),
    ("-n 8 --gres=gpu:4", {"max_gpus": 8, "max_nodes": 2}, ["--nodes=1-2", "--ntasks=8", "--gres=gpu:4"]),
    ("", {"partitions": ("a", "b"), "accounts": ("c",), "qos": ("d",)}, ["--account=c", "--partition=a", "--qos=d"]),
    ("-pb", {"partitions": ("a", "b")}, ["--partition=b"]),
    ("--exclusive=user", {"max_cpus": 8}, ["--exclusive=user"]), ("--exclusive", {"max_nodes": 8}, ["--exclusive"]),
    ("-a 1-10%2", {"max_array": 10}, ["--array=1-10%2"]),
])  # fmt: skip
def test_what_is_not_said_is_set_to_keep_within_the_caps(typed: str, caps: dict[str, object], expected: list[str]) -> None:
    assert words("sbatch", *typed.split(), "--wrap=x", rules=capped(**caps)) == expected


def test_caps_hold_for_every_channel() -> None:
    rules = capped(max_nodes=2)
    script = "#!/bin/sh\n#SBATCH -N 9\n"
    assert "line 2 of the script" in refusals("sbatch", "s", script=script, rules=rules)[0]
    assert "variable SBATCH_ARRAY_INX" in refusals("sbatch", "s", env={"SBATCH_ARRAY_INX": "1-9"}, rules=capped(max_array=2))[0]
    assert words("sbatch", "-N1", "s", script=script, rules=rules) == ["--nodes=1"]  # what is overridden does not count


def test_of_an_empty_list_nothing_may_be_used() -> None:
    assert "slurm.partitions is empty" in refusals("sbatch", "--wrap=x", rules=capped(partitions=()))[0]
    assert "slurm.qos is empty" in refusals("scontrol", "update", "jobid=1", "qos=a", rules=capped(qos=()))[0]


def test_a_change_cannot_count_more_nodes_than_the_cap() -> None:
    assert approved("scontrol", "update", "jobid=1", "Features=[a*2&b*2]", rules=capped(max_nodes=4))
    (said,) = refusals("scontrol", "update", "jobid=1", "Features=[a*2&b*3]", rules=capped(max_nodes=4))
    assert "asks for up to 5 nodes; slurm.max_nodes is 4" in said


def test_mail_follows_its_switch() -> None:
    off = capped(mail=False)
    assert words("sbatch", "--mail-type=END", "--mail-user=a@b", "--wrap=x") == ["--mail-type=END", "--mail-user=a@b"]
    assert ["mail is off" in one for one in refusals("sbatch", "--mail-type=END", "--mail-user=a@b", "--wrap=x", rules=off)] == [True, True]
    assert "mail is off" in refusals("scontrol", "update", "jobid=1", "MailUser=a", rules=off)[0]
