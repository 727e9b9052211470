"""Directives of PBS and LSF, as sbatch reads them by default → options of sbatch. Pure.

sbatch drops some of their options without a word; what it drops here as well. What it reads by halves (`-p 5x`, a
resource list with an unknown key in the middle of a word) is refused: the whole value must be understood.
"""

from __future__ import annotations

import re

from agent_sandbox.chaperon.index import index_of
from agent_sandbox.chaperon.registry.make import allow
from agent_sandbox.chaperon.words import Command, Found, Parsed, Refusal
from agent_sandbox.config.errors import plain
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _table(name: str, letters: str) -> Command:
    """`a:start_time` takes a value, `h=hold` none, `n:` has no long name."""
    entries = [re.fullmatch(r"(.)([:=])(.*)", word) for word in letters.split()]
    return Command(name=name, permutes=False, options=tuple([
        allow(match[3] or f"-{match[1]}", match[1], "flag" if match[2] == "=" else "anything") for match in entries if match
    ]))  # fmt: skip


PBS = _table("pbs", (
    "a:start_time A:account c:checkpoint C:working_dir e:error h=hold I=interactive j: J:job_array k:keep l:resource_list m:mail_options"
    " M:mail_user_list N:job_name o:out p:priority q:destination r:rerunable S:script_path t:array u:running_user v:variable_list V=all_env"
    " W:attributes z=no_std"
))  # fmt: skip
BSUB = _table("bsub", "c:cwd e:error_file J:job_name m:hostname M:memory_limit n: o:output_file q:queue_name W:time x=exclusive")

# Letters that are an option of sbatch by another name; those of neither table are dropped, as sbatch drops them.
_PBS_NAMES = {
    "a": "begin", "A": "account", "e": "error", "h": "hold", "J": "array", "t": "array", "M": "mail-user", "N": "job-name",
    "o": "output", "p": "nice", "q": "partition", "v": "export",
}  # fmt: skip
_BSUB_NAMES = {"c": "chdir", "e": "error", "J": "job-name", "o": "output", "q": "partition", "W": "time", "x": "exclusive"}
_RESOURCES = {"cput": "time", "pcput": "time", "walltime": "time", "file": "tmp", "nice": "nice", "proc": "constraint"}
_DROPPED = ("arch", "host", "opsys", "other", "pmem", "pvmem", "software", "vmem")


def from_pbs(command: Command, parsed: Parsed) -> Parsed:
    return _translate(command, parsed, _pbs)


def from_bsub(command: Command, parsed: Parsed) -> Parsed:
    return _translate(command, parsed, _bsub)


def _translate(command: Command, parsed: Parsed, one: Callable[[Found], Iterator[tuple[str, str | None]]]) -> Parsed:
    known = index_of(command).names
    found: list[Found] = []
    refusals = list(parsed.refusals)
    for item in parsed.found:
        try:
            found.extend([replace(item, option=known[name], value=value) for name, value in one(item)])
        except ValueError as wrong:
            refusals.append(Refusal(typed=item.typed, channel=item.channel.text, rule=str(wrong), instead="use #SBATCH directives"))
    for word in parsed.operands[:1]:
        refusals.append(Refusal(typed=plain(word, 80), channel="a #PBS or #BSUB line of the script", rule="is not an option", instead="take it out"))
    return Parsed(found=tuple(_joined(found)), refusals=tuple(refusals))


def _joined(found: list[Found]) -> list[Found]:
    """`-v A -v B` exports both."""
    exports = [item for item in found if item.option.name == "export"]
    if not exports:
        return found
    whole = replace(exports[-1], value=",".join([item.value or "" for item in exports]))
    return [*[item for item in found if item.option.name != "export"], whole]


def _pbs(item: Found) -> Iterator[tuple[str, str | None]]:
    letter, value = item.option.short, item.value
    if letter in _PBS_NAMES:
        yield _PBS_NAMES[letter], _file(value) if letter in "eo" else value
    elif letter == "l":
        yield from _resources(value or "")
    elif letter == "m":
        if mail := _mail(value or ""):
            yield "mail-type", mail
    elif letter == "W":
        key, _, rest = (value or "").partition("=")
        if key.lower() == "depend":
            yield "dependency", rest


def _bsub(item: Found) -> Iterator[tuple[str, str | None]]:
    letter, value = item.option.short, item.value
    if letter in _BSUB_NAMES:
        yield _BSUB_NAMES[letter], _file(value) if letter == "e" else value
    elif letter == "n":
        yield "ntasks", (value or "").rpartition(",")[2]
    elif letter == "m":
        yield "nodelist", (value or "").replace(" ", ",")
    elif letter == "M":
        yield "mem-per-cpu", f"{value}K"


def _file(value: str | None) -> str | None:
    return "/dev/null" if value is not None and value.lower() == "none" else value


def _mail(letters: str) -> str:
    kinds = {"b": "BEGIN", "e": "END", "a": "FAIL"}
    if "n" in letters.lower():
        return ""
    if not letters or not set(letters.lower()) <= set(kinds):
        raise ValueError("must be any of a, b and e, or n")
    return ",".join([kinds[letter] for letter in dict.fromkeys(letters.lower())])


def _resources(text: str) -> Iterator[tuple[str, str | None]]:
    """`nodes=2:ppn=4,walltime=1:00:00,mem=4gb` and PBS Pro's `select=2:ncpus=8:mpiprocs=4`."""
    seen: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key == "nodes":
            yield from _nodes(value)
        elif key == "select":
            seen.update(_select(value))
        elif key in ("ncpus", "mpiprocs", "mem", "accelerator", "naccelerators"):
            seen[key] = value
        elif key in _RESOURCES:
            yield _RESOURCES[key], value
        elif key not in _DROPPED:
            raise ValueError(f"holds {part[:40]!r}, which is not a resource that is known here")
    yield from _chunk(seen)


def _select(value: str) -> dict[str, str]:
    number, *rest = value.split(":")
    pairs = [part.partition("=") for part in rest]
    if any(key not in ("ncpus", "mpiprocs", "mem", "accelerator", "naccelerators") for key, _, _ in pairs):
        raise ValueError(f"holds {value[:40]!r}, which is not a selection that is known here")
    return {"select": number, **{key: held for key, _, held in pairs}}


def _chunk(seen: dict[str, str]) -> Iterator[tuple[str, str | None]]:
    names = {"select": "nodes", "ncpus": "mincpus", "mpiprocs": "ntasks-per-node", "mem": "mem"}
    for key, name in names.items():
        if key in seen:
            yield name, seen[key]
    gpus = seen.get("naccelerators") or ("1" if seen.get("accelerator", "").lower() == "true" else "")
    if gpus:
        yield "gres", f"gpu:{gpus}"
    if {"select", "ncpus", "mpiprocs"} <= seen.keys():
        cpus, tasks = _number(seen["ncpus"]), _number(seen["mpiprocs"])
        if cpus > tasks > 0:
            yield "cpus-per-task", str(cpus // tasks)


def _nodes(value: str) -> Iterator[tuple[str, str | None]]:
    """`2:ppn=4`, `n1+n2:ppn=2`, `1+2`"""
    count, tasks, names = 0, 0, []
    for part in re.split("[+:]", value):
        if part.startswith("ppn="):
            tasks += _number(part[4:])
        elif part[:1].isdigit():
            count += _number(part)
        elif re.fullmatch("[A-Za-z][A-Za-z0-9_.-]*", part):
            names.append(part)
        else:
            raise ValueError(f"holds {part[:40]!r}, which is not a node")
    if count:
        yield "nodes", str(count)
    if tasks:
        yield "ntasks", str(tasks * max(count, 1))
    if names:
        yield "nodelist", ",".join(names)


def _number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text):
        raise ValueError(f"holds {text[:40]!r}, which is not a number")
    return int(text)
