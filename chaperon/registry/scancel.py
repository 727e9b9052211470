"""scancel. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.registry.make import HERE, OTHER_CLUSTER, allow, ignore, refuse, told
from agent_sandbox.chaperon.words import FLAG, VALUE, Command

SCANCEL = Command(name="scancel", operands="jobs", options=(
    *told(),
    refuse("clusters", "M", VALUE, OTHER_CLUSTER, HERE, "SLURM_CLUSTERS", aliases=("cluster",)),
    refuse("sibling", "", VALUE, OTHER_CLUSTER, HERE),
    allow("account", "A", "name", "SCANCEL_ACCOUNT"),
    refuse("admin-comment", "", VALUE, "is for administrators", HERE, since=(25, 5)),
    allow("batch", "b", env="SCANCEL_BATCH"),
    allow("cron", "c", since=(23, 2)),
    ignore("ctld", "", "flag", "the chaperon asks the controller", "SCANCEL_CTLD"),
    allow("full", "f", env="SCANCEL_FULL"),
    allow("hurry", "H", env="SCANCEL_HURRY"),
    refuse("interactive", "i", FLAG, "would ask, and there is nobody to answer", "look with squeue first", "SCANCEL_INTERACTIVE"),
    allow("me"),
    allow("name", "n", "text", "SCANCEL_NAME", aliases=("jobname",)),
    allow("nodelist", "w", "hosts"),
    allow("partition", "p", "name", "SCANCEL_PARTITION"),
    allow("qos", "q", "name", "SCANCEL_QOS"),
    allow("quiet", "Q"),
    allow("reservation", "R", "name"),
    allow("signal", "s", "a signal"),
    allow("state", "t", "states", "SCANCEL_STATE"),
    allow("user", "u", "name", "SCANCEL_USER"),
    allow("wckey", "", "name", "SCANCEL_WCKEY"),
))  # fmt: skip
