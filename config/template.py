"""The table of keys → the file that `config init` writes: every line a comment, so that it decides nothing. Pure."""

from __future__ import annotations

import textwrap

from agent_sandbox.config import kinds
from agent_sandbox.config.keys import KEYS, SECTIONS, Key

HEAD = """\
# agent-sandbox: your own config. Every line is a comment: as it stands, this file changes nothing.
# Take the # off a line and change the value. `agent-sandbox config check` says whether it is understood, and
# `agent-sandbox config show` what holds in the end: what your admin has set can be made stricter here, not weaker.
# Paths are relative to your home. Lists add to the shipped ones. Choices are written strictest first.
"""
EXAMPLES = {
    "names": '["name"]', "hosts": '["*.example.org", "10.0.0.0/8:443"]', "openings": '["10.0.0.0/8"]',
    "variables": '["MY_NAME", "MY_*"]', "paths": '["~/some/place"]', "within": '["some/place"]',
    "tables": '[{ name = "api", host = "api.example.org", header = "x-api-key: {secret}", env = "API_KEY" }]',
    "table": '{ NAME = "text" }', "number": "100", "size": '"4G"', "duration": '"2h"', "text": '""',
    "upstream": '"proxy.example.org:3128"',
}  # fmt: skip


def template() -> str:
    parts = [HEAD]
    for names in SECTIONS.values():
        keys = [KEYS[name] for name in names if KEYS[name].rule != "admin"]
        parts.append("\n".join(line for key in keys for line in _lines(key)) + "\n")
    return "\n".join(parts)


def _lines(key: Key) -> list[str]:
    choices = f" ({', '.join(map(str, key.choices))})" if key.kind == "choice" else ""
    later = "" if key.ready else "; not used yet"
    return [*(f"# {line}" for line in textwrap.wrap(key.help + choices + later, 110)), f"# {key.name} = {_value(key)}"]


def _value(key: Key) -> str:
    if key.default is None:
        return f'"{key.choices[0]}"' if key.kind == "choice" else example(key)
    written = kinds.shown(key, key.default)
    return written if key.kind in ("flag", "number") or written.isdecimal() else f'"{written}"'


def example(key: Key) -> str:
    return f'["{key.choices[0]}"]' if key.kind == "names" and key.choices else EXAMPLES[key.kind]
