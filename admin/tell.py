"""Lines for people, on stderr, named as botadm's."""

from __future__ import annotations

from agent_sandbox.launcher.say import say


def tell(text: str, kind: str = "") -> None:
    say(text, kind, program="botadm")
