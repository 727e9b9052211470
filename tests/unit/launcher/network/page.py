"""The decision table, the floor and the shipped lists become the tables of docs/network.md; the text around them is written by hand. `make docs`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent_sandbox.config.keys import PRESETS
from agent_sandbox.config.shipped import load_floor, load_preset
from tests.unit.launcher.network.table import Decisions, read_table

PAGE = Path(__file__).resolve().parents[4] / "docs/network.md"
BEGIN, END = "<!-- decisions: `make docs` writes from here -->", "<!-- to here -->"
WHO = {"admin_defaults": "admin, `[defaults]`", "admin": "admin", "person": "person", "repository": "project's file"}


def main() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{tables(read_table())}{END}{after}")


def written() -> str:
    return PAGE.read_text().partition(f"{BEGIN}\n")[2].partition(END)[0]


def tables(cases: Iterable[Decisions]) -> str:
    return "\n".join(["", *_floor(), "", *_presets(), "", "## The decision table", "", *(line for case in cases for line in _case(case))])


def _floor() -> list[str]:
    rows = [f"| {what} | `{name}` | {_code(entries)} |" for what, parts in load_floor().items() for name, entries in parts.items()]
    return ["| floor | part | |", "|---|---|---|", *rows, "| addresses | `own` | the machine's own addresses |"]


def _presets() -> list[str]:
    return ["| preset | hosts |", "|---|---|", *(f"| `{name}` | {_code(load_preset(name))} |" for name in PRESETS)]


def _case(case: Decisions) -> list[str]:
    said = [f"* {WHO[layer]}: `{name}` = {_code([value] if isinstance(value, str) else value)}" for layer, name, value in case.config()]
    rows = [f"| {_question(row.question)} | {'allowed' if row.answer[0] == '+' else 'refused'} | `{row.answer[2:]}` |" for row in case.rows]
    return [f"### {case.says}", "", *said, *([""] if said else []), "| asked | verdict | rule |", "|---|---|---|", *rows, ""]


def _question(question: str) -> str:
    target, _, address = question.partition(" > ")
    return f"`{target}`" + (f" at `{address}`" if address else "")


def _code(entries: Iterable[str]) -> str:
    return " ".join(f"`{entry}`" for entry in entries) or "none"


if __name__ == "__main__":
    main()
