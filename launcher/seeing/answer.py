"""What `explain` says: a verdict, the rule that made it, and the layer that the rule comes from."""

from __future__ import annotations

from agent_sandbox.config.record import record
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.seeing.output import put, put_json, put_table


@record
class Answer:
    subject: str
    verdict: str
    rule: str
    origin: str
    values: tuple[tuple[str, str], ...] = ()  # of a list: each entry, and where it comes from
    notes: tuple[str, ...] = ()


def put_answer(answer: Answer, as_json: bool) -> None:
    if as_json:
        put_json({name: getattr(answer, name) for name in ("subject", "verdict", "rule", "origin", "values", "notes")})
        return
    put(f"{printable(answer.subject)}: {printable(answer.verdict)}")
    rows = [("  rule", answer.rule), ("  from", answer.origin)]
    rows += [("  entry", f"{value}  ({origin})") for value, origin in answer.values]
    put_table([*rows, *(("  note", note) for note in answer.notes)])
