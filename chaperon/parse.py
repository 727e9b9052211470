"""The words of a command line, and the variables that a command reads → options as they were found. Pure.

Words are read as getopt_long reads them for Slurm: `--name=value`, `--name value`, abbreviations, `-n4`, `-n 4`, `-HQ`,
`--`. An abbreviation must be the only one among the options of all versions: one that is clear today and not tomorrow
would mean something else to another Slurm. Nothing is guessed: what is not in the table is refused.
"""

from __future__ import annotations

import re

from agent_sandbox.chaperon.index import index_of
from agent_sandbox.chaperon.words import COMMAND_LINE, FLAG, MAYBE, VALUE, VARIABLE, Channel, Found, Parsed, Refusal
from agent_sandbox.config.errors import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_sandbox.chaperon.words import Command, Option

MOST_WORDS = 4096  # that may be options; the arguments of a script are not counted
MOST_OPTIONS = 4096  # many can stand in one word
MOST_REFUSALS = 20  # that are told
SEPARATOR = ":"


class _Reader:
    """getopt's loop over the words, one step a method."""

    def __init__(self, command: Command, words: Sequence[str], channel: Callable[[int], Channel]) -> None:
        self.command, self.index = command, index_of(command)
        self.words = words
        self.channel = channel
        self.at = 0
        self.component = 0
        self.found: list[Found] = []
        self.refusals: list[Refusal] = []
        self.operands: list[str] = []

    def read(self) -> Parsed:
        while self.at < len(self.words) and self.step():
            if self.is_enough():
                self.refuse("…", f"there is more than the {MOST_WORDS} words, {MOST_OPTIONS} options or {MOST_REFUSALS} mistakes that are looked at")
                break
        return Parsed(
            found=tuple(self.found), refusals=tuple(self.refusals), operands=tuple(self.operands), components=self.component + 1,
        )  # fmt: skip

    def is_enough(self) -> bool:
        return self.at > MOST_WORDS or len(self.found) > MOST_OPTIONS or len(self.refusals) >= MOST_REFUSALS

    def step(self) -> bool:
        """Read one word; False where the options end."""
        word = self.words[self.at]
        self.at += 1
        if word == "--":
            return self.rest(self.at)
        if word.startswith("--"):
            self.long(word)
        elif word.startswith("-") and word != "-":
            self.cluster(word)
        elif word == SEPARATOR and self.command.components:
            self.component += 1
        elif self.command.permutes:
            self.operands.append(word)
        else:
            return self.rest(self.at - 1)
        return True

    def rest(self, start: int) -> bool:
        self.operands.extend(self.words[start:])
        return False

    def long(self, word: str) -> None:
        name, equals, value = word[2:].partition("=")
        option = self.named(name)
        if option is None:
            return
        if option.takes == FLAG and equals:
            self.refuse(f"--{name}", "takes no value")
            return
        given = value if equals else self.next(f"--{name}") if option.takes == VALUE else None
        self.keep(option, f"--{name}", given)

    def named(self, name: str) -> Option | None:
        exact = self.index.names.get(name)
        near = [exact] if exact else self.index.near(name)
        if len(near) == 1 and name:
            return near[0]
        if near:
            self.refuse(f"--{name}", f"could mean {', '.join('--' + option.name for option in near[:8])}", "write the name in full")
        else:
            self.refuse(f"--{name}", "is not an option that is known here", nearest(name, self.command.options))
        return None

    def cluster(self, word: str) -> None:
        """`-HQ`, `-n4`"""
        for position, letter in enumerate(word[1:], 2):
            option = self.index.letters.get(letter)
            if option is None:
                self.refuse(f"-{letter}", "is not an option that is known here", f"see {self.command.name} --help")
                return
            rest = word[position:]
            if option.takes != FLAG:
                given = rest or (None if option.takes == MAYBE else self.next(f"-{letter}"))
                self.keep(option, f"-{letter}", given)
                return
            self.keep(option, f"-{letter}", None)
            if self.is_enough():
                return

    def next(self, typed: str) -> str | None:
        """The word after an option, whatever it looks like, is its value."""
        if self.at >= len(self.words):
            return None
        word = self.words[self.at]
        if word == SEPARATOR and self.command.components:
            self.refuse(typed, "Slurm reads the `:` after it in two ways", f"write {typed} with `=`, or leave the `:` out")
        self.at += 1
        return word

    def keep(self, option: Option, typed: str, value: str | None) -> None:
        if option.takes == VALUE and value is None:
            self.refuse(typed, "needs a value")
            return
        self.found.append(Found(option=option, typed=typed, value=value, channel=self.channel(self.at - 1), component=self.component))

    def refuse(self, typed: str, rule: str, instead: str = "") -> None:
        where = self.channel(min(self.at, len(self.words)) - 1).text
        self.refusals.append(Refusal(typed=plain(typed, 80), channel=where, rule=rule, instead=instead))


def parse(command: Command, words: Sequence[str], channel: Callable[[int], Channel] = lambda index: COMMAND_LINE) -> Parsed:
    """`channel` says where the word with an index stood."""
    return _Reader(command, words, channel).read()


def nearest(name: str, options: Sequence[Option]) -> str:
    """The allowed option that looks most like the name."""
    from difflib import get_close_matches

    close = get_close_matches(name[:40], [option.name for option in options if option.verdict != "refuse"], 1)
    return f"the nearest that is allowed is --{close[0]}" if close else "leave it out"


def from_variables(command: Command, environment: Mapping[str, str]) -> tuple[Found, ...]:
    """What the environment asks for, as the command would read it."""
    return tuple([
        found
        for name, option in index_of(command).variables
        if name in environment
        for found in _from_variable(option, name, environment)
    ])  # fmt: skip


def _from_variable(option: Option, name: str, environment: Mapping[str, str]) -> list[Found]:
    value: str | None = environment[name]
    channel = Channel(rank=VARIABLE, text=f"variable {name}")
    times = 1
    if option.takes == FLAG:
        times, value = _truth(environment[name], counted=option.gathers), None
    elif option.takes == MAYBE:
        value = value or None
    elif option.name == "switches" and name.endswith("_REQ_SWITCH"):
        wait = environment.get(name.replace("_REQ_SWITCH", "_WAIT4SWITCH"))
        value = f"{value}@{wait}" if wait else value
    return [Found(option=option, typed=name, value=value, channel=channel)] * times


def _truth(text: str, *, counted: bool) -> int:
    """A flag is set by a variable that is empty, `yes` or a number but 0, as strtol reads it. `SBATCH_DEBUG=2` is `-vv`."""
    if text == "" or text.lower() == "yes":
        return 1
    number = re.fullmatch(r"[ \t\n\v\f\r]*+([+-]?)0*+([0-9]*)", text)
    if not number or not number[2]:
        return 0
    return min(int(number[2][:9]), 9) if counted and number[1] != "-" else int(not counted)
