"""Lines of a script are read as sbatch reads them: the same cases are put to the real one in tests/slurm/test_registry.py."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.directives import split
from tests.unit.chaperon.asking import PROJECT, approved, refusals, words

HEAD = "#!/bin/sh\n"


@pytest.mark.parametrize(("rest", "expected"), [
    (" -n 3 -e /x", ["-n", "3", "-e", "/x"]), ("-n3", ["-n3"]), ("\t-J\tq\f-t\v5", ["-J", "q", "-t", "5"]),
    (' --comment="a b" # c', ["--comment=a b"]), (" --comment='a \"b'", ['--comment=a "b']), (r' --comment="a\"b"', ['--comment=a"b']),
    (r" --comment=a\ b", ["--comment=a", "b"]), (r" --comment=a\#b\\", ["--comment=a#b\\"]), (" --comment=a#b -n 2", ["--comment=a"]),
    (' -t 4 "" -n 2', ["-t", "4"]), (' --comment="" -n 2', ["--comment=", "-n", "2"]), (" a'b c'd", ["ab cd"]),
    ("\u00a0-n", ["\u00a0-n"]), ("", []), ("   ", []), (" -n 2\\", ["-n", "2"]),
])  # fmt: skip
def test_a_line_is_taken_apart_as_sbatch_does_it(rest: str, expected: list[str]) -> None:
    assert [word.text for word in split(rest, 1)] == expected


@pytest.mark.parametrize(("script", "expected"), [
    ("#SBATCH -n 3 -t 5\n", ["--ntasks=3", "--time=5"]), ("#SBATCH-n3\n", ["--ntasks=3"]), ("#SLURM -n 3\n", ["--ntasks=3"]),
    ("  #SBATCH -n 3\n#SBATCH -t5\n", ["--time=5"]), ("# SBATCH -n 3\n", []), ("##SBATCH -n 3\n", []), ("#sbatch -n 3\n", []),
    ("#SBATCH -J\n#SBATCH xx\n", ["--job-name=xx"]), ("\n  \n# a\n#SBATCH -t4\ntrue\n#SBATCH -t5\n", ["--time=4"]),
    ("#SBATCH -t4 --\n", ["--time=4"]), ("#SBATCH -n 2\\\n#SBATCH -t 3\n", ["--ntasks=2", "--time=3"]),
    ("#SBATCH --comment=hetjobs\n", ["--comment=hetjobs"]), ("#SBATCH --wrap=x --quiet -t4\n", ["--time=4"]),
    ("#SBATCH -t4", ["--time=4"]), ("true # x\n#SBATCH -t4\n", []),
])  # fmt: skip
def test_directives_count_where_sbatch_reads_them(script: str, expected: list[str]) -> None:
    assert words("sbatch", "s.sh", script=HEAD + script) == expected


@pytest.mark.parametrize(("script", "said"), [
    ("#SBATCH -t4 foo\n", "is not an option"), ("#SBATCHER -n 2\n", "is not an option"), ("#SBATCH -t4 --\n#SBATCH -n 2\n", "is not an option"),
    ('#SBATCH --comment="x y\n', "quotation"), ("#SBATCH -n 2 : -n 3\n", "starts a word"), ("#SBATCH -n 1\r\n", "DOS line ends"),
    ("#SBATCH \u00a0 -n 2\n", "is not an option"), ("#SBATCH -n 2\0\n", "NUL"), ("#SBATCH hetjob\n", "several components"),
    ("#SBATCH -H ':'\n", "several components"), ("#SBATCH PackJob\n#SBATCH -n 1\n", "several components"),
    ("#SBATCH -n 1 --uid=0\n", "jobs run as you"),
    ("#SBATCH --contain\\er=x\n", "outside the jail"), ("#SBATCH '--cont'ainer=x\n", "outside the jail"),
    ("#SBATCH --prolog=/x\n", "not an option that is known"),
    ("#SBATCH -M\tother\n", "this cluster"), ("#SBATCH --bbf=/x\n", "as you"), ("#SBATCH -F/etc/passwd\n", "file of hosts"),
    ("#SBATCH -w ./x\n", "file is not read"),
])  # fmt: skip
def test_directives_that_are_refused(script: str, said: str) -> None:
    assert said in " ".join(refusals("sbatch", "s.sh", script=HEAD + script))


def test_a_script_without_an_interpreter_is_refused() -> None:
    assert "the batch script is empty" in refusals("sbatch", "s.sh", script="")[0]
    for script in ("echo\n", "\n#!/bin/sh\n"):
        assert "does not look like a batch script" in refusals("sbatch", "s.sh", script=script)[0]


@pytest.mark.parametrize("line", [
    "#SBATCH -n 1 -e /any/path", "#SBATCH -e/any/path", "#SBATCH --err=/any/path", '#SBATCH "-e" "/any/path"', "#SBATCH\t-e\t/any/path",
    "#SBATCH -n 1\f-e /any/path", "#SBATCH -e\n#SBATCH /any/path", "#SBATCH --er'ror'=/any/path", "#SLURM --error /any/path",
    "#PBS -e /any/path", "true\n#PBS -e /any/path", "#PBS --err=/any/path", "#BSUB -e /any/path", "#SBATCH -He/any/path",
])  # fmt: skip
def test_a_file_in_any_spelling_is_opened_inside_and_never_by_slurm(line: str) -> None:
    answer = approved("sbatch", "s.sh", script=f"{HEAD}{line}\n")
    assert answer.value("error") == "/any/path"
    assert not [one for one in answer.options if "path" in str(one.value)]


@pytest.mark.parametrize(("line", "expected"), [
    ("#PBS -N a -l nodes=2:ppn=4,walltime=0:10:00,mem=100mb -j oe -p 5",
     ["--nodes=2", "--ntasks=8", "--mem=100mb", "--time=0:10:00", "--nice=5", "--job-name=a"]),
    ("#PBS -l select=2:ncpus=4:mpiprocs=2", ["--nodes=2", "--ntasks-per-node=2", "--cpus-per-task=2", "--mincpus=4"]),
    ("#PBS -l naccelerators=2", ["--gres=gpu:2"]), ("#PBS -l accelerator=true", ["--gres=gpu:1"]),
    ("#PBS -l nodes=n1+n2:ppn=2", ["--nodelist=n1,n2", "--ntasks=2"]),
    ("#PBS -t 1-3 -h -q short -A me", ["--account=me", "--partition=short", "--hold", "--array=1-3"]), ("#PBS -J 1-3", ["--array=1-3"]),
    ("#PBS -m abe -M a@b", ["--mail-type=FAIL,BEGIN,END", "--mail-user=a@b"]), ("#PBS -m n", []), ("#BSUB\n#PBS -N late", []),
    ("#PBS -W depend=afterok:1", ["--dependency=afterok:1"]),
    ("#PBS -W umask=022 -S /bin/bash -V -k oe -r y -u x -z -I -c n -C x", []), ("#PBS -l pmem=4gb,nodes=1", ["--nodes=1"]),
    ("#BSUB -J b -n 2,4 -W 5 -M 100 -x -q short",
     ["--exclusive", "--ntasks=4", "--mem-per-cpu=100K", "--partition=short", "--time=5", "--job-name=b"]),
    ('#BSUB -m "n1 n2"', ["--nodelist=n1,n2"]), ("#BSUB -n 2\n#PBS -t 1-3", ["--ntasks=2"]),
    ("#SBATCH -t4 --ignore-pbs\n#PBS -l walltime=5", ["--time=4"]),
    ("#SBATCH -t4\n#PBS -l walltime=5", ["--time=5"]), ("true\n" * 100 + "#PBS -N late", ["--job-name=late"]), ("true\n" * 101 + "#PBS -N late", []),
])  # fmt: skip
def test_directives_of_other_schedulers_are_read_as_sbatch_reads_them(line: str, expected: list[str]) -> None:
    assert words("sbatch", "s.sh", script=f"{HEAD}{line}\n") == expected
    assert not [word for word in words("sbatch", "--ignore-pbs", "s.sh", script=f"{HEAD}{line}\n") if "late" in word or "gres" in word]


def test_the_directory_of_lsf_is_one_of_the_project() -> None:
    assert approved("sbatch", "s", script=f"{HEAD}#BSUB -cwd sub -n 2\n").meaning("chdir") == f"{PROJECT}/sub"


def test_variables_of_pbs_are_exported_inside() -> None:
    assert approved("sbatch", "s", script=f"{HEAD}#PBS -v A,B=2 -v BASH_ENV=/x\n").value("export") == "A,B=2,BASH_ENV=/x"


@pytest.mark.parametrize("line", [
    "#PBS -l foo=1", "#PBS -l mem=1xyz", "#PBS foo", "#PBS -x", "#PBS -p 5x", "#PBS -p -5", "#PBS -m q", "#PBS --join oe", "#BSUB -n 2,",
    "#BSUB -cwd /etc", "#BSUB -P y",
])  # fmt: skip
def test_directives_of_other_schedulers_that_are_refused(line: str) -> None:
    assert refusals("sbatch", "s.sh", script=f"{HEAD}{line}\n")


def test_endless_scripts_are_read_to_a_bound() -> None:
    assert "more than 2000 words" in refusals("sbatch", "s", script=HEAD + "#SBATCH -n 1\n" * 100_000)[0]
    assert words("sbatch", "s", script=HEAD + "# x\n" * 200_000 + "#SBATCH -n 2\n") == ["--ntasks=2"]
