"""The words of scontrol, sacctmgr and scancel that are not options → what is asked, in full words. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon import caps
from agent_sandbox.chaperon.registry import grammars, jobids
from agent_sandbox.chaperon.registry.make import allow
from agent_sandbox.chaperon.registry.scontrol import CONDITIONS, CONTROLS, LISTED, SHOWN, UPDATES
from agent_sandbox.chaperon.words import REFUSE, JobId, Refusal, Setting
from agent_sandbox.config.errors import plain
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_sandbox.chaperon.words import Option, Rules

MOST_WORDS = 1000
_WHERE = "command line"
_MAIL = ("MailUser", "MailType")


@record
class Asked:
    operands: tuple[str, ...] = ()
    jobs: tuple[JobId, ...] = ()
    keys: tuple[Setting, ...] = ()


class Unfit(Exception):
    """A word that is not done."""

    def __init__(self, typed: str, rule: str, instead: str = "") -> None:
        super().__init__(rule)
        self.refusal = Refusal(typed=plain(typed, 80), channel=_WHERE, rule=rule, instead=instead)


def read(kind: str, words: tuple[str, ...], environment: Mapping[str, str], rules: Rules) -> Asked:
    """`kind` is the command's word for its operands."""
    if kind == "script":
        return Asked(operands=words)
    if len(words) > MOST_WORDS:
        raise Unfit(words[0], f"stands before {len(words)} words; {MOST_WORDS} are read", "write fewer")
    if kind == "jobs":
        return Asked(jobs=_jobs(words) if words else ())
    if kind == "scontrol":
        return _scontrol(words, environment, rules)
    if kind == "sacctmgr":
        return _sacctmgr(words)
    if words:
        raise Unfit(words[0], "is not an option", "options start with - or --")
    return Asked()


def _jobs(words: tuple[str, ...]) -> tuple[JobId, ...]:
    try:
        return jobids.read(" ".join(words))
    except ValueError as wrong:
        raise Unfit(" ".join(words), str(wrong), "give the ids that squeue shows")


def _scontrol(words: tuple[str, ...], environment: Mapping[str, str], rules: Rules) -> Asked:
    if not words:
        raise Unfit("scontrol", "would read commands from its input", f"say what to do: show, update, {', '.join(CONTROLS)}")
    verb, rest = _verb(words[0], ("show", "update", *CONTROLS)), words[1:]
    if verb == "show":
        return _show(rest, environment)
    if verb == "update":
        return _update(rest, rules)
    return Asked(operands=(verb,), jobs=_jobs(tuple([_bare(word) for word in rest]) or ("",)))


def _bare(word: str) -> str:
    """`jobid=12` is `12`."""
    key, equals, value = word.partition("=")
    return value if equals and key.lower() in ("job", "jobid") else word


def _verb(word: str, known: tuple[str, ...]) -> str:
    """As it is written, whatever the case; abbreviations mean other words in other versions."""
    if word.lower() not in known:
        raise Unfit(word, "is not a word that is allowed here", f"allowed are {', '.join(known)}")
    return word.lower()


def _entity(word: str, known: dict[str, tuple[str, ...]]) -> str:
    for name, spellings in known.items():
        if word.lower() in spellings:
            return name
    raise Unfit(word, "is not something that is shown here", f"shown are {', '.join(known)}")


def _show(words: tuple[str, ...], environment: Mapping[str, str]) -> Asked:
    if not words:
        raise Unfit("show", "needs to know what", f"shown are {', '.join(SHOWN)}")
    first, equals, value = words[0].partition("=")
    entity = _entity(first, SHOWN)
    rest = tuple([*([value] if equals else []), *words[1:]])
    if entity in ("job", "step"):
        return Asked(operands=("show", entity), jobs=_jobs(rest) if rest else ())
    if (entity == "config" and rest) or len(rest) > 1:
        raise Unfit(rest[-1], f"is one word more than `show {entity}` takes", "leave it out")
    if entity in ("hostnames", "hostlist") and not rest:
        rest = tuple([environment[name] for name in ("SLURM_JOB_NODELIST", "SLURM_NODELIST") if environment.get(name)][:1])
    for word in rest:
        _hold(allow(f"show {entity}", "", "names" if entity == "partition" else "hosts"), word)
    return Asked(operands=("show", entity, *rest))


def _update(words: tuple[str, ...], rules: Rules) -> Asked:
    keys = tuple([_change(word, rules) for word in words])
    jobs = [job for key in keys if key.name == "JobId" and isinstance(key.meaning, tuple) for job in key.meaning]
    if not jobs:
        raise Unfit("update", "changes jobs alone, and names none", "say JobId=…")
    return Asked(operands=("update",), jobs=tuple(jobs), keys=tuple([key for key in keys if key.name != "JobId"]))


def _change(word: str, rules: Rules) -> Setting:
    key, equals, value = word.partition("=")
    option = next((one for one in UPDATES if key.lower() in [name.lower() for name in (one.name, *one.aliases)]), None)
    if not equals or option is None:
        allowed = ", ".join(one.name for one in UPDATES if one.verdict != REFUSE)
        raise Unfit(word, "is not a change that is known here", f"allowed are KEY=VALUE with {allowed}")
    if option.verdict == REFUSE:
        raise Unfit(word, option.reason, option.instead)
    if option.name in _MAIL and not rules.mail:
        raise Unfit(word, "sends mail in your name, and mail is off", "look with squeue")
    change = Setting(name=option.name, value=value, meaning=_hold(option, value))
    _within_caps(word, change, rules)
    return change


def _within_caps(word: str, change: Setting, rules: Rules) -> None:
    shown = (plain(word, 80), _WHERE)
    timed = change.name in ("TimeLimit", "TimeMin") and rules.max_time is not None
    if timed and (refusal := caps.too_long(change.meaning, rules.max_time or 0, shown)):
        raise Unfit(refusal.typed, refusal.rule, refusal.instead)
    if change.name in ("Features", "Prefer") and rules.max_nodes is not None and (count := caps.featured(change.value)) > rules.max_nodes:
        raise Unfit(word, f"asks for up to {count} nodes; slurm.max_nodes is {rules.max_nodes}", caps.LESS)
    listed = {"Partition": (rules.partitions, "partitions"), "QOS": (rules.qos, "qos"), "Account": (rules.accounts, "accounts")}.get(change.name)
    names = change.meaning if isinstance(change.meaning, tuple) else (str(change.meaning),)
    for refusal in caps.names_allowed(names, listed[0], f"slurm.{listed[1]}", shown) if listed else ():
        raise Unfit(refusal.typed, refusal.rule, refusal.instead)


def _sacctmgr(words: tuple[str, ...]) -> Asked:
    if not words:
        raise Unfit("sacctmgr", "would read commands from its input", "say `sacctmgr show` and what")
    _verb(words[0], ("show", "list"))
    if len(words) < 2:
        raise Unfit(words[0], "needs to know what", f"shown are {', '.join(LISTED)}")
    return Asked(operands=("show", _entity(words[1], LISTED), *[_restriction(word) for word in words[2:] if word.lower() != "where"]))


def _restriction(word: str) -> str:
    key, equals, value = word.partition("=")
    name = key.lower() if equals else "names"
    if name not in CONDITIONS:
        raise Unfit(word, "is not a condition that is known here", f"allowed are {', '.join(CONDITIONS)}")
    _hold(allow(name, "", CONDITIONS[name]), value if equals else word)
    return f"{name}={value if equals else word}"


def _hold(option: Option, value: str) -> object:
    try:
        return grammars.read(option, value)
    except ValueError as wrong:
        raise Unfit(value, f"{option.name} {wrong}")
