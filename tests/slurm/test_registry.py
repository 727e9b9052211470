"""The option tables against the real Slurm: it knows what they know, and reads what was rebuilt as it reads what was typed."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent_sandbox.chaperon.rebuild import force, rebuild
from agent_sandbox.chaperon.registry import COMMANDS
from agent_sandbox.chaperon.validate import validate
from agent_sandbox.chaperon.words import FLAG, MAYBE, OLDEST, VALUE, Approved, Request, Rules, Sizes
from tests.machines import users
from tests.machines.needs import missing, need
from tests.machines.slurm.cluster import Slurm

HOST = socket.gethostname().partition(".")[0]
HEAD = "#!/bin/sh\n"
RULES = Rules(project="/", user="", mail=True)
# Prints the options that a command hands to getopt_long, and ends it.
DUMP = r"""
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>
int getopt_long(int c, char *const *v, const char *s, const struct option *l, int *i) {
    printf("%s\n", s);
    for (; l && l->name; l++) printf("%s %d %d\n", l->name, l->has_arg, l->val);
    fflush(stdout);
    _exit(0);
}
"""
WITH_TABLES = [name for name, command in COMMANDS.items() if command.options]
# Options that a later version gave a value, and letters that no page explains.
LATER_VALUES = {"json", "yaml", "pty"}
LETTERS_WITHOUT_MEANING = {"squeue": "U", "sacct": "t", "sshare": "qth"}
NOT_IN_THIS_ONE = {"sbatch": {"x11"}}

OPTIONS = [
    "", "-n 3", "-n3 -c2", "--ntasks=2 --cpus-per-task=2 --mem=100M", "-N 1", "-N1-1 -n4", "--nodes 1 --ntasks-per-node=3", "-t 5", "-t 1:30",
    "-t 1:2:3", "-t 1-2:3:4",
    "-t UNLIMITED", "-t 0", "--time-min=3 -t 9", "-J name", "--job-name=a:b/c", "--comment=x,y;z", "-p short -t 5", "--partition=short,debug -t5",
    "-A physics", "-q high",
    "--nice", "--nice=50", "-H", "-a 1-3", "-a 1,3-9:2%2", "-d singleton", "--begin=now+1hour", "--deadline=now+3hours -t1", "-w HOST",
    "--nodelist=HOST -n2",
    "--exclusive", "--exclusive=user", "-s", "--exclusive -s", "-s --exclusive", "--requeue --no-requeue", "--no-requeue --requeue",
    "--mem-per-cpu=10M -n2", "--tmp=10",
    "--mem=1gb", "--mincpus=2", "-B 1:2:1", "--sockets-per-node=1 --cores-per-socket=2", "--threads-per-core=1", "--hint=nomultithread",
    "--hint=memory_bound",
    "--signal=B:USR1@60", "--signal=TERM", "-O -n 20", "-k", "--no-kill=off", "--contiguous", "--use-min-nodes -N1", "--spread-job -N1",
    "--switches=1@5", "--wckey=x",
    "-m cyclic:block", "-m plane=2 -n4", "--mem-bind=local", "--cpu-freq=high", "--profile=Task", "--acctg-freq=task=30", "--wait-all-nodes=1",
    "--kill-on-invalid-dep=yes",
    "-o out.txt -e err.txt", "--output=%x-%j.o -i /dev/zero", "--open-mode=append", "--mail-type=END --mail-type=FAIL --mail-user=a@b.org",
    "--ntasks-per-core=1 -n2",
    "--ntasks-per-socket=2 -n2", "--prio=5", "--mincp 2 --job-n xx", "-HJx -n2", "--gres-flags=enforce-binding", "--delay-boot=5", "--priori 5",
    "--batch=x --test-only",
]  # fmt: skip
DIRECTIVES = [
    "#SBATCH -n 3 -e err -t 5", "#SBATCH-n3", "#SLURM -n 3", "  #SBATCH -n 3\n#SBATCH -t5", "#SBATCH -J\n#SBATCH xx",
    "\n  \n# x\n#SBATCH -t4\ntrue\n#SBATCH -t5",
    "#SBATCH\t-n\t3\f-t\v5", '#SBATCH --comment="a b" # c\n#SBATCH -n2', "#SBATCH --comment=a#b -n 2", '#SBATCH -t 4 "" -n 2',
    '#SBATCH --comment="" -n 2',
    r'#SBATCH --comment="a\"b\\c"', r"#SBATCH --comment='a \"b'", "#SBATCH -t4 --", "#SBATCH -n 2\\\n#SBATCH -t 3", "#SBATCH --comment=hetjobs",
    "#SBATCH --wrap=x --quiet -t4",
    "#SBATCH --jo=a'b'c -n'2'", "# SBATCH -n 3\n##SBATCH -n 4\n#sbatch -n 5", "#SBATCH -n 2 -n 4", "#SBATCH -t4 -Jsb\n#PBS -l walltime=0:7:00 -N pbs",
    "true\n#PBS -N late -e err", "#BSUB -J bs -n 2,4 -W 5\n#PBS -N late", "#BSUB \n#PBS -N late",
    "#PBS -N pp -l nodes=1:ppn=4,walltime=0:10:00,mem=100mb -j oe -p 5 -t 1-3", "#PBS -o none -e NONE",
    "#PBS -l select=1:ncpus=4:mpiprocs=2", "#PBS -l cput=0:5:00 -h", "#PBS -q short -A physics", "#PBS -m abe -M a@b.org", "#PBS -l nice=3,ncpus=2",
    "#PBS --err=err --out out",
    "#BSUB -M 100000 -x", "#BSUB -q short -o x -e none", "#SBATCH -t4 --ignore-pbs\n#PBS -N no", "true\n" * 100 + "#PBS -N near",
    "true\n" * 101 + "#PBS -N far",
    "#PBS -W depend=singleton -S /bin/bash -V -k oe -r y -u x -z -I -c n -C x", f"#PBS -l nodes={HOST}:ppn=2", f'#BSUB -m "{HOST} {HOST}"',
    "#PBS -l pmem=4mb,nodes=1",
    "#BSUB -cwd /tmp -n 2", "#BSUB -n 2 -c /tmp",
]  # fmt: skip
VARIABLES = [
    {"SBATCH_TIMELIMIT": "5", "SBATCH_JOB_NAME": "v"}, {"SBATCH_EXCLUSIVE": ""}, {"SBATCH_EXCLUSIVE": "user"}, {"SBATCH_NO_REQUEUE": "no"},
    {"SBATCH_NO_REQUEUE": "1"},
    {"SBATCH_REQ_SWITCH": "2", "SBATCH_WAIT4SWITCH": "10"}, {"SBATCH_MEM_PER_CPU": "1G"},
    {"SLURM_HINT": "compute_bound", "SBATCH_HINT": "nomultithread"},
    {"SBATCH_ACCOUNT": "physics", "SBATCH_QOS": "high"}, {"SBATCH_ARRAY_INX": "1-2"}, {"SBATCH_OUTPUT": "o", "SBATCH_ERROR": "e"},
    {"SBATCH_OVERCOMMIT": "0"},
    {"SBATCH_SIGNAL": "USR1@9", "SBATCH_PARTITION": "short"}, {"SLURM_NTASKS": "7"}, {"SBATCH_THREADS_PER_CORE": "1"}, {"SBATCH_REQUEUE": ""},
    {"SBATCH_IGNORE_PBS": "1"}, {"SBATCH_OVERCOMMIT": "9999999999"}, {"SBATCH_OVERCOMMIT": " -1"}, {"SBATCH_OVERCOMMIT": "1 "},
]  # fmt: skip
SCRIPT_BESIDE_VARIABLES = HEAD + "#SBATCH --mem=100 -t 9 -n 2\n#PBS -N pbs\n"
# Of a job: what differs between any two.
UNLIKE = {
    "AllocNode:Sid", "JobId", "ArrayJobId", "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "Deadline", "EndTime", "Command",
    "LastSchedEval", "Priority", "SecsPreSuspend",
}  # fmt: skip


@pytest.fixture(scope="session")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("getopt")
    (top / "dump.c").write_text(DUMP)
    subprocess.run((need("gcc"), "-w", "-shared", "-fPIC", "-o", str(top / "dump.so"), str(top / "dump.c")), check=True)
    return top / "dump.so"


def known(slurm: Slurm, dump: Path, command: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """The letters, and of each long name what it takes and its letter, as the program itself says."""
    done = subprocess.run((need(command), "x"), env={**slurm.environment, "LD_PRELOAD": str(dump)}, capture_output=True, text=True, check=True)
    letters, *rows = done.stdout.splitlines()
    names = {}
    for name, takes, code in (row.split() for row in rows):
        letter = chr(int(code)) if 32 < int(code) < 127 and chr(int(code)) in letters else ""
        names[name] = ((FLAG, VALUE, MAYBE)[int(takes)], letter)
    return letters, names


@pytest.mark.parametrize("command", WITH_TABLES)
def test_a_table_has_every_option_of_the_real_command_and_reads_it_alike(slurm: Slurm, dump: Path, command: str) -> None:
    letters, real = known(slurm, dump, command)
    ours = {name: option for option in COMMANDS[command].options for name in (option.name, *option.aliases)}
    assert real.keys() - ours.keys() == set()
    assert {name for name, option in ours.items() if option.since == OLDEST} - real.keys() == NOT_IN_THIS_ONE.get(command, set())
    for name, (takes, letter) in real.items():
        assert ours[name].takes == takes or (name in LATER_VALUES and ours[name].takes == MAYBE), name
        assert ours[name].short == letter or name == "usage", name
    held = {option.short for option in COMMANDS[command].options} | set(LETTERS_WITHOUT_MEANING.get(command, ""))
    assert set(letters) - set("+:") - held == set()
    assert letters.startswith("+") == (not COMMANDS[command].permutes)


@pytest.mark.parametrize("command", WITH_TABLES)
def test_every_option_of_the_page_is_in_the_table(command: str) -> None:
    ours = {name for option in COMMANDS[command].options for name in (option.name, *option.aliases)}
    settings = {"LC_ALL": "C", "MANWIDTH": "120", "PATH": "/usr/bin:/bin"}
    page = subprocess.run((need("man"), "-P", "cat", command), env=settings, capture_output=True, text=True)
    heads = re.findall(r"^ {7}(-[^ ,]+(?:, --|=)?.*)$", page.stdout, re.MULTILINE)
    names = {name for head in heads for name in re.findall(r"--([A-Za-z][A-Za-z0-9_-]*)", head.split("  ")[0])}
    if not names:
        missing(f"there is no manual page of {command}")
    assert {name for name in names if not any(own.startswith(name) for own in ours)} == set()  # pages abbreviate too


def approve(words: list[str], project: Path, script: str, env: Mapping[str, str]) -> Approved:
    answer = validate(Request(command="sbatch", words=tuple(words), environment=env, cwd=str(project), script=script), RULES)
    assert isinstance(answer, Approved), [str(one) for one in answer.reasons]
    for one in answer.wanted:  # what the envelope does inside, done by Slurm for once
        if one.name in ("output", "error", "input", "open-mode", "chdir"):
            answer = force(answer, one.name, one.value)
    return answer


def submit(slurm: Slurm, user: users.TestUser, project: Path, words: list[str], env: Mapping[str, str], script: str) -> dict[str, str]:
    """The job as Slurm took it, with its own id left out."""
    (project / "job.sh").write_text(script)
    done = users.run_as(user, ["/usr/bin/sbatch", "--hold", "--parsable", *words, "job.sh"], env={**slurm.environment, **env}, cwd=project)
    if done.returncode or not done.stdout.strip():
        return {"refused": "".join(line for line in done.stderr.splitlines() if "Change from #SLURM" not in line)}
    number = done.stdout.partition(";")[0].strip()
    shown = slurm.job(int(number))
    return {key: unnumbered(held, number) if key.startswith("Std") else held for key, held in shown.items() if key not in UNLIKE}


def unnumbered(path: str, job: str) -> str:
    """Without the job's own id in its name; what is a number elsewhere stays."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{re.sub(rf'(?<![0-9]){job}(?![0-9])', 'ID', name)}"


def unlike(slurm: Slurm, user: users.TestUser, project: Path, words: list[str], env: Mapping[str, str], script: str) -> list[object]:
    """Submitted as it was typed, and as it was rebuilt: in what the two jobs differ, or that there was none."""
    typed = submit(slurm, user, project, words, env, script)
    answer = approve([*words, "job.sh"], project, script, env)
    rebuilt = list(rebuild(answer))
    ours = submit(slurm, user, project, ["--ignore-pbs", *rebuilt], {}, HEAD + "true\n")
    differing: list[object] = sorted(set(typed.items()) ^ set(ours.items()))
    if "--test-only" not in words:
        differing += [typed["refused"]] if "refused" in typed else underestimated(answer.sizes, ours)
    return [(words, env, script[:200], rebuilt, differing)] if differing else []


def underestimated(sizes: Sizes | None, job: Mapping[str, str]) -> list[object]:
    """What Slurm counts more of than the caps are held against."""
    assert sizes
    counted = {name: int(job.get(name, "0").rpartition("-")[2]) for name in ("NumNodes", "NumTasks", "NumCPUs")}
    held = {"NumNodes": sizes.nodes, "NumTasks": sizes.tasks, "NumCPUs": sizes.cpus}
    return [(name, counted[name], held[name]) for name in held if counted[name] > held[name]]


@pytest.fixture
def folder(slurm: Slurm, member: users.TestUser, project: Path) -> Iterator[Path]:
    """The project; what was submitted from it leaves the queue."""
    yield project
    slurm.run(member, "/usr/bin/scancel", f"--user={member.name}", "--state=PENDING")


def batches(cases: list[str], size: int = 10) -> list[list[str]]:
    return [cases[start : start + size] for start in range(0, len(cases), size)]


@pytest.mark.parametrize("cases", batches(OPTIONS), ids=lambda cases: cases[0] or "none")
def test_slurm_takes_what_was_rebuilt_for_what_was_typed(slurm: Slurm, member: users.TestUser, folder: Path, cases: list[str]) -> None:
    assert [one for case in cases for one in unlike(slurm, member, folder, case.replace("HOST", HOST).split(), {}, HEAD + "true\n")] == []


@pytest.mark.parametrize("cases", batches(DIRECTIVES), ids=lambda cases: cases[0])
def test_slurm_takes_what_was_rebuilt_for_what_a_script_says(slurm: Slurm, member: users.TestUser, folder: Path, cases: list[str]) -> None:
    assert [one for case in cases for one in unlike(slurm, member, folder, [], {}, f"{HEAD}{case}\n")] == []


def test_slurm_takes_what_was_rebuilt_for_what_variables_say(slurm: Slurm, member: users.TestUser, folder: Path) -> None:
    assert [one for env in VARIABLES for one in unlike(slurm, member, folder, [], env, SCRIPT_BESIDE_VARIABLES)] == []


REFUSED_BY_BOTH = [
    "#SBATCH -t4 foo", "#SBATCHER -n 2", "#SBATCH -t4 --\n#SBATCH -n 2", '#SBATCH --comment="x y', "#SBATCH -n 2 : -n 3", "#SBATCH -n 1\r",
    "#PBS foo", "#PBS -x", "#PBS -m q", "#BSUB -n 2,", "#BSUB -P y", r"#SBATCH --comment=a\ b", "#SBATCH --tim=5", "#SBATCH --hold=1",
    "#SBATCH -n", "#SBATCH -H ':'",
]  # fmt: skip


def test_what_slurm_refuses_in_a_script_is_refused_here(slurm: Slurm, member: users.TestUser, folder: Path) -> None:
    for case in REFUSED_BY_BOTH:
        assert "refused" in submit(slurm, member, folder, [], {}, f"{HEAD}{case}\n"), case
        with pytest.raises(AssertionError):
            approve(["job.sh"], folder, f"{HEAD}{case}\n", {})


def test_a_file_of_hosts_is_read_by_slurm_and_refused_here(slurm: Slurm, member: users.TestUser, folder: Path) -> None:
    hosts = folder / "hosts"
    hosts.write_text(f"{HOST}\n")
    for words, env in ((["-F", "./hosts"], {}), (["-w", "./hosts"], {}), ([], {"SLURM_HOSTFILE": "./hosts"})):
        assert submit(slurm, member, folder, words, env, HEAD + "true\n")["ReqNodeList"] == HOST  # control: it works outside
        with pytest.raises(AssertionError, match="file"):
            approve([*words, "job.sh"], folder, HEAD, env)


def test_scontrol_reads_a_file_outside_and_is_refused_here(slurm: Slurm, member: users.TestUser, folder: Path) -> None:
    hosts = folder / "hosts"
    hosts.write_text("secret1\nsecret2\n")
    assert slurm.run(member, "scontrol", "show", "hostlist", hosts).stdout.strip() == "secret[1-2]"  # control
    answer = validate(Request(command="scontrol", words=("show", "hostlist", str(hosts)), environment={}, cwd="/", script=None), RULES)
    assert "a file is not read" in str(answer)
