"""What a job's options add up to, and the caps that this is held against. Pure.

Where Slurm decides the number of nodes, the most that it could choose counts, and a cap on nodes is passed on to it as
`--nodes=1-CAP`. What a node has is not known here: a job that takes whole nodes is refused where CPUs or GPUs are capped.
"""

from __future__ import annotations

import re

from agent_sandbox.chaperon.registry import amounts
from agent_sandbox.chaperon.words import Refusal, Setting, Sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_sandbox.chaperon.words import Found, Rules

SHARES_OF_GPUS = ("shard", "mps")
LESS = "ask for less"


class Job:
    """The options of a job by name: what each was found to mean."""

    def __init__(self, found: Mapping[str, Found], meanings: Mapping[str, object]) -> None:
        self.found = found
        self.meanings = meanings

    def number(self, name: str) -> int:
        """0 where the option is absent."""
        meaning = self.meanings.get(name)
        return meaning if isinstance(meaning, int) else 0

    def resources(self, name: str, kinds: tuple[str, ...]) -> int:
        meaning = self.meanings.get(name)
        listed = meaning if isinstance(meaning, tuple) else ()
        return sum(one.count for one in listed if isinstance(one, amounts.Resource) and one.name in kinds)

    def names(self, name: str) -> tuple[str, ...]:
        meaning = self.meanings.get(name)
        return (meaning,) if isinstance(meaning, str) else meaning if isinstance(meaning, tuple) else ()

    def shown(self, *names: str) -> tuple[str, str]:
        """How the first of the options that is there was typed, and where."""
        for name in names:
            if name in self.found:
                return str(self.found[name]), self.found[name].channel.text
        return "the job", "all options together"


def measure(job: Job, rules: Rules) -> Sizes:
    nodes = _nodes(job, rules)
    gpus = max(
        job.number("gpus"), job.number("gpus-per-node") * nodes, job.resources("gres", ("gpu",)) * nodes,
        job.number("gpus-per-socket") * max(job.number("sockets-per-node"), _topology(job)[0]) * nodes,
    )  # fmt: skip
    tasks = _tasks(job, nodes, gpus)
    gpus = max(gpus, job.number("gpus-per-task") * tasks, job.resources("tres-per-task", ("gpu",)) * tasks)
    cpus = max(
        tasks * max(job.number("cpus-per-task"), job.resources("tres-per-task", ("cpu",)), 1),
        nodes * job.number("mincpus"), nodes * _product(job), gpus * job.number("cpus-per-gpu"),
    )  # fmt: skip
    seconds = job.meanings.get("time") if "time" in job.found else rules.max_time
    return Sizes(
        nodes=nodes, tasks=tasks, cpus=cpus, gpus=gpus, array=job.number("array") or 1, seconds=seconds if isinstance(seconds, int) else None,
    )  # fmt: skip


def _nodes(job: Job, rules: Rules) -> int:
    span = job.meanings.get("nodes")
    if isinstance(span, tuple):
        return max(int(span[1]), job.number("nodelist"), _featured(job))
    most = _free_choice(job)
    if rules.max_nodes and _spreads(job):
        return max(rules.max_nodes, most)
    return min(most, max(rules.max_nodes, job.number("nodelist"), _featured(job))) if rules.max_nodes else most


def _free_choice(job: Job) -> int:
    """The most nodes that Slurm could give where none were asked for: one for each task or GPU."""
    return max(1, job.number("nodelist"), job.number("ntasks"), job.number("gpus"), _featured(job))


def _spreads(job: Job) -> bool:
    """Over as many nodes as there are, unless their number is said."""
    return "spread-job" in job.found and "nodes" not in job.found


def _featured(job: Job) -> int:
    return featured(job.meanings.get("constraint"))


def _tasks(job: Job, nodes: int, gpus: int) -> int:
    each_gpu = max(job.number("ntasks-per-gpu"), job.number("ntasks-per-tres"))
    if job.number("ntasks"):
        return job.number("ntasks")
    return max(nodes * max(job.number("ntasks-per-node"), 1), nodes * _product(job), gpus * each_gpu)


def _topology(job: Job) -> tuple[int, int, int]:
    """Sockets, cores and threads that are asked for on each node; 1 where none are."""
    text = job.meanings.get("extra-node-info")
    parts = [int(part) if part.isdecimal() else 1 for part in str(text or "1").split(":")]
    sockets, cores, threads = (*parts, 1, 1)[:3]
    asked = [job.number(name) for name in ("sockets-per-node", "cores-per-socket", "threads-per-core")]
    return max(sockets, asked[0], 1), max(cores, asked[1], 1), max(threads, asked[2], 1)


def _product(job: Job) -> int:
    sockets, cores, threads = _topology(job)
    return sockets * cores * threads


def forced(job: Job, rules: Rules) -> Iterator[Setting]:
    """What is set where the job does not say it, so that Slurm's own choice keeps to the caps."""
    if rules.max_time is not None and "time" not in job.found:
        yield Setting(name="time", value=amounts.clock(rules.max_time))
    if rules.max_nodes and "nodes" not in job.found and (_spreads(job) or _free_choice(job) > rules.max_nodes):
        yield Setting(name="nodes", value=f"1-{rules.max_nodes}")
    for name, listed in (("partition", rules.partitions), ("account", rules.accounts), ("qos", rules.qos)):
        if listed and name not in job.found:  # of an empty list there is nothing to choose: see `check`
            yield Setting(name=name, value=listed[0])


def check(job: Job, sizes: Sizes, rules: Rules) -> Iterator[Refusal]:
    yield from _amounts(job, sizes, rules)
    yield from _times(job, rules)
    yield from _unclear(job, rules)
    for name, listed, key in (("partition", rules.partitions, "partitions"), ("account", rules.accounts, "accounts"), ("qos", rules.qos, "qos")):
        yield from names_allowed(job.names(name), listed, f"slurm.{key}", job.shown(name))


def names_allowed(asked: tuple[str, ...], listed: tuple[str, ...] | None, key: str, shown: tuple[str, str]) -> Iterator[Refusal]:
    """None: any; of an empty list nothing may be used, and so no job run."""
    if listed is None:
        return
    if not listed:
        yield Refusal(typed=shown[0], channel=shown[1], rule=f"{key} is empty: nothing may be used", instead="ask your admin")
    elif bad := [name for name in asked if name not in listed]:
        yield Refusal(typed=shown[0], channel=shown[1], rule=f"{', '.join(bad)} is not in {key}", instead=f"use {', '.join(listed)}")


def featured(constraint: object) -> int:
    """Nodes that a constraint counts: `[rack1*2&rack2*4]`."""
    return sum(int(number) for number in re.findall(r"\*([0-9]{1,9})", str(constraint or "")))


def _amounts(job: Job, sizes: Sizes, rules: Rules) -> Iterator[Refusal]:
    for what, asked, cap, names in (
        ("nodes", sizes.nodes, rules.max_nodes, ("nodes", "nodelist", "constraint")),
        ("tasks", sizes.tasks, rules.max_tasks, ("ntasks", "ntasks-per-node", "nodes", "extra-node-info")),
        ("cpus", sizes.cpus, rules.max_cpus, ("cpus-per-task", "cpus-per-gpu", "mincpus", "ntasks", "nodes")),
        ("gpus", sizes.gpus, rules.max_gpus, ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres", "tres-per-task")),
        ("array", sizes.array, rules.max_array, ("array",)),
    ):
        if cap is not None and asked > cap:
            typed, channel = job.shown(*names)
            thing = "array tasks" if what == "array" else what
            yield Refusal(typed=typed, channel=channel, rule=f"asks for up to {asked} {thing}; slurm.max_{what} is {cap}", instead=LESS)


def _times(job: Job, rules: Rules) -> Iterator[Refusal]:
    for name in ("time", "time-min"):
        if rules.max_time is None or name not in job.found:
            continue
        if refusal := too_long(job.meanings.get(name), rules.max_time, job.shown(name)):
            yield refusal


def too_long(seconds: object, cap: int, shown: tuple[str, str]) -> Refusal | None:
    """Slurm counts in minutes: a cap below one allows one."""
    if isinstance(seconds, int) and seconds <= max(cap, 60):
        return None
    asked = amounts.clock(seconds) if isinstance(seconds, int) else "no time limit"
    return Refusal(typed=shown[0], channel=shown[1], rule=f"asks for {asked}; slurm.max_time is {amounts.clock(cap)}", instead=LESS)


def _unclear(job: Job, rules: Rules) -> Iterator[Refusal]:
    """What has a size that is not known here."""
    whole = "exclusive" in job.found and job.meanings.get("exclusive") not in ("user", "mcs")
    reserves = "core-spec" in job.found or "thread-spec" in job.found
    if (whole or reserves) and (rules.max_cpus is not None or rules.max_gpus is not None):
        typed, channel = job.shown("exclusive", "core-spec", "thread-spec")
        rule = "takes whole nodes, and CPUs or GPUs are capped by slurm.max_cpus or slurm.max_gpus"
        yield Refusal(typed=typed, channel=channel, rule=rule, instead="say how many CPUs and GPUs you need")
    if rules.max_gpus is not None and job.resources("gres", SHARES_OF_GPUS) + job.resources("tres-per-task", SHARES_OF_GPUS):
        typed, channel = job.shown("gres", "tres-per-task")
        yield Refusal(typed=typed, channel=channel, rule="shares of GPUs cannot be held against slurm.max_gpus", instead="ask for GPUs")
    if _spreads(job) and not rules.max_nodes and (rules.max_cpus is not None or rules.max_tasks is not None):
        typed, channel = job.shown("spread-job")
        rule = "takes any number of nodes, and tasks or CPUs are capped by slurm.max_tasks or slurm.max_cpus"
        yield Refusal(typed=typed, channel=channel, rule=rule, instead="say how many with --nodes")
    parts = [name for name in ("sockets-per-node", "cores-per-socket", "threads-per-core") if name in job.found]
    if "extra-node-info" in job.found and parts:
        typed, channel = job.shown("extra-node-info")
        yield Refusal(typed=typed, channel=channel, rule=f"says again what --{parts[0]} says", instead="write one of them")
