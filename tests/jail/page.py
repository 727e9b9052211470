"""What a run saw becomes the tables of docs/backends.md; the text around them is written by hand. `make docs`, as root."""

from __future__ import annotations

from pathlib import Path

from agent_sandbox.launcher.policy import Property
from tests.jail.properties import FACTS, Fact
from tests.jail.seen import BACKENDS, GAP, HOLDS, OPEN, WEAK, Seen, look

PAGE = Path(__file__).resolve().parents[2] / "docs/backends.md"
BEGIN, END = "<!-- measured: `make docs` writes from here -->", "<!-- to here -->"
HEADING = "## Every fact"
WORST_FIRST = (OPEN, GAP, WEAK, HOLDS)


def main() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{tables([look(backend) for backend in BACKENDS])}\n{END}{after}")


def tables(seen: list[Seen]) -> str:
    names = " | ".join(one.backend for one in seen)
    rule = "|---" * (len(seen) + 2) + "|"
    overview = [f"| property | facts | {names} |", rule, *(_overview(one, seen) for one in Property if _facts(one))]
    facts = [f"| property | fact | {names} |", rule]
    facts += [f"| {fact.property} | {fact.says} | {' | '.join(one.verdict(fact) for one in seen)} |" for fact in FACTS]
    return "\n".join([*overview, "", HEADING, "", *facts, ""])


def _overview(property: Property, seen: list[Seen]) -> str:
    return f"| {property} | {len(_facts(property))} | {' | '.join(_summary(property, one) for one in seen)} |"


def _summary(property: Property, seen: Seen) -> str:
    """The worst that is among its facts, and how often anything but `holds` is."""
    verdicts = [seen.verdict(fact) for fact in _facts(property)]
    worst = min(verdicts, key=WORST_FIRST.index)
    return worst if worst == HOLDS else f"{worst} ({len(verdicts) - verdicts.count(HOLDS)})"


def _facts(property: Property) -> list[Fact]:
    return [fact for fact in FACTS if fact.property == property]


def column(seen: Seen) -> list[tuple[str, str]]:
    return [(fact.name(), seen.verdict(fact)) for fact in FACTS]


def column_of(backend: str) -> list[tuple[str, str]]:
    """The same, as the page has it."""
    lines = PAGE.read_text().partition(HEADING)[2].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    place = head.index(backend)
    return [(f"{row[0]}: {row[1]}", row[place]) for row in rows]


if __name__ == "__main__":
    main()
