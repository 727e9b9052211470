"""Words and variables are read as getopt_long and Slurm read them."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.parse import MOST_REFUSALS, MOST_WORDS
from agent_sandbox.chaperon.validate import script_of
from tests.unit.chaperon.asking import FREE, NEWEST, approved, refusals, words


@pytest.mark.parametrize(
    "typed",
    [
        ["-n", "4", "-H", "-Q"], ["-n4", "-HQ"], ["-HQn4"], ["-HQn", "4"], ["--ntasks=4", "--hold", "--quiet"], ["--ntasks", "4", "--hol", "--qui"],
        ["-n9", "-n", "4", "-HQ", "-H"], ["--ntasks=4", "--hold", "--quiet", "--"],
    ],
)  # fmt: skip
def test_spellings_of_the_same_are_the_same(typed: list[str]) -> None:
    assert words("sbatch", *typed, "s.sh") == ["--ntasks=4", "--hold", "--quiet"]


def test_the_script_ends_the_options_and_its_arguments_stay_untouched() -> None:
    answer = approved("sbatch", "-n4", "s.sh", "-n", "8", "--container=x", ":", "--", "")
    assert answer.operands == ("s.sh", "-n", "8", "--container=x", ":", "--", "")
    assert approved("sbatch", "--", "-n").operands == ("-n",)
    assert approved("sbatch", "--exclusive", "user").operands == ("user",)  # a value that may be left out is never the next word


def test_the_word_after_an_option_is_its_value_whatever_it_looks_like() -> None:
    assert words("sbatch", "--job-name", "--container=x", "s.sh") == ["--job-name=--container=x"]
    assert words("sbatch", "-J", "--", "s.sh") == ["--job-name=--"]


@pytest.mark.parametrize("typed", ["--", "--n", "--tim=5", "--cont", "--exc=x", "--extr=1"])
def test_an_abbreviation_that_could_mean_two_things_is_refused(typed: str) -> None:
    if typed == "--":
        assert words("sbatch", typed) == []
        return
    assert "could mean --" in refusals("sbatch", typed, "1")[0]


@pytest.mark.parametrize(("typed", "said"), [
    (["--ntask=4"], "could mean --ntasks, --ntasks-per-node"),
    (["--hold=yes"], "--hold (command line): takes no value"),
    (["--ntasks"], "--ntasks (command line): needs a value"),
    (["-n"], "-n (command line): needs a value"),
    (["-y"], "-y (command line): is not an option that is known here"),
    (["--partitions=x"], "the nearest that is allowed is --partition"),
    (["--spank-thing=1"], "is not an option that is known here"),
    (["--=x"], "could mean"),
    (["-J", ":", "x"], "two ways"),
    (["-n\u0663"], "must be a whole number"),
    (["--extra=1"], "needs Slurm 23.02; which one is here is not known"),
])  # fmt: skip
def test_what_is_not_understood_is_refused(typed: list[str], said: str) -> None:
    assert said in refusals("sbatch", *typed)[0]


def test_all_refusals_come_at_once_with_their_place() -> None:
    said = refusals(
        "sbatch", "--container=a", "-n0", script="#!/bin/sh\n\n#SBATCH -t x\n#PBS -l foo=1\n", env={"SLURM_CLUSTERS": "b", "SBATCH_QOS": "a b"},
    )  # fmt: skip
    assert [one.partition(":")[0] for one in said] == [
        "-l (line 4 of the script)", "-t x (line 3 of the script)", "SBATCH_QOS (variable SBATCH_QOS)",
        "SLURM_CLUSTERS (variable SLURM_CLUSTERS)", "--container=a (command line)", "-n 0 (command line)",
    ]  # fmt: skip


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert "\x1b" not in refusals("sbatch", "--\x1b[2J=x")[0]
    assert "\x1b" not in refusals("sbatch", "--qos=\x1b[2J")[0]


def test_the_command_line_wins_over_variables_and_they_over_the_script() -> None:
    script = "#!/bin/sh\n#SBATCH -n 1 -t 1 -J script\n"
    env = {"SBATCH_TIMELIMIT": "2", "SBATCH_JOB_NAME": "variable"}
    assert words("sbatch", "-J", "line", "s.sh", script=script, env=env) == ["--ntasks=1", "--time=2", "--job-name=line"]


@pytest.mark.parametrize(("env", "expected"), [
    ({"SBATCH_REQUEUE": ""}, ["--requeue"]), ({"SBATCH_REQUEUE": "yes"}, ["--requeue"]), ({"SBATCH_REQUEUE": "1"}, ["--requeue"]),
    ({"SBATCH_REQUEUE": "no"}, []), ({"SBATCH_REQUEUE": "0"}, []), ({"SBATCH_EXCLUSIVE": ""}, ["--exclusive"]),
    ({"SBATCH_EXCLUSIVE": "user"}, ["--exclusive=user"]), ({"SBATCH_DEBUG": "2"}, ["--verbose", "--verbose"]),
    ({"SBATCH_REQ_SWITCH": "2", "SBATCH_WAIT4SWITCH": "10"}, ["--switches=2@10"]), ({"SBATCH_WAIT4SWITCH": "10"}, []),
    ({"SLURM_HINT": "compute_bound", "SBATCH_HINT": "multithread"}, ["--hint=multithread"]),
    ({"SLURM_NTASKS": "5", "SRUN_DEBUG": "1", "OTHER": "x"}, []),
])  # fmt: skip
def test_variables_are_read_as_slurm_reads_them(env: dict[str, str], expected: list[str]) -> None:
    assert words("sbatch", "s.sh", env=env) == expected


def test_a_refused_variable_says_which_to_unset() -> None:
    assert refusals("sbatch", "--wrap=x", env={"SLURM_HOSTFILE": "/etc/passwd"}) == [
        "SLURM_HOSTFILE (variable SLURM_HOSTFILE): would read a file of hosts outside the jail; unset SLURM_HOSTFILE"
    ]


@pytest.mark.parametrize(("typed", "expected"), [
    (["--exclusive", "--oversubscribe"], ["--oversubscribe"]), (["--oversubscribe", "--exclusive"], ["--exclusive"]),
    (["--requeue", "--no-requeue"], ["--no-requeue"]), (["--no-requeue", "--requeue"], ["--requeue"]),
    (["-vvv"], ["--verbose"] * 3), (["-" + "v" * 50], ["--verbose"] * 9),
    (["--mail-type=END", "--mail-type=FAIL"], ["--mail-type=END,FAIL"]),
    (["-S1", "--thread-spec=2"], ["--core-spec=1", "--thread-spec=2"]),
])  # fmt: skip
def test_repeated_options_mean_what_they_mean_to_slurm(typed: list[str], expected: list[str]) -> None:
    assert words("sbatch", *typed, "s.sh") == expected


@pytest.mark.parametrize(("value", "is_set"), [
    ("", True), ("yes", True), ("1", True), ("9999999999", True), ("-1", True), (" +4", True), ("0", False), ("00", False), ("no", False),
    ("1x", False), ("1 ", False), ("-", False), (" ", False), ("٣", False),
])  # fmt: skip
def test_a_flag_of_a_variable_is_set_as_strtol_has_it(value: str, is_set: bool) -> None:
    assert words("sbatch", "s.sh", env={"SBATCH_SPREAD_JOB": value}) == (["--spread-job"] if is_set else [])


def test_memory_from_a_variable_gives_way_to_any_other() -> None:
    env = {"SBATCH_MEM_PER_CPU": "1G"}
    assert words("sbatch", "--mem=2G", env=env) == ["--mem=2G"]
    assert words("sbatch", "s", script="#!/bin/sh\n#SBATCH --mem=2G\n", env=env) == ["--mem=2G"]
    assert words("sbatch", "--mem=2G", "--mem-per-cpu=1G") == ["--mem=2G", "--mem-per-cpu=1G"]  # Slurm's to refuse


def test_components_are_read_and_refused_as_one() -> None:
    said = refusals("sbatch", "-n1", ":", "--container=x", ":", "-n0", "s.sh")
    assert [one.partition(" ")[0] for one in said] == ["`:`", "--container=x", "-n"]


def test_views_take_options_anywhere() -> None:
    assert words("scancel", "12", "-s", "TERM", "13") == ["--signal=TERM", "--", "12", "13"]
    assert words("scancel", "--", "12") == ["--", "12"]
    assert "is not a job id" in refusals("scancel", "--", "-s")[0]


def test_newer_options_are_for_newer_slurms() -> None:
    assert words("sbatch", "--wrap=x", env={"SBATCH_OOM_KILL_STEP": "1"}) == []  # 22.05 does not read it
    assert words("sbatch", "--wrap=x", env={"SBATCH_OOM_KILL_STEP": "1"}, rules=NEWEST) == ["--oom-kill-step=1"]
    assert words("sbatch", "--extra=a b", "--wrap=x", rules=NEWEST) == ["--extra=a b"]
    assert "Slurm 24.05 was the last that knew it; here is 25.11" in refusals("sbatch", "--power=level", rules=NEWEST)[0]
    assert words("sbatch", "--power=level", "--wrap=x", rules=FREE) == ["--power=level"]


@pytest.mark.parametrize(("typed", "script"), [
    (("-n4", "s.sh", "a"), ("s.sh", "")), (("-n4",), ("", "")), (("--wrap", "x"), None), (("--help",), None), (("--foo", "s.sh"), None),
    (("-Jx", "--", "-s"), ("-s", "")), (("-D", "sub/", "s.sh"), ("sub/s.sh", "s.sh")), (("-Dsub", "./s.sh"), ("./s.sh", "")),
    (("-Da", "--chdir=/b", "c/s.sh"), ("/b/c/s.sh", "c/s.sh")),
])  # fmt: skip
def test_which_script_a_line_names(typed: tuple[str, ...], script: tuple[str, str] | None) -> None:
    assert script_of(typed) == script


def test_endless_lines_are_read_to_a_bound() -> None:
    assert len(refusals("sbatch", *["--foo"] * 100_000)) <= MOST_REFUSALS
    assert "more than" in refusals("sbatch", *["-H"] * (MOST_WORDS + 10))[-1]
    assert approved("sbatch", "s.sh", *["x"] * 50_000).operands[-1] == "x"
