"""Words become bash source that can be pasted: any byte survives, and nothing moves the terminal. Pure."""

from __future__ import annotations

import re

PLAIN = re.compile(r"[A-Za-z0-9_./:=@%+,-]+")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote(word: str) -> str:
    """As one word. Lines are kept; anything else that does not print is written as its bytes."""
    if PLAIN.fullmatch(word):
        return word
    if all(char.isprintable() or char == "\n" for char in word):
        return "'" + word.replace("'", "'\\''") + "'"
    return "$'" + "".join(_escaped(char) for char in word) + "'"


def quote_inside(word: str) -> str:
    """As one word of a script that is itself quoted: with backslashes, so that the quotes need not be nested."""
    if not word or not word.isprintable():
        return quote(word)
    return "".join(char if PLAIN.fullmatch(char) or not char.isascii() else f"\\{char}" for char in word)


def reference(name: str) -> str:
    """The caller's own variable, whatever it holds: its value stays out of what is printed."""
    return f'"${name}"' if NAME.fullmatch(name) else f'"$(printenv {quote(name)})"'


def _escaped(char: str) -> str:
    if char in "'\\":
        return f"\\{char}"
    return char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
