"""The text of a job script → the options that sbatch would read from it. Pure.

As sbatch does it (and Slurm 22.05 was asked, line by line): `#SBATCH` and `#SLURM` count until the first line that is
neither empty nor a comment, `#BSUB` or else `#PBS` until a hundred such lines have passed. All words of all lines make one
command line: the value of an option may stand on the next line. Quotes group, a backslash takes the next character as it is but
does not keep a space, `#` ends the line, an empty pair of quotes does too.
"""

from __future__ import annotations

import itertools
import re

from agent_sandbox.chaperon.parse import parse
from agent_sandbox.chaperon.translate import BSUB, PBS, from_bsub, from_pbs
from agent_sandbox.chaperon.words import SCRIPT, TRANSLATED, Channel, Parsed, Refusal
from agent_sandbox.config.errors import plain
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_sandbox.chaperon.words import Command

NEWLINE = "\n"
SPACES = " \t\n\v\f\r"  # isspace() in the C locale; str.isspace knows more
SEPARATORS = ("hetjob", "packjob")
COMMANDS_PASSED = 100  # lines that are no comment, before #PBS and #BSUB are no longer looked for
MOST_DIRECTIVES = 2000  # words
MOST_TEXT = 128 << 10  # characters of the lines that they stand on
# Lines are found by patterns alone: a script may have millions of them.
_BURST_BUFFER = re.compile("\n#(?:BB|DW)")
_OWN = re.compile("\n#(?:SBATCH|SLURM)(.*)")
_FOREIGN = {marker: re.compile(f"\n{marker}(.*)") for marker in ("#BSUB", "#PBS")}
_FIRST_COMMAND = re.compile(r"\n[ \t\v\f\r]*+[^# \t\n\v\f\r]")
_NO_COMMENT = re.compile("\n(?!#)")
STAGING = "burst buffers would copy files as you, outside the jail; copy them in the script"


@record
class Word:
    text: str
    line: int


def read_directives(command: Command, script: str, *, foreign: bool) -> Parsed:
    """What the script asks for. `foreign`: without --ignore-pbs."""
    if wrong := _unfit(script):
        return Parsed(refusals=(wrong,))
    try:
        own = _own(command, script)
        ignored = any(found.option.name == "ignore-pbs" for found in own.found)
        other = _foreign(command, script) if foreign and not ignored else Parsed()
    except _BadLine as bad:
        return Parsed(refusals=(bad.refusal,))
    return Parsed(
        found=(*own.found, *other.found), refusals=(*own.refusals, *other.refusals), components=own.components,
    )  # fmt: skip


def unread(script: str) -> tuple[str, ...]:
    """Lines for burst buffers: Slurm reads them in its script, which is not this one."""
    places = itertools.islice(_BURST_BUFFER.finditer(script), 10)
    return tuple([f"line {script.count(NEWLINE, 0, place.end()) + 1} of the script is a comment here: {STAGING}" for place in places])


def _unfit(script: str) -> Refusal | None:
    """What sbatch says of a script before it reads it."""
    if not script:
        return _refusal("script", 1, "the batch script is empty", "name a script, give one on the input, or use --wrap")
    if not script.startswith("#!"):
        return _refusal("script", 1, "does not look like a batch script", "start the first line with #! and the path of an interpreter")
    if "\0" in script:
        return _refusal("script", 1, "holds a NUL character", "take it out")
    if "\r\n" in script:
        return _refusal("script", script[: script.index("\r\n")].count("\n") + 1, "has DOS line ends", "run dos2unix on it")
    return None


def _own(command: Command, script: str) -> Parsed:
    words: list[Word] = []
    components = 1
    command_line = _FIRST_COMMAND.search(script)
    for line in _lines(script, _OWN, command_line.start() if command_line else len(script)):
        if line and line[0].text.lower() in SEPARATORS:
            components += 1
        words.extend([word for word in line if word.text.lower() not in SEPARATORS])
    parsed = _parse(command, words, SCRIPT)
    stray = [_refusal(word, words[-1].line, "is not an option", "options start with - or --") for word in parsed.operands[:1]]
    return Parsed(found=parsed.found, refusals=(*parsed.refusals, *stray), components=components + parsed.components - 1)


def _lines(script: str, pattern: re.Pattern[str], end: int) -> Iterator[list[Word]]:
    """The words of the lines that the pattern finds before `end`. The first line is never one of them."""
    number, at, held, size = 1, 0, 0, 0
    for match in pattern.finditer(script, 0, end):
        number, at = number + script.count(NEWLINE, at, match.end()), match.end()
        size += at - match.start()
        line = split(match[1], number) if size <= MOST_TEXT else []
        held += len(line)
        if size > MOST_TEXT or held > MOST_DIRECTIVES:
            rule = f"has more than {MOST_DIRECTIVES} words or {MOST_TEXT} characters of directives"
            raise _BadLine(_refusal("script", number, rule, "write fewer"))
        yield line


def _foreign(command: Command, script: str) -> Parsed:
    """Of #BSUB and #PBS, sbatch reads the first kind of which there is a line, if it is an empty one."""
    late = next(itertools.islice(_NO_COMMENT.finditer(script), COMMANDS_PASSED, None), None)
    end = late.start() if late else len(script)
    for marker, table, translate in (("#BSUB", BSUB, from_bsub), ("#PBS", PBS, from_pbs)):
        lines = list(_lines(script, _FOREIGN[marker], end))
        if lines:
            words = [word for line in lines for word in line]
            return translate(command, _parse(table, _spelled(marker, words), TRANSLATED))
    return Parsed()


def _spelled(marker: str, words: list[Word]) -> list[Word]:
    """`-cwd` of LSF, where sbatch looks for it: every other word."""
    cwd = marker == "#BSUB"
    return [Word(text="-c", line=word.line) if cwd and place % 2 == 0 and word.text == "-cwd" else word for place, word in enumerate(words)]


def _parse(command: Command, words: list[Word], rank: int) -> Parsed:
    return parse(command, [word.text for word in words], _places(words, rank))


def _places(words: list[Word], rank: int) -> Callable[[int], Channel]:
    return lambda index: Channel(rank=rank, text=f"line {words[min(index, len(words) - 1)].line} of the script")


def split(rest: str, line: int) -> list[Word]:
    """The words of one directive, as sbatch takes them apart."""
    words: list[Word] = []
    at = 0
    while True:
        text, at = _word(rest, at, line)
        if text is None:
            return words
        words.append(Word(text=text, line=line))


def _word(rest: str, at: int, line: int) -> tuple[str | None, int]:
    """The next word and where it ends; None at the end of the line, at a comment and at a word without a character."""
    while at < len(rest) and rest[at] in SPACES:
        at += 1
    if rest[at : at + 1] == ":":
        raise _BadLine(_refusal(":", line, "starts a word of a directive", "write `#SBATCH hetjob` between components"))
    text: list[str] = []
    quote, escaped = "", False
    while at < len(rest) and (quote or rest[at] not in SPACES):
        char = rest[at]
        if escaped:
            escaped = False
        elif char == "\\":
            escaped, at = True, at + 1
            continue
        elif quote and char == quote:
            quote, at = "", at + 1
            continue
        elif not quote and char in "\"'":
            quote, at = char, at + 1
            continue
        elif not quote and char == "#":
            break
        text.append(char)
        at += 1
    if quote:
        raise _BadLine(_refusal(quote, line, "opens a quotation that does not end on the line", "close it"))
    return "".join(text) or None, at


def _refusal(typed: str, line: int, rule: str, instead: str) -> Refusal:
    return Refusal(typed=plain(typed, 80), channel=f"line {line} of the script", rule=rule, instead=instead)


class _BadLine(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
