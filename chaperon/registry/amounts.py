"""Amounts as Slurm's users write them → numbers, or a ValueError that says what would be right. Pure.

Times become seconds (None: no limit), sizes megabytes, host lists and arrays how many there are. Slurm is more
lenient than this in places (`+4`, ` 4`, `-N 1k`): what has two readings anywhere is not accepted.
"""

from __future__ import annotations

import re

from agent_sandbox.chaperon.registry import jobids
from agent_sandbox.config.record import record, replace

MOST_HOSTS = 65_536
_NUMBER = r"[0-9]{1,9}"
_RANGE = re.compile(rf"({_NUMBER})(?:-({_NUMBER})(?::({_NUMBER}))?)?")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]|\[[0-9,-]{1,2000}\]){1,2000}")
_BRACKETS = re.compile(r"\[([0-9,-]+)\]")
_RESOURCE = re.compile(r"(?:gres[:/])?([A-Za-z][A-Za-z0-9_-]*)((?:[:=][A-Za-z0-9_.-]+){0,2})")
_AMOUNT = re.compile(r"([0-9]{1,9})([KMGTPkmgtp]?)")
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}


@record
class Resource:
    """`gpu:a100:2`"""

    name: str
    kind: str
    count: int


def count(text: str) -> int:
    if not re.fullmatch(_NUMBER, text):
        raise ValueError("must be a whole number")
    return int(text)


def positive(text: str) -> int:
    number = count(text)
    if number == 0:
        raise ValueError("must be a whole number from 1 on")
    return number


def size(text: str) -> int:
    """In megabytes, rounded up."""
    match = re.fullmatch(r"([0-9]{1,15})([KMGTkmgt]?)[bB]?", text)
    if not match or (text[-1] in "bB" and not match[2]):
        raise ValueError("must be megabytes or a number with K, M, G or T")
    power = _UNITS[match[2].upper() or "M"]
    scale: int = 1024**power
    return -(-int(match[1]) * scale // 1024**2)


def duration(text: str) -> int | None:
    """A time limit, rounded up to minutes as Slurm does, in seconds; None: no limit."""
    if text.lower() in ("unlimited", "infinite", "-1"):
        return None
    match = re.fullmatch(rf"(?:({_NUMBER})-)?({_NUMBER})(?::({_NUMBER}))?(?::({_NUMBER}))?", text)
    if not match:
        raise ValueError("must be minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS or UNLIMITED")
    days, first, second, third = match.groups()
    parts = [int(part) for part in (first, second, third) if part is not None]
    if days is not None or len(parts) == 3:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
    else:
        hours, minutes, seconds = 0, *(*parts, 0)[:2]
    total = ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds
    return -(-total // 60) * 60 or None


def clock(seconds: int) -> str:
    """A time limit as Slurm writes it; never longer than `seconds`, but for the minute that Slurm gives at least."""
    minutes = max(1, seconds // 60)
    days, rest = divmod(minutes, 24 * 60)
    return f"{days}-{rest // 60:02}:{rest % 60:02}:00"


def nodes(text: str) -> tuple[int, int]:
    """The least and the most nodes: `4`, `2-4`, `1,5,9`, `1-15:4`."""
    low, high = _spans(text.split(","), "must be a number of nodes, such as 4 or 2-4")
    return low, high


def array(text: str) -> int:
    """How many tasks `0-15:4,17%2` has. What stands twice counts twice."""
    body, percent, throttle = text.removeprefix("[").partition("%")
    body = body.removesuffix("]") if text.startswith("[") else body
    if percent and not re.fullmatch(rf"{_NUMBER}\]?" if text.startswith("[") else _NUMBER, throttle):
        raise ValueError("must be task numbers such as 0-15, 1,3,5-7, 0-15:4 or 0-15%4")
    return sum(_tasks(part) for part in body.split(","))


def _tasks(part: str) -> int:
    match = _RANGE.fullmatch(part)
    low, high, step = (int(match[1]), int(match[2] or match[1]), int(match[3] or 1)) if match else (1, 0, 1)
    if low > high or step == 0:
        raise ValueError("must be task numbers such as 0-15, 1,3,5-7, 0-15:4 or 0-15%4")
    return (high - low) // step + 1


def _spans(parts: list[str], wrong: str) -> tuple[int, int]:
    spans = []
    for part in parts:
        match = _RANGE.fullmatch(part)
        if not match or int(match[1]) == 0 or int(match[2] or match[1]) < int(match[1]) or match[3] == "0":
            raise ValueError(wrong)
        spans.append((int(match[1]), int(match[2] or match[1])))
    return min(low for low, _ in spans), max(high for _, high in spans)


def hosts(text: str) -> int:
    """How many `n[1-3,7],m1` names. With a slash it would be the name of a file, which Slurm opens."""
    names = jobids.apart(text)
    total = sum(_hosts(name) for name in names)
    if not 0 < total <= MOST_HOSTS or "all" in [name.lower() for name in names]:
        raise ValueError(f"must name 1 to {MOST_HOSTS} nodes, such as n1,n[3-5]")
    return total


def _hosts(name: str) -> int:
    if not _HOST.fullmatch(name) or name.startswith("-"):
        raise ValueError("must be names of nodes, such as n1,n[3-5]; a file is not read")
    total = 1
    for inside in _BRACKETS.findall(name):
        total *= sum(_tasks(part) for part in inside.split(","))
    return total


def resources(text: str) -> tuple[Resource, ...]:
    """`gpu:2`, `gpu:a100:2,shard:4`, `none`."""
    if text.lower() == "none":
        return ()
    if text.lower() == "help":
        raise ValueError("must be resources such as gpu:2; sinfo -o %G lists what there is")
    return tuple([_resource(part) for part in _listed(text)])


def gpus(text: str) -> int:
    """`4`, `a100:2,v100:1`"""
    total = 0
    for part in _listed(text):
        kind, colon, number = part.rpartition(":")
        if colon and not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", kind):
            raise ValueError("must be a number of GPUs, such as 2 or a100:2")
        total += count(number)
    return total


def tres(text: str) -> tuple[Resource, ...]:
    """`cpu:4,gres/gpu:a100:1,license/x:1`"""
    return tuple([_tres(part) for part in _listed(text)])


def _tres(part: str) -> Resource:
    family, _, rest = part.rpartition("/")
    if family not in ("", "gres", "license"):
        raise ValueError("must be resources such as cpu:4 or gres/gpu:2")
    found = _resource(rest)
    return replace(found, name=f"{family}/{found.name}") if family == "license" else found


def _resource(part: str) -> Resource:
    match = _RESOURCE.fullmatch(part)
    parts = re.split("[:=]", match[2])[1:] if match else []
    amount = _AMOUNT.fullmatch(parts[-1]) if parts else None
    kinds = parts[:-1] if amount else parts
    if not match or len(kinds) > 1:
        raise ValueError("must be resources such as gpu:2 or gpu:a100:2")
    number = int(amount[1]) * 1024 ** _UNITS[amount[2].upper()] if amount else 1
    return Resource(name=match[1].lower(), kind="".join(kinds), count=number)


def _listed(text: str) -> list[str]:
    parts = text.split(",")
    if len(parts) > 100:
        raise ValueError("lists more than 100 resources")
    return parts
