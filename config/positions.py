"""Where in a TOML file a key is written: for messages, never on the way to a jail. Reads files.

tomllib gives no positions. This looks for headers and `key =` lines: enough to send a person to the right place.
"""

from __future__ import annotations

import os
import re

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.files import MOST_DOTS, read_untrusted

_HEADER = re.compile(r"\s*\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


def line_in_file(path: str, key: str, written: str = "") -> int | None:
    try:
        data = read_untrusted(os.path.realpath(path))
    except UserError:
        return None
    return find_line(data.decode(errors="replace"), key, written) if data else None


def find_line(text: str, key: str, written: str = "") -> int | None:
    """The line of the key, or of the entry `written` in its list; of the table above it if it is inline."""
    if key.count(".") > MOST_DOTS:  # a name of an agent's making: looking for what stands above it would take minutes
        return None
    lines = text.splitlines()
    places = dict(_places(lines))
    while key and key not in places:
        key = key.rpartition(".")[0]
    if not key:
        return None
    start = places[key]
    further = [line for name, line in places.items() if line > start and not name.startswith(f"{key}.")]
    end = min(further, default=len(lines) + 1)
    quoted = [number for number in range(start, end) if _holds(lines[number - 1], written)]
    return quoted[0] if written and quoted else start


def _places(lines: list[str]) -> list[tuple[str, int]]:
    """Every header and key with its line, as dotted names; the first of each counts."""
    found: dict[str, int] = {}
    table, quotes = "", ""
    for number, line in enumerate(lines, 1):
        inside, quotes = quotes, _open_quotes(line, quotes)
        header, key = _HEADER.match(line), _KEY.match(line)
        if inside:
            continue
        if key:
            found.setdefault(_dotted(table, key[1]), number)
        elif header:
            table = _dotted("", header[1])
            found.setdefault(table, number)
    return list(found.items())


def _open_quotes(line: str, quotes: str) -> str:
    """Which multi-line string, if any, is open at the end of the line."""
    for mark in re.findall(r'"""|\'\'\'', line):
        quotes = "" if mark == quotes else quotes or mark
    return quotes


def _dotted(table: str, key: str) -> str:
    parts = re.findall(r"""[\w-]+|"[^"]*"|'[^']*'""", key)
    return ".".join([*([table] if table else []), *(part.strip("\"'") for part in parts)])


def _holds(line: str, written: str) -> bool:
    return f'"{written}"' in line or f"'{written}'" in line
