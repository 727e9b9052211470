"""Who asks for a job, when it runs, and what comes with it: options that sbatch, salloc and srun share. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.registry.make import HERE, OTHER_CLUSTER, allow, choose, force, refuse, table
from agent_sandbox.chaperon.registry.resources import RESOURCES
from agent_sandbox.chaperon.words import FLAG, MAYBE, VALUE, Option

STAGES = "would copy files as you, outside the jail"
OTHER_USER = "jobs run as you"
LIMITS = "limits of a job come from the jail's settings"
CONTAINER = "would start an image outside the jail"
LOGIN_SHELL = "would run your log-in shell outside the jail"
MAIL = "sends mail in your name"

JOBS = (
    # who
    allow("account", "A", "name", "*_ACCOUNT"),
    allow("partition", "p", "names", "*_PARTITION"),
    allow("qos", "q", "names", "*_QOS"),
    allow("reservation", "", "names", "*_RESERVATION"),
    allow("wckey", "", "name", "*_WCKEY"),
    allow("mcs-label", "", "name"),
    refuse("uid", "", VALUE, OTHER_USER, HERE),
    refuse("gid", "", VALUE, OTHER_USER, HERE),
    refuse("clusters", "M", VALUE, OTHER_CLUSTER, HERE, "*_CLUSTERS SLURM_CLUSTERS"),
    refuse("cluster", "", VALUE, OTHER_CLUSTER, HERE),
    # when
    allow("time", "t", "time", "*_TIMELIMIT"),
    allow("time-min", "", "time"),
    allow("begin", "b", "moment"),
    allow("deadline", "", "moment"),
    allow("dependency", "d", "dependency"),
    allow("delay-boot", "", "time", "*_DELAY_BOOT"),
    allow("hold", "H"),
    allow("nice", "", "?count", refused=("-5",)),
    allow("priority", "", "count", accepted=("100000",)),
    # how
    allow("job-name", "J", "text", "*_JOB_NAME"),
    allow("comment", "", "text"),
    allow("extra", "", "text", since=(23, 2)),
    allow("no-kill", "k", "?choice", "*_NO_KILL", choices=("off",)),
    allow("signal", "", "signal", "*_SIGNAL"),
    allow("profile", "", "choices", "*_PROFILE", choices=("All", "None", "Energy", "Filesystem", "Lustre", "Network", "Task")),
    allow("acctg-freq", "", "word", "*_ACCTG_FREQ"),
    choose("wait-all-nodes", "", "0 1", "*_WAIT_ALL_NODES"),
    allow("oom-kill-step", "", "?choice", "*_OOM_KILL_STEP", choices=("0", "1"), since=(23, 11)),
    allow("resv-ports", "", "?count", "*_RESV_PORTS", since=(24, 5)),
    force("chdir", "D", "directory", "the script starts there; a directory of the project"),
    # mail: one switch
    allow("mail-type", "", "choices", gathers=True, choices=(
        "NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT",
        "TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS")),
    allow("mail-user", "", "address"),
    # what would read, write or run outside
    refuse("bb", "", VALUE, STAGES, "copy files in the script", "*_BURST_BUFFER"),
    refuse("bbf", "", VALUE, STAGES, "copy files in the script"),
    refuse("container", "", VALUE, CONTAINER, "run the container in the script", "*_CONTAINER"),
    refuse("container-id", "", VALUE, CONTAINER, "run the container in the script", "*_CONTAINER_ID", since=(23, 2)),
    refuse("container-type", "", VALUE, CONTAINER, "run the container in the script", since=(26, 5)),
    refuse("context", "", VALUE, "sets a security context", HERE),
    refuse("get-user-env", "", MAYBE, LOGIN_SHELL, "set what you need in the script", "*_GET_USER_ENV"),
    refuse("propagate", "", MAYBE, LIMITS, "use ulimit in the script", "*_PROPAGATE"),
    refuse("x11", "", MAYBE, "opens a way to your display", HERE),
    refuse("stepmgr", "", FLAG, "is for srun, which comes with a later version", HERE, since=(24, 5)),
    refuse("autocomplete", "", VALUE, "is for shells that complete words", HERE, since=(23, 2)),
    # what is said
    allow("quiet", "Q", early=True),
    allow("verbose", "v", env="*_DEBUG", gathers=True, early=True),
    allow("help", "h", early=True),
    allow("usage", early=True),
    allow("version", "V", early=True),
)  # fmt: skip


def shared(prefix: str, without: str = "") -> tuple[Option, ...]:
    """The options that all three have, for one of them."""
    return table((*RESOURCES, *JOBS), prefix, without)
