"""A command line → what the audit log may say of it: arguments yes, scripts and the values of variables never. Pure.

A wrapped command is a script. What stands after an option that is not known may be one too, so it is not told.
"""

from __future__ import annotations

from agent_sandbox.chaperon.export import tokens
from agent_sandbox.chaperon.parse import parse
from agent_sandbox.chaperon.registry import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.chaperon.words import Found

UNTOLD = "…"
MOST_WORDS = 50
LONGEST = 200


def told(command: str, words: Sequence[str]) -> list[str]:
    """Options first, as they were read, then the rest."""
    if command not in COMMANDS:
        return [UNTOLD] if words else []
    line = parse(COMMANDS[command], words)
    said = [word for found in line.found for word in _option(found)]
    said += [one.typed for one in line.refusals]
    rest = [UNTOLD] if line.refusals and line.operands else line.operands
    return [word[:LONGEST] for word in (*said, *rest)[:MOST_WORDS]]


def _option(found: Found) -> list[str]:
    if found.value is None:
        return [found.typed]
    value = found.value
    if found.option.grammar == "command":
        value = UNTOLD
    elif found.option.grammar == "export":
        value = _names(value)
    return [f"{found.typed}={value}"] if found.typed.startswith("--") else [found.typed, value]


def _names(export: str) -> str:
    """`A=secret,B` is `A=…,B`."""
    pairs = [token.partition("=") for token in tokens(export)]
    return ",".join([f"{name}={UNTOLD}" if equals else name for name, equals, _ in pairs])
