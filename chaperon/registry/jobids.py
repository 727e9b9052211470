"""A list of jobs in any of Slurm's spellings → JobIds, or a ValueError. Pure.

Every entry is read, and all of it: who scopes a request by the first number of its text can be lied to.
"""

from __future__ import annotations

import re

from agent_sandbox.chaperon.words import JobId

MOST = 10_000  # entries
LONGEST = 65_536  # characters
LARGEST = 2**32 - 10  # Slurm's own ids end before
_TASKS = r"[0-9]{1,9}(?:-[0-9]{1,9}(?::[0-9]{1,9})?)?(?:,[0-9]{1,9}(?:-[0-9]{1,9}(?::[0-9]{1,9})?)?)*(?:%[0-9]{1,9})?"
_ENTRY = re.compile(
    rf"(?P<job>[0-9]{{1,10}})(?:_(?:\[(?P<set>{_TASKS})\]|(?P<task>[0-9]{{1,9}})|(?P<all>\*|\[\*\])))?"
    r"(?:\+(?P<offset>[0-9]{1,5}))?(?:\.(?P<step>[0-9]{1,10}|batch|extern|interactive))?"
)


def read(text: str) -> tuple[JobId, ...]:
    """The jobs of a list with commas (not those in brackets) or spaces between them."""
    entries = _split(text) if len(text) <= LONGEST else []
    if not entries or len(entries) > MOST:
        raise ValueError(f"must be a list of 1 to {MOST} job ids")
    return tuple([_entry(entry) for entry in entries])


def _split(text: str) -> list[str]:
    """Commas at the ends, doubled ones and spaces are Slurm's to skip."""
    return [part for one in apart(text) for part in one.split(" ") if part]


def apart(text: str) -> list[str]:
    """The entries of a list with commas, but for those in brackets. Once through, however long it is."""
    parts: list[list[str]] = [[]]
    depth = 0
    for piece in re.split(r"([,\[\]])", text):
        depth += {"[": 1, "]": -1}.get(piece, 0)
        if piece == "," and depth <= 0:
            parts.append([])
        else:
            parts[-1].append(piece)
    return ["".join(part) for part in parts]


def _entry(entry: str) -> JobId:
    match = _ENTRY.fullmatch(entry)
    if match is None or not 0 < int(match["job"]) < LARGEST:
        raise ValueError(f"holds {entry[:40]!r}, which is not a job id such as 123, 123_4, 123_[1-5], 123+1 or 123.batch")
    tasks = match["set"] or (str(int(match["task"])) if match["task"] else "*" if match["all"] else "")
    offset = int(match["offset"]) if match["offset"] else None
    step = match["step"] or ""
    return JobId(job=int(match["job"]), tasks=tasks, offset=offset, step=str(int(step)) if step.isdecimal() else step)
