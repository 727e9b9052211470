"""Answers on stdout: tables that fit the terminal, JSON for machines. Colours only on a terminal."""

from __future__ import annotations

import json
import shutil
import sys

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.tables import layout
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.say import paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

WIDEST = 100_000  # for what is not a terminal: one row a line


def put(text: str, kind: str = "") -> None:
    """A line that can be written whatever the locale can spell."""
    encoding = sys.stdout.encoding or "ascii"
    print(paint(text, kind, sys.stdout.isatty()).encode(encoding, "backslashreplace").decode(encoding))


def put_json(data: object) -> None:
    print(json.dumps(data, indent=2))


def put_table(rows: Iterable[Sequence[str]]) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDEST
    for line in layout([tuple(map(printable, row)) for row in rows], width):
        put(line)


def take_json(words: Sequence[str], asked: bool) -> tuple[bool, tuple[str, ...]]:
    """`--json` may stand before our word or after it."""
    return asked or "--json" in words, tuple(word for word in words if word != "--json")


def read_count(text: str, usage: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UserError(f"-n {printable(text)}: not a number", hint=f"usage: {usage}")
    return int(text)


def refuse_more(words: Sequence[str], usage: str) -> None:
    if words:
        raise UserError(f"{printable(words[0])} is not expected here", hint=f"usage: {usage}")
