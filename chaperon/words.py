"""What the registry, the parser and the validator hand to each other: frozen records. Pure."""

from __future__ import annotations

from agent_sandbox.config.errors import plain
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ALLOW = "allow"  # passed on to Slurm in canonical spelling
FORCE = "force"  # ours to set: what the agent asked for is handed on as `wanted` and done inside the jail
IGNORE = "ignore"  # accepted and dropped, with a note
REFUSE = "refuse"

FLAG, VALUE, MAYBE = "flag", "value", "maybe"  # what an option takes: nothing, a value, a value that may follow `=`
OLDEST = (22, 5)  # the first Slurm that the tables know
ALWAYS = (99, 0)
PRIVATE = ("command", "export")  # grammars of values that are told to nobody: a script, the values of variables

# Where an option was found; the larger rank wins, as in Slurm.
SCRIPT, TRANSLATED, VARIABLE, LINE = range(4)


@record
class Option:
    """One option of one Slurm command."""

    name: str
    short: str = ""
    takes: str = FLAG
    grammar: str = "flag"
    choices: tuple[str, ...] = ()
    verdict: str = ALLOW
    reason: str = ""
    instead: str = ""
    since: tuple[int, int] = OLDEST
    until: tuple[int, int] = ALWAYS
    variables: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()  # examples, run by the tests; those of the grammar come on top
    refused: tuple[str, ...] = ()
    gathers: bool = False  # repeated: all count, not the last alone
    group: str = ""  # options that set the same thing: the last of them wins
    early: bool = False  # read on the command line alone


@record
class Command:
    name: str
    options: tuple[Option, ...] = ()
    permutes: bool = True  # False: the first word that is no option ends the options
    operands: str = "none"  # none, script, jobs, list (of an option without a value), scontrol, sacctmgr
    components: bool = False  # ` : ` starts the next component of a heterogeneous job
    reason: str = ""  # why the command as a whole is refused
    instead: str = ""


@record
class Channel:
    rank: int
    text: str  # "command line", "line 3 of the script", "variable SBATCH_QOS"


COMMAND_LINE = Channel(rank=LINE, text="command line")


@record
class Found:
    """An option as somebody wrote it."""

    option: Option
    typed: str  # as written, without its value
    value: str | None
    channel: Channel
    component: int = 0

    def __str__(self) -> str:
        """As somebody wrote it, short. This goes to the audit log too, where no script is told and no variable's value."""
        if self.value is None or self.channel.rank == VARIABLE:
            return self.typed
        told = "…" if self.option.grammar in PRIVATE else plain(self.value, 60)
        return f"{self.typed}{'=' if len(self.typed) > 2 else ' '}{told}"


@record
class Refusal:
    """One thing that is not done: what, where it stood, by which rule, what to do."""

    typed: str
    channel: str
    rule: str
    instead: str = ""

    def __str__(self) -> str:
        advice = f"; {self.instead}" if self.instead else ""
        return plain(f"{self.typed} ({self.channel}): {self.rule}{advice}", 2000)


@record
class Parsed:
    found: tuple[Found, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    operands: tuple[str, ...] = ()
    components: int = 1


@record
class JobId:
    """One entry of a list of jobs: `123`, `123_4`, `123_[1-5]`, `123_*`, `123+1`, `123.batch`."""

    job: int
    tasks: str = ""  # "4", "1-5,7", "*"
    offset: int | None = None  # of a component
    step: str = ""

    def __str__(self) -> str:
        tasks = f"_[{self.tasks}]" if set(self.tasks) & set(",-%") else f"_{self.tasks}" if self.tasks else ""
        component = "" if self.offset is None else f"+{self.offset}"
        return f"{self.job}{tasks}{component}{'.' if self.step else ''}{self.step}"


@record
class Setting:
    """An option as it is passed on, with what its value means."""

    name: str
    value: str | None = None
    meaning: object = None


@record
class Sizes:
    """What a job would take at most, as far as its options tell."""

    nodes: int
    tasks: int
    cpus: int
    gpus: int
    array: int  # tasks of the array; 1 without
    seconds: int | None  # None: no limit


@record
class Request:
    """What a stub sent, decoded."""

    command: str
    words: tuple[str, ...]
    environment: Mapping[str, str]  # of the variables that the command reads, see registry.variables
    cwd: str
    script: str | None = None  # for sbatch; None: --wrap, or nothing to read


@record
class Rules:
    """What the session's settings say. None: no cap."""

    project: str
    user: str
    version: tuple[int, ...] = ()  # of the Slurm that is there; empty: not known, and only what every one knows is passed on
    mail: bool = False
    max_nodes: int | None = None
    max_tasks: int | None = None
    max_cpus: int | None = None
    max_gpus: int | None = None
    max_time: int | None = None
    max_array: int | None = None
    partitions: tuple[str, ...] | None = None  # empty: none may be used
    accounts: tuple[str, ...] | None = None
    qos: tuple[str, ...] | None = None


@record
class Row:
    """The verdict on one option, for people."""

    option: str
    value: str
    channel: str
    verdict: str
    reason: str
    instead: str = ""
    typed: str = ""  # as refusals call it


@record
class Approved:
    command: str
    options: tuple[Setting, ...]  # for Slurm, in the order of the table
    wanted: tuple[Setting, ...] = ()  # asked for, and ours to do inside
    operands: tuple[str, ...] = ()  # script and arguments; or the words of scontrol and sacctmgr, in full
    jobs: tuple[JobId, ...] = ()  # named by options or operands, in every spelling
    keys: tuple[Setting, ...] = ()  # of scontrol update
    sizes: Sizes | None = None
    notes: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    dated: bool = False  # not every Slurm knows all that was found

    def meaning(self, name: str) -> object:
        """Of an option that was asked for; None where it was not."""
        return next((one.meaning for one in (*self.options, *self.wanted) if one.name == name), None)

    def value(self, name: str) -> str | None:
        return next((one.value for one in (*self.options, *self.wanted) if one.name == name), None)

    def has(self, name: str) -> bool:
        return any(one.name == name for one in (*self.options, *self.wanted))


@record
class Refused:
    command: str
    reasons: tuple[Refusal, ...]
    rows: tuple[Row, ...] = ()
    dated: bool = False
