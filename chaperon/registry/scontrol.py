"""scontrol and sacctmgr: their options, their words, and the keys that an update may set. Pure.

Both have words that read files, run editors or change the cluster: what is not listed here is refused.
"""

from __future__ import annotations

from agent_sandbox.chaperon.registry.make import HERE, OTHER_CLUSTER, allow, data_formats, elsewhere, ignore, refuse, told
from agent_sandbox.chaperon.registry.squeue import LOCAL
from agent_sandbox.chaperon.words import FLAG, VALUE, Command, Option

SCONTROL = Command(name="scontrol", operands="scontrol", options=(
    *told("h"), *elsewhere("SLURM_CLUSTERS", "SCONTROL_FEDERATION"), *data_formats(since=(23, 2)),
    allow("all", "a", env="SCONTROL_ALL"),
    allow("details", "d"),
    allow("future", "F", env="SCONTROL_FUTURE"),
    allow("hide"),
    ignore("local", "", "flag", LOCAL, "SCONTROL_LOCAL"),
    allow("oneliner", "o"),
    allow("quiet", "Q"),
    refuse("sibling", "", FLAG, OTHER_CLUSTER, HERE, "SCONTROL_SIB SCONTROL_SIBLING"),
    refuse("uid", "u", VALUE, "jobs are yours", HERE),
))  # fmt: skip

SACCTMGR = Command(name="sacctmgr", operands="sacctmgr", options=(
    *told("h"), *data_formats(since=(23, 11)),
    ignore("immediate", "i", "flag", "nothing is changed"),
    allow("noheader", "n"),
    allow("oneliner", "o"),
    allow("parsable", "p", group="parsable"),
    allow("parsable2", "P", group="parsable"),
    allow("quiet", "Q"),
    allow("readonly", "r"),
    allow("associations", "s"),
))  # fmt: skip

# What may be shown: the word that Slurm gets, and the spellings of it.
SHOWN = {
    "job": ("job", "jobs", "jobid"), "step": ("step", "steps", "stepid"), "node": ("node", "nodes"),
    "partition": ("partition", "partitions"), "config": ("config",), "hostnames": ("hostnames", "hostname"), "hostlist": ("hostlist",),
}  # fmt: skip
CONTROLS = ("hold", "release", "requeue")  # of jobs
LISTED = {
    "cluster": ("cluster", "clusters"), "qos": ("qos",), "tres": ("tres",), "configuration": ("configuration", "config"),
}  # fmt: skip
CONDITIONS = {"format": "format", "fields": "format", "name": "names", "names": "names", "id": "names", "ids": "names", "type": "names"}

STOPS = "a job keeps the size that was checked when it was submitted"
RESUBMIT = "cancel it and submit it again"


def _key(name: str, grammar: str, *spellings: str) -> Option:
    return allow(name, "", grammar, aliases=spellings)


def _fixed(name: str, *spellings: str) -> Option:
    return refuse(name, "", VALUE, STOPS, RESUBMIT, aliases=spellings)


def _file(name: str, *spellings: str) -> Option:
    return refuse(name, "", VALUE, "files of a job are opened inside the jail", RESUBMIT, aliases=spellings)


UPDATES = (
    _key("JobId", "jobs", "Job"),
    _key("TimeLimit", "time"), _key("TimeMin", "time"),
    _key("Nice", "count"), _key("Priority", "count"),
    _key("JobName", "text", "Name"), _key("Comment", "text"), _key("WCKey", "name"), _key("Extra", "text"),
    _key("Dependency", "dependency"), _key("StartTime", "moment", "EligibleTime"), _key("Deadline", "moment"),
    _key("Partition", "names"), _key("QOS", "name"), _key("Account", "name"), _key("Reservation", "names", "ReservationName"),
    _key("Features", "features"), _key("Prefer", "features"), _key("ExcNodeList", "hosts"), _key("Licenses", "features"),
    _key("ArrayTaskThrottle", "count"), allow("Requeue", "", "choice", choices=("0", "1", "yes", "no")),
    _key("MailUser", "address"), _key("MailType", "states"),
    _fixed("EndTime"), _fixed("NumNodes", "ReqNodes", "MinNodes"), _fixed("NumTasks", "ReqProcs"), _fixed("NumCPUs", "MinCPUs"),
    _fixed("NodeList", "ReqNodeList"), _fixed("Gres"), _fixed("TresPerNode", "TresPerTask", "TresPerJob", "TresPerSocket"),
    _fixed("OverSubscribe", "Shared"),
    _fixed("CPUsPerTask", "MinCPUsNode"), _fixed("CoreSpec", "ThreadSpec"), _fixed("NtasksPerNode", "NTasksPerNode"),
    _fixed("MinMemoryNode", "MinMemoryCPU", "MinTmpDiskNode"), _fixed("Clusters", "ClusterFeatures"),
    _file("StdOut"), _file("StdErr"), _file("StdIn"), _file("WorkDir"), _file("BurstBuffer"), _file("Container"),
    refuse("UserId", "", VALUE, "jobs are yours", HERE), refuse("AdminComment", "", VALUE, "is for administrators", HERE),
)  # fmt: skip
