"""`explain sbatch …`: what it shows is what a chaperon does."""

from __future__ import annotations

from agent_sandbox.chaperon.explain import caps_in
from agent_sandbox.chaperon.explained import Explained, explain
from agent_sandbox.chaperon.orders import Caps
from agent_sandbox.chaperon.words import Request, Rules
from agent_sandbox.config.record import replace
from agent_sandbox.config.tables import layout
from tests.unit.chaperon.asking import FREE, PROJECT

SCRIPT = "#!/bin/sh\n#SBATCH -N 2 -t 30\n#SBATCH --output=x --quiet\ntrue\n"


def asked(command: str, *words: str, script: str | None = None, env: dict[str, str] | None = None, rules: Rules = FREE) -> Explained:
    return explain(Request(command=command, words=words, environment=env or {}, cwd=PROJECT, script=script), rules, "project", "/logs", 1000)


def test_every_option_has_a_row_with_its_place_and_the_command_is_shown() -> None:
    found = asked("sbatch", "-J", "x", "job.sh", "a", script=SCRIPT, env={"SBATCH_QOS": "high"}, rules=replace(FREE, partitions=("p",)))
    assert [(row[0], row[1], row[2]) for row in found.table()] == [
        ("-N 2", "line 2 of the script", "allow"), ("-t 30", "line 2 of the script", "allow"), ("--output=x", "line 3 of the script", "force"),
        ("--quiet", "line 3 of the script", "ignore"), ("--qos=high", "variable SBATCH_QOS", "allow"), ("-J x", "command line", "allow"),
        ("--partition=p", "rule", "force"),
    ]  # fmt: skip
    assert (found.verdict, found.argv) == ("allowed", (
        "sbatch", "--nodes=2", "--partition=p", "--qos=high", "--time=30", "--job-name=x", "--chdir=/", "--ignore-pbs", "--output=/logs/%j.log",
        "--error=/logs/%j.log", "--input=/dev/null", "--open-mode=append", "--export=ALL", "--parsable",
    ))  # fmt: skip


def test_a_refusal_has_number_cap_and_advice_in_the_row_of_its_option_and_nothing_runs() -> None:
    found = asked("sbatch", "-N5", "--wrap=x", rules=replace(FREE, max_nodes=4))
    assert (found.verdict, found.argv) == ("refused", ())
    assert found.table()[0] == ("-N 5", "command line", "refuse", "asks for up to 5 nodes; slurm.max_nodes is 4", "ask for less")
    assert len(found.table()) == 2


def test_what_names_a_job_is_said_to_hold_for_jobs_of_the_scope_alone() -> None:
    named, free = asked("scontrol", "update", "JobId=12", "TimeLimit=60"), asked("sinfo")
    assert (named.verdict, named.notes) == ("allowed", ("only for jobs that were submitted from this project (slurm.scope)",))
    assert (free.verdict, free.notes) == ("allowed", ())


def test_views_show_whose_jobs_they_are_about() -> None:
    assert asked("squeue", "--me").argv == ("squeue", "--jobs=JOBS", "--users=alice")
    assert asked("squeue", "--json").argv == ("squeue", "--jobs=JOBS", "--users=alice", "--json")
    assert asked("squeue", "-u", "1000").verdict == "allowed"
    other = asked("squeue", "-u", "bob")
    assert (other.verdict, other.argv) == ("refused", ())
    assert "only your own jobs are here" in other.refusals[0]
    assert asked("scontrol", "update", "JobId=3", "TimeLimit=5").argv == ("scontrol", "--", "update", "JobId=3", "TimeLimit=5")
    assert asked("srun", "hostname").table()[0][2:4] == ("refuse", "comes with a later version")


def test_the_table_fits_a_terminal() -> None:
    words = ("--container=" + "x" * 50, "--output=" + "y" * 100, "--nodelist=n[1-9]", "--unknown-option", "--time=1-00:00:00")
    rows = asked("sbatch", *words, script=SCRIPT, rules=replace(FREE, max_time=60, max_nodes=1)).table()
    assert max(map(len, layout(rows, 80))) <= 80


def test_the_summary_gives_the_same_caps() -> None:
    said = {
        "slurm.max_nodes": ["4", "admin"], "slurm.max_time": ["2h", "admin"], "slurm.max_jobs": ["unlimited", "person"],
        "slurm.qos": [["a"], "admin"], "slurm.partitions": [[], "admin"],
    }  # fmt: skip
    assert caps_in(said) == Caps(max_nodes=4, max_time=7200, qos=("a",), partitions=())
