"""Slurm's file name patterns. What is expected here was made by slurmstepd 22.05.8 itself."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.outputs import Files, Names, expand, files_of, names_of
from agent_sandbox.config.record import replace

NAMES = Names(job="12", array_job="12", task="4294967294", node="vm", node_number="0", user="ada", name="na me")
TASK = replace(NAMES, array_job="10", task="3")


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("a-%j-%5j-%15j", "a-12-00012-0000000012"),
        ("%A-%5A-%a", "12-00012-4294967294"),
        ("%J-%5J", "12-00012"),
        ("%n-%3n-%t-%2t", "0-000-0-00"),
        ("%N-%5N-%u-%9u-%x-%3x", "vm-vm-ada-ada-na me-na me"),
        ("%s-%5s", "batch-batch"),
        ("b%%-%%j-%q-%5q-%0j-%-%", "b%-%j-%q-5q-12-%-%"),
        ("d%5", "d5"),
        ("d%15q", "d5q"),
        ("e%%%j", "e%12"),
        ("f%%%%j", "f%%j"),
        ("c\\\\%j\\x", "c\\%jx"),
        ("\\%j", "%j"),
        ("h%b-%i", "h%b-%i"),
        ("plain", "plain"),
        ("", ""),
        ("end\\", "end"),
    ],
)
def test_a_pattern_becomes_the_name_that_slurm_makes_of_it(pattern: str, name: str) -> None:
    assert expand(pattern, NAMES) == name


def test_an_array_task_has_numbers_of_its_own() -> None:
    assert expand("k%4a_%A_%5A_%j_%J", TASK) == "k0003_10_00010_12_12"


def test_files_that_were_not_asked_for_have_the_usual_names() -> None:
    nothing = Files(input="", output="", error="")
    assert files_of(nothing, NAMES, "/p") == Files(input="/dev/null", output="/p/slurm-12.out", error="/p/slurm-12.out")
    assert files_of(nothing, TASK, "/p/") == Files(input="/dev/null", output="/p/slurm-10_3.out", error="/p/slurm-10_3.out")


def test_a_relative_name_lies_in_the_working_directory_and_an_absolute_one_where_it_says() -> None:
    asked = Files(input="in/%j", output="/abs/%x", error="../e")
    assert files_of(asked, NAMES, "/p/q") == Files(input="/p/q/in/12", output="/abs/na me", error="/p/q/../e")


def test_the_numbers_are_slurms() -> None:
    given = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "6", "SLURM_ARRAY_TASK_ID": "1", "SLURMD_NODENAME": "n1.site", "SLURM_JOB_NAME": "j"}
    assert names_of(given, "ada", "other") == Names(job="7", array_job="6", task="1", node="n1", node_number="0", user="ada", name="j")
