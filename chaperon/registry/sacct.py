"""sacct: the record of jobs. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.registry.make import OTHER_CLUSTER, allow, choose, data_formats, elsewhere, ignore, refuse, told
from agent_sandbox.chaperon.registry.squeue import EVERYTHING, LOCAL
from agent_sandbox.chaperon.words import FLAG, VALUE, Command

FILE = "would read a file outside the jail"
ENVELOPE = "what Slurm keeps is the chaperon's, not the script that you gave"

SACCT = Command(name="sacct", options=(
    *told("h", "U"), *elsewhere("", "SACCT_FEDERATION"), *data_formats(),
    ignore("allusers", "a", "flag", EVERYTHING),
    allow("accounts", "A", "names"),
    allow("allocations", "X"),
    allow("array", since=(23, 2)),
    allow("brief", "b"),
    refuse("batch-script", "B", FLAG, ENVELOPE, "look at the script in the project"),
    refuse("env-vars", "", FLAG, ENVELOPE, "print the environment in the script"),
    refuse("completion", "c", FLAG, FILE, "leave it out"),
    refuse("file", "f", VALUE, FILE, "leave it out"),
    allow("constraints", "C", "features"),
    allow("delimiter", "", "text"),
    allow("duplicates", "D"),
    allow("expand-patterns", since=(24, 5)),
    allow("helpformat", "e", aliases=("help-fields",)),
    allow("endtime", "E", "moment"),
    allow("starttime", "S", "moment"),
    allow("flags", "F", "word"),
    refuse("group", "g", VALUE, "would show jobs of other people", "leave it out", aliases=("gid",)),
    allow("jobs", "j", "jobs"),
    allow("name", "", "labels"),
    allow("nnodes", "i", "word"),
    allow("ncpus", "I", "word"),
    allow("timelimit-min", "k", "time"),
    allow("timelimit-max", "K", "time"),
    ignore("local", "", "flag", LOCAL, "SACCT_LOCAL"),
    allow("long", "l"),
    refuse("allclusters", "L", FLAG, OTHER_CLUSTER, "leave it out"),
    allow("nodelist", "N", "hosts"),
    allow("noconvert"),
    choose("units", "", "K M G T P"),
    allow("noheader", "n"),
    allow("format", "o", "format", "SACCT_FORMAT", aliases=("fields",)),
    allow("parsable", "p", group="parsable"),
    allow("parsable2", "P", group="parsable"),
    allow("qos", "q", "names"),
    allow("partition", "r", "names"),
    allow("reason", "", "labels"),
    allow("state", "s", "states"),
    allow("truncate", "T"),
    allow("user", "u", "identities", aliases=("uid",)),
    ignore("use-local-uid", "", "flag", LOCAL),
    allow("wckeys", "W", "names"),
    allow("whole-hetjob", "", "?choice", choices=("yes", "no")),
    allow("associations", "x", "word"),
))  # fmt: skip
