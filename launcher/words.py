"""Our own words and what answers them: each a module that is imported only when its word is used."""

from __future__ import annotations

import importlib

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.cli import RESERVED, WORDS, help_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.cli import Request

# word → the module whose `run(request)` answers it, and whether it can answer inside a jail
ANSWERS = {
    "doctor": ("agent_sandbox.launcher.seeing.doctor", False),
    "explain": ("agent_sandbox.launcher.seeing.explain", True),
    "config": ("agent_sandbox.launcher.seeing.settings", False),
    "audit": ("agent_sandbox.launcher.seeing.audit", False),
    "network": ("agent_sandbox.launcher.seeing.network", True),
    "ps": ("agent_sandbox.launcher.seeing.ps", False),
}


def run_word(request: Request, inside: bool) -> int:
    if request.word == "help":
        print(help_page())
        return 0
    if request.word == "version":
        from agent_sandbox import __version__

        print(f"agent-sandbox {__version__}")
        return 0
    if request.word in RESERVED:
        problem = f"`{request.word}` is kept for a part that is not in this version"
        raise UserError(problem, hint=f"`agent-sandbox -- {request.word}` runs a program of that name")
    module, answers_inside = ANSWERS[request.word]
    if inside and not answers_inside:
        raise UserError(f"`{request.word}` answers outside the jail only", hint="`agent-sandbox explain` works here")
    answering = importlib.import_module(module)
    if request.command[:1] in (("--help",), ("-h",)) and request.word != "config":  # which has a page of its own
        print(usage_page(request.word, answering.USAGE))
        return 0
    return int(answering.run(request))


def usage_page(word: str, usage: str) -> str:
    """One way of asking a line."""
    return f"usage: {usage}".replace(" | ", "\n       | ") + f"\n\n{WORDS[word]}"
