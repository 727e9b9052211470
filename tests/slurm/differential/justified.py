"""Every difference between the two sides that is meant to be, with its reason. What no case needs any more makes the tests fail."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agent_sandbox.launcher.own import PORT
from agent_sandbox.launcher.proxy.variables import variables_for
from tests.slurm.differential.compare import Difference

SAID = r"(\w+: error: .* \((command line|line \d+ of the script)\): .+\n)+"  # by us: what was refused, where it stood, by which rule
SCOPED = r"(.*Invalid job id specified.*\n)?\w+: error: nothing was done: 7777777: .* \(slurm\.scope = project\); .*\n"
ANY = "(?s:.*)"
LOG = r"/home/\w+/\.local/state/agent-sandbox/jobs/\w+/(%j|<job\d>|\d+)\.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Justified:
    """Regular expressions that fit a difference as a whole."""

    reason: str
    where: str
    direct: str = ANY
    jailed: str = ANY
    cases: str = ANY

    def covers(self, found: Difference) -> bool:
        pairs = ((self.where, found.where), (self.direct, found.direct), (self.jailed, found.jailed), (self.cases, found.case))
        return all(re.fullmatch(pattern, text) for pattern, text in pairs)


def unjustified(found: Iterable[Difference], table: Iterable[Justified]) -> tuple[list[Difference], list[str]]:
    """Differences that nobody argues for, and arguments that nobody needs."""
    entries = list(table)
    needed = {entry.reason for entry in entries for one in found if entry.covers(one)}
    return [one for one in found if not any(entry.covers(one) for entry in entries)], [one.reason for one in entries if one.reason not in needed]


FORCED = (
    Justified(reason="Slurm gets the envelope on its input: the script's own path is not its business", where=r"job\.Command", jailed=r"\(null\)|-"),
    Justified(reason="Slurm goes to /; the script starts in its directory inside the jail", where=r"job\.WorkDir", jailed="/"),
    Justified(reason="Slurm writes to the forced log; the job's files are opened inside", where=r"job\.Std(Out|Err)", jailed=LOG),
    Justified(reason="Slurm reads nothing; the job's input is opened inside", where=r"job\.StdIn", jailed="/dev/null"),
)
SHELL_DIED = "the jail's init ends with 128 + signal, as a shell does whose last command died: which of both it was cannot be known"

LINES = (
    *FORCED,
    Justified(reason="a refusal is ours: it says which word, by which rule, and what to do", where="err", direct=r"(?s:.+)", jailed=SAID),
    Justified(reason="a refusal ends with 1, as most errors of Slurm's do; Slurm's own readers of options end with 255", where="code",
              direct="255", jailed="1"),
    Justified(reason="a directory is no script: it cannot be read, rather than being empty", where="err",
              direct="sbatch: error: Batch script is empty!\n", jailed="sbatch: error: Unable to open file sub\n", cases="sbatch sub"),
    Justified(reason="-v lists the options that Slurm got, among them the forced ones", where="err", direct="", jailed=r"(sbatch: [\w-]+ +: .*\n)+",
              cases="sbatch -H -v job.sh"),
    Justified(reason=SHELL_DIED, where=r"code|job\.(ExitCode|Reason)", direct="1|0:9|JobLaunchFailure", jailed="137|137:0|NonZeroExitCode",
              cases=r"sbatch --wait --parsable --wrap='kill -9 \$\$'"),
    Justified(reason="slurmstepd's own remark that a job was cancelled is in the forced log", where=r"file\.slurm-<job0>\.out", jailed="",
              direct=r"slurmstepd-\w+: error: \*\*\* JOB <job0> ON \w+ CANCELLED AT <time>( DUE TO JOB REQUEUE)? \*\*\*\n"),
    Justified(reason="an id that is not in the scope is refused in words, whoever's it is", where="code|err",
              jailed=f"1|{SCOPED}", cases="(scancel|scontrol release) 7777777"),
    Justified(reason="a job keeps the size that the caps were checked for", where=r"code|err|job\.(NumCPUs|NumNodes|NumTasks|TRES)",
              cases=r"scontrol update JobId=\{0\} NumNodes=2 .*"),
)  # fmt: skip

VIEWS = (
    Justified(reason="a refusal is ours: it says which word, by which rule, and what to do", where="err", direct=r"(?s:.+)", jailed=SAID),
    Justified(reason="scoping gives sacct ids, and for ids it shows held jobs, too; without ids those that were never eligible are left out",
              where="out", direct="", jailed=r"10\d\d\d[_\d\[\]|-]* .*PENDING .*\n|10\d\d\d[_\d\[\]-]*\|\w+\|PENDING\|0:0\n", cases="sacct.*"),
    Justified(reason="an id that is not in the scope is refused in words, whoever's it is", where="code|out|err",
              jailed=f"1||{SCOPED}", cases=".* 7777777"),
    Justified(reason="other users are not shown: who asks for them is told so", where="code|out|err", cases="squeue -u nosuchuser",
              jailed=r"1||squeue: error: --users=nosuchuser: only your own jobs are here; .*\n"),
    Justified(reason="22.05 prints all jobs as data whatever ids it is given; here those that were asked for", where="out", jailed=r"[^{]*",
              cases=r"squeue --json -j \{held\}"),
    Justified(reason="the manual names SLURM_JOB_NODELIST, which 22.05 itself does not read", where="code|out|err", cases="SLURM_JOB_NODELIST=.*"),
    Justified(reason="a letter that no page of the manual has", where="code|out|err", cases="sshare -u .* -h"),
    Justified(reason="refused as a whole: would run outside the jail, or show what is other people's", where="code|out|err", jailed=f"1||{SAID}",
              cases=r"(srun|salloc|sdiag|sreport|strigger|sattach|sbcast|sacctmgr show (user|assoc)|scontrol (show assoc_mgr|ping|write)|squeue -M"
              r"|sacct -a -B).*"),
)  # fmt: skip

TIMED = (
    Justified(reason="slurmstepd's own remark that the time is over is in the forced log", where=r"file\.slurm-<job0>\.out", jailed="",
              direct=r"slurmstepd-\w+: error: \*\*\* JOB <job0> ON \w+ CANCELLED AT <time> DUE TO TIME LIMIT \*\*\*\n", cases="time-limit"),
)  # fmt: skip
SPOOLED = r"/run/agent-sandbox-slurm-\S+/slurm_script"
SCRIPTS = (
    *FORCED,
    Justified(reason="the script lies in the jail's own place, not in slurmd's spool", where=r"file\..*", direct=f'.*{SPOOLED}.*\n',
              jailed=r".*/run/agent-sandbox/slurm_script.*\n", cases="killed-child|traceback|syntax-error"),
    Justified(reason="the interpreter is started by us, inside: the same reason in our words", where=r"file\..*",
              direct=r"slurmstepd-\w+: error: execve\(\): .*\n", jailed="agent-sandbox: the job's interpreter '.*': .*\n"),
    Justified(reason=SHELL_DIED, where=r"job\.(ExitCode|Reason)", direct="0:(9|15)|JobLaunchFailure", jailed="(137|143):0|NonZeroExitCode",
              cases="killed-shell|terminated-shell"),
    Justified(reason="files are opened by us, inside: Slurm's number for it is our exit code, the reason is in the forced log and in the views",
              where=r"job\.(ExitCode|Reason)", direct="0:53|JobLaunchFailure", jailed="53:0|NonZeroExitCode",
              cases="input-missing|missing-directory|output-is-a-directory"),
    Justified(reason="the directory is entered inside, where Slurm's own number means files", where=r"job\.(ExitCode|Reason)",
              direct="0:53|JobLaunchFailure", jailed="125:0|NonZeroExitCode", cases="chdir-missing"),
    Justified(reason="a jail says that it is one", where=r"env\.AGENT_SANDBOX", direct="-", jailed="1"),
    Justified(reason="programs are led to the proxy of the job's jail", where=rf"env\.({'|'.join(variables_for(PORT, {}, 'node.cjs'))})", direct="-"),
    Justified(reason="the stubs are first on PATH, the jail's own tools last", where=r"env\.PATH",
              jailed=r"/run/agent-sandbox/stubs:.*:/run/agent-sandbox/bin"),
    Justified(reason="Slurm's configuration is out of reach", where=r"env\.SLURM_CONF", jailed="-"),
    Justified(reason="the number of a process", where=r"env\.SLURM_TASK_PID", direct=r"\d+", jailed=r"\d+"),
    Justified(reason="the log-in shell runs inside the jail, not under slurmstepd: there is no mailbox, and it leaves no trace of itself",
              where=r"env\.(MAIL|SHLVL|_)", cases="export-(none|list)"),
)  # fmt: skip
