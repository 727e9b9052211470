"""What a job asks of the machine: options that sbatch, salloc and srun share. Pure.

`*_` in a variable stands for the command's own prefix. Sizes are added up and held against the caps in `caps`.
"""

from __future__ import annotations

from agent_sandbox.chaperon.registry.make import HERE, OTHER_CLUSTER, allow, choose, refuse
from agent_sandbox.chaperon.words import FLAG, VALUE

NODE_FILE = "would read a file of hosts outside the jail"

RESOURCES = (
    # nodes
    allow("nodes", "N", "nodes"),
    allow("nodelist", "w", "hosts"),
    allow("exclude", "x", "hosts"),
    refuse("nodefile", "F", VALUE, NODE_FILE, "name the nodes with --nodelist", "SLURM_HOSTFILE"),
    allow("constraint", "C", "features", "*_CONSTRAINT"),
    allow("prefer", "", "features"),
    refuse("cluster-constraint", "", VALUE, OTHER_CLUSTER, HERE, "*_CLUSTER_CONSTRAINT"),
    allow("contiguous"),
    allow("use-min-nodes", env="*_USE_MIN_NODES"),
    allow("spread-job", env="*_SPREAD_JOB"),
    allow("switches", "", "switches", "*_REQ_SWITCH"),
    allow("segment", "", "positive", "*_SEGMENT_SIZE", since=(24, 5)),
    allow("spread-segments", since=(25, 11)),
    allow("consolidate-segments", since=(25, 11)),
    allow("exclusive", "", "?choice", "*_EXCLUSIVE", choices=("user", "mcs", "topo"), group="sharing"),
    allow("oversubscribe", "s", group="sharing"),
    allow("overcommit", "O", env="*_OVERCOMMIT"),
    refuse("reboot", "", FLAG, "reboots nodes", HERE),
    # tasks
    allow("ntasks", "n", "positive"),
    allow("ntasks-per-node", "", "positive", aliases=("tasks-per-node",)),
    allow("ntasks-per-socket", "", "positive"),
    allow("ntasks-per-core", "", "positive"),
    allow("ntasks-per-gpu", "", "positive"),
    allow("ntasks-per-tres", "", "positive"),
    allow("distribution", "m", "distribution", "*_DISTRIBUTION"),
    # CPUs
    allow("cpus-per-task", "c", "positive"),
    allow("cpus-per-gpu", "", "positive", "*_CPUS_PER_GPU"),
    allow("mincpus", "", "positive"),
    allow("extra-node-info", "B", "topology"),
    allow("sockets-per-node", "", "positive"),
    allow("cores-per-socket", "", "positive"),
    allow("threads-per-core", "", "positive", "*_THREADS_PER_CORE"),
    allow("core-spec", "S", "count", "*_CORE_SPEC", group="reserved"),
    allow("thread-spec", "", "positive", "*_THREAD_SPEC", group="reserved"),
    choose("hint", "", "compute_bound memory_bound multithread nomultithread", "SLURM_HINT *_HINT"),
    allow("cpu-freq", "", "word", "*_CPU_FREQ_REQ"),
    # memory and disk
    allow("mem", "", "size", "*_MEM_PER_NODE", group="memory"),
    allow("mem-per-cpu", "", "size", "*_MEM_PER_CPU", group="memory"),
    allow("mem-per-gpu", "", "size", "*_MEM_PER_GPU", group="memory"),
    allow("mem-bind", "", "word", "*_MEM_BIND"),
    allow("tmp", "", "size"),
    refuse("mem-update", "", VALUE, "changes the memory of a job that runs", HERE, since=(26, 5)),
    # GPUs and other resources
    allow("gpus", "G", "gpus", "*_GPUS"),
    allow("gpus-per-node", "", "gpus", "*_GPUS_PER_NODE"),
    allow("gpus-per-socket", "", "gpus", "*_GPUS_PER_SOCKET"),
    allow("gpus-per-task", "", "gpus", "*_GPUS_PER_TASK"),
    allow("gpu-bind", "", "word", "*_GPU_BIND"),
    allow("gpu-freq", "", "word", "*_GPU_FREQ"),
    allow("gres", "", "resources", "*_GRES"),
    allow("gres-flags", "", "choices", "*_GRES_FLAGS",
          choices=("disable-binding", "enforce-binding", "multiple-tasks-per-sharing", "one-task-per-sharing", "allow-task-sharing")),
    allow("tres-per-task", "", "tres", "*_TRES_PER_TASK", since=(23, 2)),
    allow("tres-bind", "", "word", "*_TRES_BIND", since=(23, 2)),
    refuse("resources", "", VALUE, "asks for resources in a way that the caps do not know", "use --gres and --licenses", since=(25, 5)),
    allow("licenses", "L", "features"),
    choose("power", "", "level", "*_POWER", until=(24, 5)),
    allow("network", "", "word", "*_NETWORK"),
)  # fmt: skip
