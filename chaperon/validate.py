"""A request and the session's rules → Approved, or Refused with every reason at once. Pure.

Whatever a stub sends is read against the tables: words, directives of the script, variables. Only what was read goes on
to Slurm, rebuilt by `rebuild`; nothing is passed through.
"""

from __future__ import annotations

from agent_sandbox.chaperon import caps, verbs
from agent_sandbox.chaperon.directives import read_directives, unread
from agent_sandbox.chaperon.index import index_of
from agent_sandbox.chaperon.parse import MOST_REFUSALS, from_variables, parse
from agent_sandbox.chaperon.registry import COMMANDS, grammars
from agent_sandbox.chaperon.settle import counts, settle
from agent_sandbox.chaperon.words import (
    ALLOW,
    ALWAYS,
    COMMAND_LINE,
    FORCE,
    IGNORE,
    OLDEST,
    REFUSE,
    VARIABLE,
    Approved,
    Parsed,
    Refusal,
    Refused,
    Row,
    Setting,
)  # fmt: skip
from agent_sandbox.config.errors import plain
from agent_sandbox.config.record import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.words import Command, Found, JobId, Option, Request, Rules, Sizes

COMPONENTS = "jobs of several components are for srun, which comes with a later version"
BY_RULE = "set by slurm.{key}, as nothing was said"
KEYS = {"time": "max_time", "nodes": "max_nodes", "partition": "partitions", "account": "accounts", "qos": "qos"}
ENDS = ("help", "usage", "version")  # the command does nothing else
NEEDS_NO_SCRIPT = ("wrap", *ENDS)
NONE = "NONE"
MAIL_OPTIONS = ("mail-type", "mail-user")


def validate(request: Request, rules: Rules) -> Approved | Refused:
    command = COMMANDS.get(request.command)
    if command is None:
        return _refused(request.command, (_on_line(request.command, "is not a command that is known here", "leave it out"),))
    if command.reason:
        return _refused(command.name, (_on_line(command.name, command.reason, command.instead),))
    parsed = collect(command, request)
    return replace(_decide(command, parsed, request, rules), dated=any(_is_dated(item) for item in parsed.found))


def _decide(command: Command, parsed: Parsed, request: Request, rules: Rules) -> Approved | Refused:
    judged = tuple([_judge(item, request, rules) for item in parsed.found if item.channel.rank != VARIABLE or _known(item, rules)])
    refusals = [*parsed.refusals, *[one.refusal for one in judged if one.refusal]]
    rows = tuple([one.row for one in judged])
    asked = verbs.Asked()
    try:
        if command.operands == "script" or not any(item.option.name in ENDS for item in parsed.found):
            asked = verbs.read(command.operands, parsed.operands, request.environment, rules)
    except verbs.Unfit as unfit:
        refusals.append(unfit.refusal)
    if refusals:
        return _refused(command.name, tuple(refusals), rows)
    answer = _approve(command, judged, asked, rules, rows)
    return replace(answer, notes=(*answer.notes, *unread(request.script or ""))) if isinstance(answer, Approved) else answer


def script_of(words: tuple[str, ...]) -> tuple[str, str] | None:
    """Where sbatch looks first for the script that its command line names, and the name where that is another; empty: its input; None
    where it needs none, or is refused anyway."""
    line = parse(COMMANDS["sbatch"], words)
    if line.refusals or any(item.option.name in NEEDS_NO_SCRIPT for item in line.found):
        return None
    if not line.operands:
        return "", ""
    name = line.operands[0]
    there = [item.value for item in line.found if item.option.name == "chdir" and item.value]
    return (f"{there[-1].rstrip('/')}/{name}", name) if there and name[:1] not in ("/", ".") else (name, "")


def collect(command: Command, request: Request) -> Parsed:
    """Every option from every channel."""
    line = parse(command, request.words)
    own = from_variables(command, request.environment)
    wraps = any(item.option.name == "wrap" for item in line.found)
    refusals = list(line.refusals)
    script = Parsed()
    if command.operands == "script":
        if wraps and line.operands:
            refusals.append(_on_line(line.operands[0], "is a script beside --wrap", "give one of them"))
        ignores = any(item.option.name == "ignore-pbs" for item in (*line.found, *own))
        if request.script is not None and not wraps:
            script = read_directives(command, request.script, foreign=not ignores)
    if command.operands == "list":
        line = _with_operand(line)
    components = max(line.components, script.components)
    if components > 1:
        refusals.append(Refusal(typed="`:` or hetjob", channel="job", rule=COMPONENTS, instead="submit one job for each component"))
    return Parsed(
        found=(*script.found, *own, *line.found), refusals=(*script.refusals, *refusals), operands=line.operands, components=components,
    )  # fmt: skip


def _with_operand(line: Parsed) -> Parsed:
    """`squeue -j 12`: to getopt the id is a word of its own, which squeue then takes as the option's value."""
    bare = [item for item in line.found if item.option.name in ("jobs", "steps") and item.value is None]
    bare.sort(key=lambda item: item.option.name)  # of both, as in `squeue -s -j 12`, it is the jobs that squeue means
    if len(line.operands) != 1 or not bare:
        return line
    found = tuple([replace(item, value=line.operands[0]) if item is bare[0] else item for item in line.found])
    return replace(line, found=found, operands=())


@record
class _Judged:
    found: Found
    meaning: object
    refusal: Refusal | None
    row: Row


def _judge(found: Found, request: Request, rules: Rules) -> _Judged:
    meaning, wrong, instead = None, "", ""
    option = found.option
    if not _known(found, rules):
        wrong, instead = _other_version(option, rules), "leave it out"
    elif option.verdict == REFUSE:
        wrong, instead = option.reason, option.instead
        if found.typed in option.variables:
            instead = f"unset {found.typed}"
    elif option.name in MAIL_OPTIONS and not rules.mail:
        wrong, instead = "sends mail in your name, and mail is off", "leave it out, and look with squeue"
    else:
        try:
            meaning = _meaning(found, request, rules)
        except ValueError as error:
            wrong = str(error)
    return _Judged(found=found, meaning=meaning, refusal=_refusal(found, wrong, instead), row=_row(found, wrong, instead))


def _known(found: Found, rules: Rules) -> bool:
    """To the Slurm that is there. A variable of another version means nothing to it."""
    return found.option.since <= (rules.version or OLDEST)[:2] <= found.option.until


def _is_dated(found: Found) -> bool:
    return found.option.since > OLDEST or found.option.until < ALWAYS


def _other_version(option: Option, rules: Rules) -> str:
    here = f"here is {numbered(rules.version)}" if rules.version else "which one is here is not known"
    if option.since > (rules.version or OLDEST)[:2]:
        return f"needs Slurm {numbered(option.since)}; {here}"
    return f"Slurm {numbered(option.until)} was the last that knew it; {here}"


def numbered(version: tuple[int, ...]) -> str:
    """As Slurm writes it: 22.05.8."""
    return ".".join([f"{part:02}" if place == 1 else str(part) for place, part in enumerate(version)])


def _meaning(found: Found, request: Request, rules: Rules) -> object:
    meaning = grammars.read(found.option, found.value)
    if found.option.grammar == "directory":
        return _directory(str(meaning), request.cwd, rules.project)
    return meaning


def _directory(path: str, cwd: str, project: str) -> str:
    """By its name alone: what it is a link to is found out inside the jail."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{cwd}/{path}").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    full = "/" + "/".join(parts)
    if full != project and not full.startswith(f"{project.rstrip('/')}/"):
        raise ValueError(f"must be a directory of the project {project}")
    return full


def _refusal(found: Found, wrong: str, instead: str) -> Refusal | None:
    if not wrong:
        return None
    return Refusal(typed=str(found), channel=found.channel.text, rule=wrong, instead=instead)


def _row(found: Found, wrong: str, instead: str) -> Row:
    option = found.option
    ignored = not counts(found)
    verdict = REFUSE if wrong else IGNORE if ignored else option.verdict
    reason = wrong or ("is read on the command line alone" if ignored else option.reason)
    return Row(
        option=found.typed if found.typed.startswith("-") else f"--{option.name}", value=plain(found.value or "", 200), channel=found.channel.text,
        verdict=verdict, reason=reason, instead=instead, typed=str(found),
    )  # fmt: skip


def _approve(command: Command, judged: tuple[_Judged, ...], asked: verbs.Asked, rules: Rules, rows: tuple[Row, ...]) -> Approved | Refused:
    by_found = {id(one.found): one.meaning for one in judged}
    kept = settle([one.found for one in judged])
    options = _settings(command, kept, by_found, ALLOW)
    sizes: Sizes | None = None
    extra: tuple[Setting, ...] = ()
    if command.operands == "script":
        job = caps.Job({item.option.name: item for item in kept}, {item.option.name: by_found[id(item)] for item in kept})
        sizes = caps.measure(job, rules)
        if refusals := tuple(caps.check(job, sizes, rules)):
            return _refused(command.name, refusals, rows)
        extra = tuple(caps.forced(job, rules))
    reasons = {name: BY_RULE.format(key=key) for name, key in KEYS.items()}
    forced = [Row(option=f"--{one.name}", value=one.value or "", channel="rule", verdict=FORCE, reason=reasons[one.name]) for one in extra]
    return Approved(
        command=command.name, options=in_order(command, (*options, *extra)), wanted=_settings(command, kept, by_found, FORCE),
        operands=asked.operands, jobs=asked.jobs or _named_jobs(options), keys=asked.keys, sizes=sizes,
        notes=tuple([f"{row.option} ({row.channel}) is ignored: {row.reason}" for row in rows if row.verdict == IGNORE]), rows=(*rows, *forced),
    )  # fmt: skip


def _settings(command: Command, kept: tuple[Found, ...], meanings: dict[int, object], verdict: str) -> tuple[Setting, ...]:
    """In the order of the table. Flags that count repeat, values that gather are joined."""
    settings = []
    by_name: dict[str, list[Found]] = {}
    for item in kept:
        if item.option.verdict == verdict:
            by_name.setdefault(item.option.name, []).append(item)
    for items in by_name.values():
        option = items[0].option
        if option.gathers and items[0].value is not None:
            words = _gathered(items, meanings)
            settings.append(Setting(name=option.name, value=",".join(words), meaning=words))
        else:
            settings.extend([Setting(name=option.name, value=_canonical(item, meanings), meaning=meanings[id(item)]) for item in items])
    return in_order(command, tuple(settings))


def _gathered(items: list[Found], meanings: dict[int, object]) -> tuple[str, ...]:
    """The words of all lists, each once. One that holds NONE adds nothing, whatever else it says."""
    lists = [meaning for meaning in [meanings[id(item)] for item in items] if isinstance(meaning, tuple) and NONE not in meaning]
    return tuple(dict.fromkeys([word for words in lists for word in words])) or (NONE,)


def _canonical(item: Found, meanings: dict[int, object]) -> str | None:
    meaning = meanings[id(item)]
    if item.option.grammar == "jobs" and isinstance(meaning, tuple):
        return ",".join(map(str, meaning))
    return item.value


def _named_jobs(options: tuple[Setting, ...]) -> tuple[JobId, ...]:
    return tuple([job for one in options if one.name in ("jobs", "steps", "jobid") and isinstance(one.meaning, tuple) for job in one.meaning])


def in_order(command: Command, settings: tuple[Setting, ...]) -> tuple[Setting, ...]:
    places = index_of(command).places
    return tuple(sorted(settings, key=lambda one: places[one.name]))


def _on_line(typed: str, rule: str, instead: str) -> Refusal:
    return Refusal(typed=plain(typed, 80), channel=COMMAND_LINE.text, rule=rule, instead=instead)


def _refused(command: str, refusals: tuple[Refusal, ...], rows: tuple[Row, ...] = ()) -> Refused:
    """Refusals that belong to no option of the table, or to all of them together, get a row too."""
    left = list(dict.fromkeys(refusals))
    told = []
    for row in rows:
        own = next((one for one in left if (one.typed, one.channel) == (row.typed, row.channel)), None)
        told.append(replace(row, verdict=REFUSE, reason=own.rule, instead=own.instead) if own else row)
        left = [one for one in left if one is not own]
    others = [Row(option=one.typed, value="", channel=one.channel, verdict=REFUSE, reason=one.rule, instead=one.instead) for one in left]
    return Refused(command=command, reasons=tuple(dict.fromkeys(refusals))[:MOST_REFUSALS], rows=(*told, *others))
