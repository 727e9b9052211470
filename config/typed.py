"""What a person types for a key → the value as TOML has it. Pure.

Lists are comma-separated, or TOML: `a,b` or `["a", "b"]`. A table is `NAME=text,OTHER=text` or `{NAME = "text"}`.
"""

from __future__ import annotations

from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.keys import Key

AMOUNTS = ("number", "size", "duration")


def read_typed(key: Key, text: str) -> object:
    """The value; what it must look like is checked where all values are."""
    if key.kind == "flag":
        return {"true": True, "false": False}.get(text, text)
    if key.kind in AMOUNTS:
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else text
    if key.kind in ("text", "choice", "upstream"):
        return text
    if text.startswith(("[", "{")):
        return _read_toml(key, text)
    parts = [part.strip() for part in text.split(",")] if text else []
    return dict(_pair(key, part) for part in parts) if key.kind == "table" else parts


def _read_toml(key: Key, text: str) -> object:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        raise UserError(f"{text} is not TOML", where=key.name, hint='lists are written a,b or ["a", "b"]') from None


def _pair(key: Key, part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not equals:
        raise UserError(f"{part} is not of the form NAME=text", where=key.name)
    return name, value
