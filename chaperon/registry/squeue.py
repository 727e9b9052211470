"""squeue, sprio, sstat, sshare: views of jobs and of shares. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.registry.make import AGAIN, FOREVER, OTHER_CLUSTER, allow, data_formats, elsewhere, ignore, refuse, told
from agent_sandbox.chaperon.words import FLAG, VALUE, Command

EVERYTHING = "what you may see is shown"
LOCAL = "this cluster is the only one that is asked"

SQUEUE = Command(name="squeue", operands="list", options=(
    *told(), *elsewhere("SLURM_CLUSTERS", "SQUEUE_FEDERATION"), *data_formats(),
    allow("accounts", "A", "names", "SQUEUE_ACCOUNT"),
    allow("all", "a", env="SQUEUE_ALL"),
    allow("array", "r", env="SQUEUE_ARRAY"),
    allow("array-unique", env="SQUEUE_ARRAY_UNIQUE"),
    allow("expand-patterns", since=(24, 5)),
    allow("Format", "O", "format", "SQUEUE_FORMAT2"),
    allow("format", "o", "format", "SQUEUE_FORMAT"),
    allow("hide"),
    refuse("iterate", "i", VALUE, FOREVER, AGAIN),
    allow("jobs", "j", "?jobs"),
    allow("licenses", "L", "names", "SQUEUE_LICENSES"),
    ignore("local", "", "flag", LOCAL, "SQUEUE_LOCAL"),
    allow("long", "l"),
    allow("me"),
    allow("name", "n", "labels", "SQUEUE_NAMES"),
    allow("noconvert"),
    allow("nodelist", "w", "hosts", aliases=("node", "nodes")),
    allow("noheader", "h"),
    allow("notme", since=(24, 11)),
    allow("only-job-state", since=(24, 11)),
    allow("partitions", "p", "names", "SQUEUE_PARTITION"),
    allow("priority", "P", env="SQUEUE_PRIORITY"),
    allow("qos", "q", "names", "SQUEUE_QOS"),
    allow("reservation", "R", "names"),
    allow("running-over", "", "time", since=(25, 11)),
    allow("running-under", "", "time", since=(25, 11)),
    refuse("sibling", "", FLAG, OTHER_CLUSTER, "leave it out", "SQUEUE_SIB SQUEUE_SIBLING", aliases=("sib",)),
    allow("sort", "S", "word", "SQUEUE_SORT"),
    allow("start"),
    allow("states", "t", "states", "SQUEUE_STATES"),
    allow("steps", "s", "?jobs"),
    allow("users", "u", "identities", "SQUEUE_USERS", aliases=("user",)),
))  # fmt: skip

SPRIO = Command(name="sprio", operands="list", options=(
    *told(), *elsewhere("SLURM_CLUSTERS", "SPRIO_FEDERATION"),
    allow("noheader", "h"),
    allow("jobs", "j", "?jobs"),
    allow("long", "l"),
    allow("norm", "n"),
    allow("format", "o", "format", "SPRIO_FORMAT"),
    allow("sort", "S", "word"),
    allow("partition", "p", "names"),
    allow("users", "u", "identities", aliases=("user",)),
    allow("weights", "w"),
    ignore("local", "", "flag", LOCAL, "SPRIO_LOCAL"),
    refuse("sibling", "", FLAG, OTHER_CLUSTER, "leave it out", "SPRIO_SIBLING", aliases=("sib",)),
))  # fmt: skip

SSTAT = Command(name="sstat", options=(
    *told("h"),
    allow("allsteps", "a"),
    allow("helpformat", "e"),
    allow("jobs", "j", "jobs"),
    allow("noheader", "n"),
    allow("format", "o", "format", aliases=("fields",)),
    allow("noconvert"),
    allow("pidformat", "i"),
    allow("parsable", "p", group="parsable"),
    allow("parsable2", "P", group="parsable"),
))  # fmt: skip

SSHARE = Command(name="sshare", options=(
    *told(), *data_formats(since=(23, 11)),
    refuse("clusters", "M", VALUE, OTHER_CLUSTER, "leave it out", aliases=("cluster",)),
    allow("accounts", "A", "names"),
    ignore("all", "a", "flag", EVERYTHING),
    allow("helpformat", "e"),
    allow("long", "l"),
    allow("partition", "m"),
    allow("noheader", "n"),
    allow("format", "o", "format"),
    allow("parsable", "p", group="parsable"),
    allow("parsable2", "P", group="parsable"),
    allow("users", "u", "identities"),
    allow("Users", "U"),
))  # fmt: skip
