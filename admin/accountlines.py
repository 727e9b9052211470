"""The lines that account files have for some names: taken out, and put back where they were. Pure.

A line belongs to the name before its first colon. What a program of the system changed is taken back by putting the lines of
before in place of those of after – not by a second program, which would choose other numbers and other places. Where somebody
else changed a group's members meanwhile, only our own change is taken back.
"""

from __future__ import annotations

from agent_sandbox.config.record import record

MEMBERS = {"group": 3, "gshadow": 3}  # the field that lists a group's members
NUMBERED = ("passwd", "group")  # the third field is a number that no two may have


@record
class Line:
    """One name's line in one file; "" = it has none. `after` is the name in the line before it."""

    file: str
    name: str
    text: str
    after: str = ""


class Conflict(Exception):
    """A line is neither as we left it nor as it was."""


def find_lines(file: str, content: str, names: tuple[str, ...]) -> tuple[Line, ...]:
    lines = content.splitlines()
    return tuple(_find(file, lines, name) for name in names)


def _find(file: str, lines: list[str], name: str) -> Line:
    previous = ""
    for text in lines:
        if name_of(text) == name:
            return Line(file=file, name=name, text=text, after=previous)
        previous = name_of(text)
    return Line(file=file, name=name, text="")


def put_back(content: str, before: Line, left: Line | None = None) -> str:
    """The file with `before` in place of the line that is there; `left` is how we left it, where that is known."""
    lines = content.splitlines(keepends=True)
    here = next((number for number, text in enumerate(lines) if name_of(text) == before.name), None)
    if here is None:
        return "".join(_inserted(lines, before) if before.text else lines)
    now = lines[here].rstrip("\n")
    wanted = _merged(before, left, now)
    lines[here] = f"{wanted}\n" if wanted else ""
    return "".join(lines)


def _merged(before: Line, left: Line | None, now: str) -> str:
    if left is None or now in (left.text, before.text):
        return before.text
    field = MEMBERS.get(before.file)
    if field is None or not before.text or not left.text or not now:
        raise Conflict(f"the line of {before.name} in {before.file} was changed by somebody else meanwhile")
    parts = now.split(":")
    parts[field] = _members(*(text.split(":")[field] for text in (before.text, left.text, now)))
    return ":".join(parts)


def _members(before: str, left: str, now: str) -> str:
    was, became = _list(before), _list(left)
    kept = [one for one in _list(now) if one in was or one not in became]
    return ",".join([*kept, *(one for one in was if one not in became and one not in kept)])


def members(line: Line) -> list[str]:
    field = MEMBERS.get(line.file)
    return _list(line.text.split(":")[field]) if field is not None and line.text.count(":") >= field else []


def _list(members: str) -> list[str]:
    return [one for one in members.split(",") if one]


def _inserted(lines: list[str], before: Line) -> list[str]:
    """After the line that it followed; at the end where that one is gone. Not if its number has become somebody else's."""
    if before.file in NUMBERED:
        number = _field(before.text, 2)
        if any(_field(text, 2) == number for text in lines):
            raise Conflict(f"the number of {before.name} in {before.file} ({number}) is somebody else's now")
    place = next((number + 1 for number, text in enumerate(lines) if before.after and name_of(text) == before.after), None)
    if place is None:
        place = 0 if not before.after else len(lines)
    if place and not lines[place - 1].endswith("\n"):
        lines[place - 1] += "\n"
    return [*lines[:place], f"{before.text}\n", *lines[place:]]


def _field(line: str, number: int) -> str:
    fields = line.rstrip("\n").split(":")
    return fields[number] if len(fields) > number else ""


def name_of(line: str) -> str:
    return line.rstrip("\n").split(":", 1)[0]
