"""srun and salloc: refused as a whole until steps run jailed; the tables are what they will be held against. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.registry.jobs import CONTAINER, LIMITS, shared
from agent_sandbox.chaperon.registry.make import HERE, allow, force, refuse
from agent_sandbox.chaperon.registry.sbatch import INSIDE
from agent_sandbox.chaperon.words import FLAG, MAYBE, VALUE, Command

LATER = "comes with a later version"
RUNS = "would run a program outside the jail"
IN_SCRIPT = "call it in the script"
COPIES = "would write a program to the nodes outside the jail"

SRUN = Command(
    name="srun", permutes=False, operands="script", components=True, reason=LATER,
    instead="submit a script with sbatch, and start the tasks in it with what the program itself has (mpirun, xargs -P, &)",
    options=(
        *shared("SLURM", without="wait-all-nodes get-user-env propagate autocomplete resv-ports container verbose"),
        allow("verbose", "v", env="SLURM_DEBUG SRUN_DEBUG", gathers=True),
        allow("accel-bind", "", "word"),
        allow("cpu-bind", "", "word", "SLURM_CPU_BIND", aliases=("cpu_bind",)),
        allow("disable-status", "X", env="SLURM_DISABLE_STATUS"),
        allow("exact", env="SLURM_EXACT"),
        allow("het-group", "", "word", aliases=("pack-group",)),
        allow("immediate", "I", "?count"),
        allow("jobid", "", "jobs", "SLURM_JOB_ID SLURM_JOBID"),
        allow("kill-on-bad-exit", "K", "?count", "SLURM_KILL_BAD_EXIT"),
        allow("label", "l", env="SLURM_LABELIO"),
        allow("mpi", "", "word", "SLURM_MPI_TYPE"),
        allow("msg-timeout", "", "count"),
        allow("overlap", "", "?choice", "SLURM_OVERLAP", choices=("force", "yes", "no")),
        allow("pty", "", "?word"),
        allow("quit-on-interrupt"),
        allow("relative", "r", "count"),
        allow("resv-ports", "", "?count", "SLURM_RESV_PORTS"),
        allow("test-only", env="SLURM_TEST_EXEC"),
        allow("threads", "T", "positive", "SLURM_THREADS"),
        allow("treewidth", "", "word", since=(24, 5)),
        allow("unbuffered", "u", env="SLURM_UNBUFFEREDIO"),
        allow("wait", "W", "count", "SLURM_WAIT"),
        allow("wait-for-children", since=(23, 11), env="SLURM_WAIT_FOR_CHILDREN"),
        allow("whole"),
        allow("preserve-env", "E"),
        allow("interactive"),
        allow("send-libs", "", "?choice", "SLURM_SEND_LIBS", choices=("yes", "no")),
        force("output", "o", "path", INSIDE, "SLURM_STDOUTMODE"),
        force("error", "e", "path", INSIDE, "SLURM_STDERRMODE"),
        force("input", "i", "path", INSIDE, "SLURM_STDINMODE"),
        force("open-mode", "", "choice", INSIDE, "SLURM_OPEN_MODE", choices=("append", "truncate", "a", "t")),
        force("export", "", "export", "carried out inside the jail", "SLURM_EXPORT_ENV SRUN_EXPORT_ENV"),
        refuse("bcast", "", MAYBE, COPIES, HERE, "SLURM_BCAST"),
        refuse("bcast-exclude", "", VALUE, COPIES, HERE, "SLURM_BCAST_EXCLUDE"),
        refuse("compress", "", MAYBE, COPIES, HERE, "SLURM_COMPRESS"),
        refuse("container", "", VALUE, CONTAINER, "run the container in the script", "SLURM_CONTAINER SRUN_CONTAINER"),
        refuse("debugger-test", "", FLAG, "is for debuggers", HERE),
        refuse("epilog", "", VALUE, RUNS, IN_SCRIPT, "SLURM_EPILOG"),
        refuse("prolog", "", VALUE, RUNS, IN_SCRIPT, "SLURM_PROLOG"),
        refuse("task-epilog", "", VALUE, RUNS, IN_SCRIPT, "SLURM_TASK_EPILOG"),
        refuse("task-prolog", "", VALUE, RUNS, IN_SCRIPT, "SLURM_TASK_PROLOG"),
        refuse("external", "", FLAG, "makes a step without tasks", HERE, since=(23, 11)),
        refuse("multi-prog", "", FLAG, "would read a file of programs outside the jail", "start the programs in the script", "SLURM_SRUN_MULTI"),
        refuse("no-allocate", "Z", FLAG, "runs outside any allocation", HERE),
        refuse("propagate", "", MAYBE, LIMITS, "use ulimit in the script"),
        refuse("slurmd-debug", "", VALUE, "is for administrators", HERE),
    ),
)  # fmt: skip

SALLOC = Command(
    name="salloc", permutes=False, operands="script", components=True, reason=LATER, instead="submit a script with sbatch",
    options=(
        *shared("SALLOC", without="autocomplete propagate resv-ports oom-kill-step"),
        allow("bell", env="SALLOC_BELL"),
        allow("no-bell", env="SALLOC_NO_BELL"),
        allow("immediate", "I", "?count", "SALLOC_IMMEDIATE"),
        allow("kill-command", "K", "?a signal", "SALLOC_KILL_CMD"),
        refuse("no-shell", "", FLAG, "leaves an allocation behind that nobody watches", "submit a script with sbatch"),
    ),
)  # fmt: skip
