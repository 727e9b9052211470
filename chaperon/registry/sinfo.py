"""sinfo: nodes and partitions. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.registry.make import AGAIN, FOREVER, allow, data_formats, elsewhere, ignore, refuse, told
from agent_sandbox.chaperon.registry.squeue import LOCAL
from agent_sandbox.chaperon.words import VALUE, Command

SINFO = Command(name="sinfo", options=(
    *told(), *elsewhere("SLURM_CLUSTERS", "SINFO_FEDERATION"), *data_formats(),
    allow("all", "a", env="SINFO_ALL"),
    allow("dead", "d"),
    allow("exact", "e"),
    allow("future", "F", since=(23, 2)),
    allow("hide"),
    refuse("iterate", "i", VALUE, FOREVER, AGAIN),
    ignore("local", "", "flag", LOCAL, "SINFO_LOCAL"),
    allow("long", "l"),
    allow("nodes", "n", "hosts"),
    allow("noconvert"),
    allow("noheader", "h"),
    allow("Node", "N"),
    allow("format", "o", "format", "SINFO_FORMAT"),
    allow("Format", "O", "format"),
    allow("partition", "p", "names", "SINFO_PARTITION"),
    allow("responding", "r"),
    allow("list-reasons", "R"),
    allow("summarize", "s"),
    allow("sort", "S", "word", "SINFO_SORT"),
    allow("states", "t", "states"),
    allow("reservation", "T"),
))  # fmt: skip
