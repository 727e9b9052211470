"""Lines for people, on stderr. Colours only on a terminal, and not where NO_COLOR is set."""

from __future__ import annotations

import os
import sys

COLOURS = {"error": "31", "warning": "33", "quiet": "2", "good": "32"}


def say(text: str, kind: str = "", *, program: str = "agent-sandbox") -> None:
    """One message, named as ours. Never fails: a closed stderr is no reason to stop, least of all half-way."""
    plain = f"{program}: {text}".encode("utf-8", "backslashreplace").decode()
    try:
        sys.stderr.write(paint(plain, kind, sys.stderr.isatty()) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def paint(text: str, kind: str, on_terminal: bool) -> str:
    if kind not in COLOURS or not on_terminal or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{COLOURS[kind]}m{text}\x1b[0m"
