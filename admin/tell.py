"""Lines for people, on stderr, named as botadm's."""

from __future__ import annotations

import sys

from agent_sandbox.launcher.say import paint


def tell(text: str, kind: str = "") -> None:
    """Never fails: a closed stderr is no reason to stop half-way."""
    line = f"botadm: {text}".encode("utf-8", "backslashreplace").decode()
    try:
        sys.stderr.write(paint(line, kind, sys.stderr.isatty()) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
