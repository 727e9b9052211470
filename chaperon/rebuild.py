"""What was approved → the words that the real command gets: one spelling, one order. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.envelope import forced_options
from agent_sandbox.chaperon.index import index_of
from agent_sandbox.chaperon.registry import COMMANDS, grammars
from agent_sandbox.chaperon.validate import in_order
from agent_sandbox.chaperon.words import ALLOW, FLAG, FORCE, VALUE, Setting
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.words import Approved


def force(approved: Approved, name: str, value: str | None = None) -> Approved:
    """Set an option of ours in place of what is there. A name or value that the table does not have is our own mistake."""
    command = COMMANDS[approved.command]
    option = index_of(command).names.get(name)
    if option is None or option.name != name or option.verdict not in (ALLOW, FORCE):
        raise ValueError(f"{command.name} has no --{name} that may be set")
    if (value is None) != (option.takes == FLAG) and not (value is None and option.takes != VALUE):
        raise ValueError(f"--{name} with {value!r}: it takes a {option.takes}")
    setting = Setting(name=name, value=value, meaning=grammars.read(option, value))
    others = tuple([one for one in approved.options if one.name != name])
    return replace(approved, options=in_order(command, (*others, setting)))


def rebuild(approved: Approved) -> tuple[str, ...]:
    """The words after the command's name. The script of sbatch is the caller's to add: never the agent's."""
    words = [f"--{one.name}" if one.value is None else f"--{one.name}={one.value}" for one in approved.options]
    if COMMANDS[approved.command].operands == "script":
        return tuple(words)
    operands = [*approved.operands, *_named(approved)]
    return (*words, *(("--", *operands) if operands else ()))


def submission(checked: Approved, name: str, log_directory: str) -> tuple[str, ...]:
    """The words of the real sbatch: what was approved, and what is ours whatever was asked for. Its script comes by its input."""
    approved = force(checked, "ignore-pbs")
    for option, value in {**forced_options(log_directory), "chdir": "/"}.items():
        approved = force(approved, option, value)
    if not approved.has("job-name"):
        approved = force(approved, "job-name", name)
    return (*[word for word in rebuild(approved) if word not in ("--parsable", "--quiet")], "--parsable")


def _named(approved: Approved) -> list[str]:
    """Jobs that operands name, and the changes to them."""
    kind = COMMANDS[approved.command].operands
    if kind == "jobs":
        return [str(job) for job in approved.jobs]
    listed = ",".join(map(str, approved.jobs))
    if kind != "scontrol" or not listed:
        return []
    return [f"JobId={listed}", *[f"{key.name}={key.value}" for key in approved.keys]] if approved.operands == ("update",) else [listed]
