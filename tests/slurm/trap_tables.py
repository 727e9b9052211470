r"""The known traps of batch jobs as lines of shell, in every spelling and channel. `attacks.py` says what the variables in them are.

`j TEXT` writes job.sh: the first line, TEXT with its escapes, and then the script that reports; `held` and `go` submit a job that
waits, and let it go.
"""

from __future__ import annotations

from tests.slurm.attacks import CLOSED, REFUSED, Attack

OUTPUTS = {
    "attached": '-o"$T"', "separate": '-o "$T"', "long": '--output="$T"', "long, separate": '--output "$T"', "abbreviated": '--out="$T"',
    "abbreviated, separate": '--outp "$T"', "bundled": '-Wo"$T"', "error, attached": '-e"$T"', "error": '-e "$T"', "error, long": '--error "$T"',
    "error, abbreviated": '--err="$T"', "both": '-o out -e "$T"', "the last of two": '-o out -o "$T"', "appended": '--open-mode=append -o"$T"',
    "doubled slashes": '-o "/$T"', "a dot": '-o "${T%/*}/./${T##*/}"', "with dots": '-o "$UP"',
    "the root of a process": '-o "/proc/self/root$T"',
}  # fmt: skip
DIRECTIVES = {
    "two options on a line": "#SBATCH -n 1 -e $T", "attached": "#SBATCH -n1 -o$T", "long": "#SBATCH --output=$T", "abbreviated": "#SBATCH --outp=$T",
    "tabs": r"#SBATCH\t-o\t$T", "form feeds": r"#SBATCH\f-n\f1\f-e\f$T", "vertical tabs": r"#SBATCH\v-o\v$T", "carriage returns": r"#SBATCH\r-o\r$T",
    "quoted": "#SBATCH '-o' '$T'", "quoted value": "#SBATCH --error='$T'", "double quotes": r'#SBATCH \"-o$T\"',
    "quoted by halves": "#SBATCH --'out'put=$T",
    "a backslash": r"#SBATCH --out\\\\put=$T", "the value on the next line": r"#SBATCH -o\n#SBATCH $T", "no space": "#SBATCH-o $T",
    "SLURM": "#SLURM -e $T",
    "before a comment": "#SBATCH -e $T # nothing", "after a quoted word": "#SBATCH --comment='a b' -e $T",
    "after an empty line": r"\n \t\n# x\n#SBATCH -o $T",
    "PBS error": "#PBS -e $T", "PBS output": "#PBS -o $T", "PBS attached": "#PBS -o$T", "PBS, two": "#PBS -N x -e $T", "PBS tabs": r"#PBS\t-e\t$T",
    "PBS after a command": r"true\n#PBS -e $T", "BSUB error": "#BSUB -e $T", "BSUB output": "#BSUB -o $T", "BSUB, two": "#BSUB -n 1 -o $T",
    "BSUB after a command": r"true\n#BSUB -o $T",
}  # fmt: skip
INERT = {
    "after a command": r"true\n#SBATCH -o $T", "after a space": " #SBATCH -o $T", "behind a comment": "#SBATCH -n 1 # -e $T",
    "one more #": "##SBATCH -e $T",
    "a burst buffer": "#BB stage_in source=$K destination=$T type=file", "DataWarp": "#DW stage_in source=$K destination=$T type=file",
    "small letters": "#sbatch -o $T",
}  # fmt: skip
UNFIT = {
    "DOS line ends": r"#SBATCH -o $T\r", "hetjob": r"#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n1 -e $T", "packjob": r"#SBATCH packjob\n#SBATCH -e $T",
    "a colon": r"#SBATCH -n1 : -e $T", "an open quote": "#SBATCH -o '$T", "a word": "#SBATCH -n1 $T", "another user": "#SBATCH --uid=0",
    "a log-in shell": "#SBATCH --get-user-env", "limits": "#SBATCH --propagate=ALL", "a container": "#SBATCH --container=$P",
    "a directory": "#SBATCH -D ${T%/*} -o ${T##*/}", "LSF's directory": "#BSUB -cwd ${T%/*}", "a file of variables": "#SBATCH --export-file=$K",
}  # fmt: skip

SPELLINGS = [
    *(Attack(f"command line: {name}", f'sbatch {words} "$S"', CLOSED) for name, words in OUTPUTS.items()),
    *(Attack(f"directive: {name}", f'j "{text}"; sbatch job.sh', CLOSED) for name, text in DIRECTIVES.items()),
    *(Attack(f"directive, inert: {name}", f'j "{text}"; sbatch job.sh', works=False) for name, text in INERT.items()),
    *(Attack(f"directive, unfit: {name}", f'j "{text}"; sbatch job.sh', REFUSED, works=False) for name, text in UNFIT.items()),
    Attack("directive: on the input", 'j "#SBATCH -n 1 -e $T"; sbatch < job.sh', CLOSED),
    Attack("directive: PBS on the input", 'j "#PBS -e $T"; cat job.sh | sbatch -n1', CLOSED),
    Attack("directive: a script that is a pipe", 'j "#SBATCH -e $T"; cat job.sh | sbatch /dev/stdin', CLOSED),
    *(Attack(f"variable: {name}", f'SBATCH_{name}="$T" sbatch "$S"', CLOSED) for name in ("OUTPUT", "ERROR")),
    Attack("variable: INPUT", 'SBATCH_INPUT="$K" sbatch -o out --wrap=cat', CLOSED),
    Attack("input", 'sbatch -i"$K" -o out --wrap=cat', CLOSED),
    Attack("input, abbreviated", 'sbatch --inp "$K" -o out --wrap=cat', CLOSED),
    Attack("wrapped", 'sbatch -o "$T" --wrap=true', CLOSED),
    Attack("wrapped, directives in it", "sbatch --wrap=\"#SBATCH -o $T\n. '$S'\"", works=False),
    Attack("options behind the script", 'sbatch "$S" -o "$T" -e "$T" : --uid=0', works=False),
    Attack("options behind --", 'sbatch -- "$S" -o "$T"', works=False),
    Attack("components", 'sbatch -n1 : -n1 -e"$T" "$S"', REFUSED, works=False, said="components"),
    Attack("components, the last alone", 'sbatch : -e "$T" "$S"', REFUSED, works=False),
]  # fmt: skip

LINKS = [
    Attack("a link", 'ln -s "$T" link; sbatch -o link "$S"', CLOSED),
    Attack("a link, error", 'ln -s "$T" link; sbatch -e link "$S"', CLOSED),
    Attack("a link to a link", 'ln -s "$T" a; ln -s a link; sbatch -o link "$S"', CLOSED),
    Attack("a linked directory", 'ln -s "${T%/*}" d; sbatch -o "d/${T##*/}" "$S"', CLOSED),
    Attack("a link as input", 'ln -s "$K" link; sbatch -i link -o out --wrap=cat', CLOSED),
    Attack("a name with slashes", 'sbatch -J "$UP" -o %x "$S"', CLOSED),
    Attack("a name that is a path", 'sbatch -J "$T" -o %x "$S"', CLOSED, works=False),
    Attack("a name with slashes, by a variable", 'SBATCH_JOB_NAME="$UP" sbatch -e %x "$S"', CLOSED),
    Attack("a name with slashes, by a directive", 'j "#PBS -N $UP\\n#PBS -o %x"; sbatch job.sh', CLOSED),
    Attack("a name changed while it waits", 'held -o %x "$S"; scontrol update JobId=$J JobName="$UP"; go', works=False),
    Attack("the user's name", 'ln -s "$T" "$USER"; sbatch -o %u "$S"', CLOSED),
    Attack("the node's name", 'ln -s "$T" "o-$(hostname)"; sbatch -o o-%N "$S"', CLOSED),
    Attack("the job's number", 'held -o o-%8j "$S"; ln -s "$T" "o-$(printf %08d $J)"; go', CLOSED),
    Attack("the default name", 'held "$S"; ln -s "$T" "slurm-$J.out"; go', CLOSED),
    Attack("the default name in an array", 'held --array=3 "$S"; ln -s "$T" "slurm-${J}_3.out"; go', CLOSED),
    Attack("swapped while it waits", 'touch o; held -o o "$S"; rm o; ln -s "$T" o; go', CLOSED),
    Attack("a directory swapped while it waits", 'mkdir d; held -o "d/${T##*/}" "$S"; rmdir d; ln -s "${T%/*}" d; go', CLOSED),
    Attack("the working directory swapped", 'mkdir d; held -D d -o "${T##*/}" "$S"; rmdir d; ln -s "${T%/*}" d; go', CLOSED),
    Attack("the working directory is a link", 'ln -s "${T%/*}" d; sbatch -D d -o "${T##*/}" "$S"', CLOSED),
    Attack("the working directory left", 'sbatch -D "${T%/*}" -o "${T##*/}" "$S"', REFUSED, said="project"),
    Attack("the working directory left by dots", 'sbatch --chdir="${UP%/*}" -o "${T##*/}" "$S"', REFUSED, said="project"),
]  # fmt: skip

HOSTILE = {
    "BASH_ENV": "$E/source", "LD_PRELOAD": "$E/library.so", "LD_AUDIT": "$E/library.so", "PATH": "$E/bin:$PATH", "PYTHONPATH": "$E/modules",
}  # fmt: skip
RUNS = "python3 -c ''; true; bash '$S'"
IN_DIRECTIVES = {
    "directive": "#SBATCH --export=ALL,BASH_ENV=$E/source", "PBS": "#PBS -v BASH_ENV=$E/source", "without ALL": "#SBATCH --export=BASH_ENV=$E/source",
}
CONFIG = 'cp "$E/library.so" "$E/plugins/auth_munge.so"; { echo "PluginDir=$E/plugins:$PLUGINS"; cat "$P/slurm.conf"; } > "$E/slurm.conf"; '
IN_THE_JOB = "squeue; scontrol show job; sbatch --wrap='bash $S'; bash '$S'"

VARIABLES = [
    *(Attack(f"exported: {name}", f'sbatch --export=ALL,{name}="{value}" --wrap="{RUNS}"') for name, value in HOSTILE.items()),
    *(Attack(f"exported alone: {name}", f'sbatch --export {name}="{value}" --wrap="{RUNS}"') for name, value in HOSTILE.items()),
    *(Attack(f"SBATCH_EXPORT: {name}", f'SBATCH_EXPORT="ALL,{name}={value}" sbatch --wrap="{RUNS}"') for name, value in HOSTILE.items()),
    *(Attack(f"in the environment: {name}", f'F=$(command -v sbatch); env {name}="{value}" "$F" --wrap="{RUNS}"') for name, value in HOSTILE.items()),
    *(Attack(f"by a script: {name}", f'j "{text}"; sbatch job.sh') for name, text in IN_DIRECTIVES.items()),
    Attack("quoted", """sbatch --export="ALL,'BASH_ENV=$E/source'" "$S" """),
    Attack("the trace of a shell",
           """env SHELLOPTS=xtrace PS4='$(echo x >> $T)' "$(command -v sbatch)" --wrap="bash -c true; env -u SHELLOPTS bash '$S'" """),
    Attack("an exported function", 'cat() { echo x >> "$T"; command cat "$@"; }; export -f cat; sbatch "$S"'),
    Attack("modules in the working directory", 'cd "$E/modules"; sbatch -o ../../out --wrap="python3 -c \'import agent_sandbox\'; bash \'$S\'"'),
    Attack("modules and the isolated flag", 'cd "$E/modules"; sbatch -o ../../out --export=ALL,PYTHONHOME="$E",PYTHONPATH=. "$S"', works=False),
    Attack("our own variables", 'sbatch --export=ALL,AGENT_SANDBOX=0,AGENT_SANDBOX_OWN="$E" "$S"', works=False),
    Attack("our own variables, alone", 'AGENT_SANDBOX= AGENT_SANDBOX_OWN="$E" sbatch --export=AGENT_SANDBOX_OWN="$E" "$S"', works=False),
    Attack("Slurm's settings, for the job's own commands", f'{CONFIG} SLURM_CONF="$E/slurm.conf" sbatch --wrap="{IN_THE_JOB}"'),
    Attack("Slurm's settings, exported", f'{CONFIG} sbatch --export=ALL,SLURM_CONF="$E/slurm.conf" --wrap="{IN_THE_JOB}"', works=False),
    Attack("Slurm's programs in another project", f'sbatch --export=ALL,PATH="$O:$PATH" --wrap="{IN_THE_JOB}"'),
]  # fmt: skip

REFUSED_OPTIONS = (
    "--uid=0", "--uid root", "--gid=0", "--get-user-env", "--get-user-env=5L", "--get-u", "--propagate", "--propagate=ALL", "--prop=NOFILE",
    "--prolog=$E",
    "--epilog=$E", "--task-prolog=$E", "--task-epilog=$E", "--bcast", "--bcast=/tmp/x", "--multi-prog", "--container=$P", "--bb=x", "--bbf=$K",
    "--x11",
    "--x11=all", "--export-file=$K", "--export-file=3", "-M other", "--clusters=all", "--context=x", "--preserve-env", "--no-allocate", "-Z",
    "--spank=1",
    "--tmpdir=/x", "-F $K", "--nodefile=$K", "-w $K", "--nodelist=./x", "-m arbitrary", "--mail-type=ALL", "--mail-user=a@b", "--pty", "--no-such",
    "-ox -n٣", "--exp=ALL", "-D /", "--chdir=/tmp", "--chdir $P/..", "--cluster-constraint=x",
)  # fmt: skip
REFUSED_VARIABLES = ("GET_USER_ENV=1", "CONTAINER=/x", "CLUSTERS=other", "BURST_BUFFER=x", "PROPAGATE=ALL", "DISTRIBUTION=arbitrary")
STEPS = "srun touch $T; /usr/bin/srun touch $T; srun --jobid=$SLURM_JOB_ID touch $T; salloc touch $T; srun --overlap --multi-prog $P/multi; bash '$S'"

OPTIONS = [
    *(Attack(f"sbatch {option}", f'sbatch {option} "$S"', REFUSED, works=False) for option in REFUSED_OPTIONS),
    *(Attack(f"variable: {value}", f'SBATCH_{value} sbatch "$S"', REFUSED, works=False) for value in REFUSED_VARIABLES),
    Attack("srun", 'srun -o"$T" true', REFUSED, said="srun: error: "),
    Attack("srun by its path", '/usr/bin/srun -o"$T" true', REFUSED),
    Attack("srun by its path, settings brought along", 'SLURM_CONF="$P/slurm.conf" /usr/bin/srun -o"$T" true', REFUSED),
    Attack("srun in a job that waits",
           'J=$(sbatch --parsable -H "$S"); SLURM_JOB_ID=$J srun touch "$T"; C=$?; scancel $J; exit $C', REFUSED, works=False, said="later"),
    Attack("salloc", 'salloc touch "$T"', REFUSED, said="salloc: error: "),
    Attack("salloc by its path", '/usr/bin/salloc touch "$T"', REFUSED),
    Attack("sbatch by its path", '/usr/bin/sbatch --uid="$USER" -o "$T" "$S"', REFUSED, works=False),
    Attack("steps in a job", f"sbatch -o said --wrap='{STEPS.replace(chr(39), chr(34))}'"),
    *(Attack(name, name, REFUSED, works=False, said=f"{name.split()[0]}: error: ") for name in (
        "sattach 1.0", "sbcast $K $T", "scrontab -l", "scrun", "strigger --set --down --program=$E", "sreport user top", "sdiag")),
]  # fmt: skip

TABLES = {"31 spellings": SPELLINGS, "32 files": LINKS, "30 variables": VARIABLES, "33 options and steps": OPTIONS}
