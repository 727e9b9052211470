"""Job scripts, as data: what they are, how they are submitted, what lies beside them."""

from __future__ import annotations

from tests.slurm.differential.sides import Case

SH, BASH, PYTHON = "#!/bin/sh\n", "#!/bin/bash\n", "#!/usr/bin/python3\n"


def job(
    name: str, script: str, line: str = "sbatch job.sh", *before: str, env: dict[str, str] | None = None, umask: int = 0o022, **files: str
) -> Case:
    """`line` may read the script from its input: `sbatch <`."""
    line, given, _ = line.partition(" <")
    beside = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    return Case(
        label=name, name=name, line=line, before=before, files={**beside, "job.sh": script}, input=script if given else "", env=env or {},
        umask=umask,
    )  # fmt: skip


SEEN = "env -0 | sort -z > job.env"
IDS = 'printf "%s " "$SLURM_ARRAY_TASK_ID" "$SLURM_ARRAY_TASK_COUNT" "$SLURM_ARRAY_TASK_MIN" "$SLURM_ARRAY_TASK_MAX"; echo'

SCRIPTS = [
    # interpreters
    job("sh", f"{SH}echo sh $0 | sed s,/.*/,,\n"),
    job("bash", f"{BASH}echo $BASH_VERSION; [[ a == a ]] && echo bash\n"),
    job("python", f"{PYTHON}import sys\nprint(sys.argv[1:])\n", "sbatch job.sh a 'b c'"),
    job("env-python", "#!/usr/bin/env python3\nprint('found by env')\n"),
    job("env-split", "#!/usr/bin/env -S python3 -u\nprint('split by env')\n"),
    job("flags", "#!/bin/bash -eu\necho $-; false; echo not here\n"),
    job("space-before", "#! /bin/sh\necho spaced\n"),
    job("cat", "#!/bin/cat\nthe script itself\n"),
    job("no-such-interpreter", "#!/no/such/thing\necho x\n"),
    job("interpreter-without-right", "#!/etc/passwd\necho x\n"),
    # arguments and input
    job("arguments", f"{SH}for one; do echo \"<$one>\"; done\n", "sbatch job.sh 'a b' '' '*' '$HOME' -n --flag=x 'ü'"),
    job("from-input", f"{SH}echo from input; cat\n", "sbatch <"),
    job("from-input-with-directives", f"{SH}#SBATCH -J piped -n 2\necho $SLURM_JOB_NAME $SLURM_NTASKS\n", "sbatch <"),
    job("wrapped", f"{SH}\n", "sbatch --wrap='echo $0 | sed s,/.*/,,; echo \"a  b\"; cat'"),
    job("wrapped-lines", f"{SH}\n", "sbatch --wrap='echo one\necho two'"),
    job("input-file", f"{SH}cat\n", "sbatch -i in.txt job.sh", in_txt="from a file\nwithout an end"),
    job("input-pattern", f"{SH}cat\n", "sbatch -J nm -i %x.txt job.sh", nm_txt="by pattern\n"),
    job("input-missing", f"{SH}cat\n", "sbatch -i missing.txt job.sh"),
    # ends
    job("exit-0", f"{SH}exit 0\n"),
    job("exit-3", f"{SH}exit 3\n"),
    job("exit-255", f"{SH}exit 255\n"),
    job("exit-139", f"{SH}exit 139\n"),
    job("last-command-fails", f"{SH}ls /no/such\n"),
    job("killed-child", f"{BASH}sh -c 'kill -9 $$'; echo $?\n"),
    job("killed-shell", f"{BASH}kill -9 $$\n"),
    job("terminated-shell", f"{BASH}kill -TERM $$\n"),
    job("killed-python", f"{PYTHON}import os\nos.kill(os.getpid(), 9)\n"),
    job("segfault-python", f"{PYTHON}import os, signal\nsignal.signal(11, signal.SIG_DFL)\nos.kill(os.getpid(), 11)\n"),
    job("traceback", f"{PYTHON}import nosuchmodule\n"),
    job("syntax-error", f"{BASH}if true\n"),
    # where
    job("directory", f"{SH}pwd; echo $PWD; echo $SLURM_SUBMIT_DIR\n"),
    job("chdir", f"{SH}pwd; echo $PWD; echo $SLURM_SUBMIT_DIR; ls\n", "sbatch -D sub job.sh", sub__there=""),
    job("chdir-script-there", f"{SH}exit 9\n", "sbatch --chdir=sub inner.sh", sub__inner_sh=f"{SH}pwd\n"),
    job("chdir-missing", f"{SH}pwd\n", "sbatch -D missing job.sh"),
    job("umask", f"{SH}umask; touch made\n", umask=0o077),
    job("umask-group", f"{SH}umask; mkdir d; touch d/made\n", umask=0o002),
    # output
    job("two-files", f"{SH}echo out; echo err >&2\n", "sbatch -o out.txt -e err.txt job.sh"),
    job("one-file", f"{SH}echo out; echo err >&2; echo out again\n", "sbatch -o both.txt job.sh"),
    job("error-alone", f"{SH}echo out; echo err >&2\n", "sbatch -e err.txt job.sh"),
    job("same-name-twice", f"{SH}echo out; echo err >&2; echo out again\n", "sbatch -o x.txt -e x.txt job.sh"),
    job("patterns", f"{SH}echo x\n", "sbatch -J nm -o %x-%j-%A-%a-%N-%n-%t-%u-%s-%J.txt job.sh"),
    job("percent", f"{SH}echo x\n", "sbatch -o 100%%-%j.txt job.sh"),
    job("widths", f"{SH}echo x\n", "sbatch -o %8j-%2t-%4n-%3A.txt job.sh"),
    job("odd-patterns", f"{SH}echo x\n", "sbatch -o a%q-%5q-%.txt job.sh"),
    job("backslash", f"{SH}echo x\n", "sbatch -o 'a\\%j.txt' job.sh"),
    job("sub-directory", f"{SH}echo x\n", "sbatch -o sub/%j.txt -e ./sub/../e.txt job.sh", sub__there=""),
    job("missing-directory", f"{SH}echo x > ran\n", "sbatch -o missing/out.txt job.sh"),
    job("output-is-a-directory", f"{SH}echo x > ran\n", "sbatch -o sub job.sh", sub__there=""),
    job("to-null", f"{SH}echo x; echo y > made\n", "sbatch -o /dev/null job.sh"),
    job("absolute", f"{SH}echo x\n", "sbatch -o {cwd}/abs-%j.txt job.sh"),
    job("append", f"{SH}echo more\n", "sbatch -o old.txt --open-mode=append job.sh", old_txt="old\n"),
    job("truncate", f"{SH}echo more\n", "sbatch -o old.txt --open-mode=truncate job.sh", old_txt="old old old\n"),
    job("overwrite", f"{SH}echo more\n", "sbatch -o old.txt job.sh", old_txt="old old old\n"),
    job("slash-in-name", f"{SH}echo $SLURM_JOB_NAME\n", "sbatch -J a/b -o %x.txt job.sh", a__there=""),
    job("space-in-name", f"{SH}echo $SLURM_JOB_NAME\n", "sbatch -J 'a b' -o '%x.txt' job.sh"),
    job("by-variable", f"{SH}echo x\n", env={"SBATCH_OUTPUT": "from-%j.env.txt", "SBATCH_ERROR": "e.txt"}),
    job("large", f"{PYTHON}print('0123456789abcdef' * 131072)\n"),
    job("binary", f"{PYTHON}import os\nos.write(1, bytes(range(256)))\n"),
    job("no-newline", f"{SH}printf 'no end'\n"),
    job("interleaved", f"{BASH}for i in 1 2 3 4 5; do echo $i; echo e$i >&2; done\n"),
    job("closed", f"{SH}exec >&- 2>&-; echo nowhere; touch made\n"),
    # environment
    job("variables", f"{SH}{SEEN}\n", env={"MINE": "a=b\nc"}),
    job("variables-of-an-array", f"{SH}{SEEN}\n", "sbatch -a 7 -n 2 -c 2 --mem=50 -J arr -A physics -q high -p short -t 5 job.sh"),
    job("export-none", f"{SH}echo $MINE.$SLURM_EXPORT_ENV.$HOME; {SEEN}\n", "sbatch --export=NONE job.sh", env={"MINE": "x"}),
    job("export-nil", f"{SH}echo $MINE.$SLURM_EXPORT_ENV\n", "sbatch --export=NIL job.sh", env={"MINE": "x"}),
    job("export-all", f"{SH}echo $MINE.$A.$SLURM_EXPORT_ENV\n", "sbatch --export=ALL,A=b job.sh", env={"MINE": "x"}),
    job("export-list", f"{SH}echo $MINE.$OTHER.$SLURM_EXPORT_ENV; {SEEN}\n", "sbatch --export=MINE,B=2 job.sh", env={"MINE": "x", "OTHER": "y"}),
    job("export-quoted", f"{SH}echo \"$A.$B\"\n", "sbatch --export=\"A='x,y',B=a b\" job.sh"),
    job("export-variable", f"{SH}echo $MINE.$OTHER\n", env={"SBATCH_EXPORT": "MINE", "MINE": "x", "OTHER": "y"}),
    job("limits", f"{BASH}ulimit -n; ulimit -c; ulimit -s\n"),
    # directives
    job("directives", f"{SH}#SBATCH -J nm -n 2\n# other\n#SBATCH --output=%x.txt\n\n#SBATCH --comment='a b'\necho $SLURM_NTASKS\n"),
    job("late-directives", f"{SH}echo x\n#SBATCH -o late.txt -n 3\necho $SLURM_NTASKS\n"),
    job("line-over-directive", f"{SH}#SBATCH -o one.txt -J one\necho $SLURM_JOB_NAME\n", "sbatch -o two.txt job.sh"),
    job("pbs", f"{SH}#PBS -N pbsname -l walltime=0:07:00 -o pbs.txt\necho $SLURM_JOB_NAME\n"),
    job("pbs-ignored", f"{SH}#PBS -N pbsname -o pbs.txt\necho $SLURM_JOB_NAME\n", "sbatch --ignore-pbs job.sh"),
    job("bsub", f"{SH}#BSUB -J bsname -o bs.txt -W 5\necho $SLURM_JOB_NAME\n"),
    job("quoted-directive", f"{SH}#SBATCH -J \"two words\" -o 'out file.txt' # comment\necho $SLURM_JOB_NAME\n"),
    # arrays, dependencies, and what lives on
    job("array", f"{SH}{IDS}\n", "sbatch -a 1-3 job.sh"),
    job("array-limit", f"{SH}{IDS}\n", "sbatch -a 2-8:2%2 -o %A-%a-%3a.txt job.sh"),
    job("array-one-fails", f"{SH}exit $SLURM_ARRAY_TASK_ID\n", "sbatch -a 0,1 -o /dev/null job.sh"),
    job("after-success", f"{SH}cat first.txt\n", "sbatch -d afterok:{0} job.sh", "sbatch --parsable -o first.txt --wrap='echo first'"),
    job("after-failure", f"{SH}echo after\n", "sbatch -d afternotok:{0} job.sh", "sbatch --parsable -o /dev/null --wrap='exit 1'"),
    job("never", f"{SH}touch ran\n", "sbatch -d afterok:{0} --kill-on-invalid-dep=yes job.sh",
        "sbatch --parsable -o /dev/null --wrap='exit 1'"),
    job("heredoc", f"{SH}cat <<'X' | sort\nb $a\na `b`\nX\n"),
    job("functions", f"{BASH}f() {{ echo \"$1\"; return 4; }}\nf x || exit $?\n"),
    job("background", f"{SH}(sleep 0.3; echo child) & wait; echo parent\n"),
    job("left-behind", f"{SH}sleep 30 >/dev/null 2>&1 & echo gone\n"),
    job("pipe", f"{BASH}set -o pipefail; yes | head -n 2; echo $?\n"),
    job("temporary-files", f"{SH}f=$(mktemp) && echo x > $f && cat $f && rm $f\n"),
    job("links", f"{SH}ln -s made link; echo x > link; cat made\n"),
    job("reads-itself", f"{SH}sed -n 2p \"$0\" # this line\n"),
    job("utf8", f"{SH}echo 'grüße ☃' \"$1\"\n", "sbatch -J 'größe' job.sh 'naïve'"),
    job("empty-script", "#!/bin/sh"),
    job("many-lines", SH + "x=1\n" * 5000 + "echo done\n"),
    job("warned", f"{BASH}trap 'echo warned; exit 4' USR1\necho ready\nfor i in {{1..600}}; do sleep 0.1; done\n",
        "sbatch -t 1 --signal=B:USR1@59 job.sh"),
    job("trapped", f"{BASH}trap 'echo bye' EXIT\necho hi\nexit 6\n"),
]  # fmt: skip

# Slurm's shortest limit is a minute, and it looks now and then.
LONG = [job("time-limit", f"{BASH}echo ready\nsleep 300\n", "sbatch -t 1 job.sh")]
