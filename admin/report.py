"""Plans, outcomes and states become text, or JSON. Pure."""

from __future__ import annotations

import json

from agent_sandbox.admin.steps import check_of, undo_of
from agent_sandbox.config.errors import plain
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.share.rules import Tally
    from agent_sandbox.admin.steps import Act, Part, Step


@record
class Outcome:
    """What a command came to."""

    command: str
    steps: tuple[Step, ...]
    applied: bool
    backwards: bool = False  # the steps are taken back
    notes: tuple[str, ...] = ()
    tallies: tuple[Tally, ...] = ()


def outcome_text(outcome: Outcome) -> str:
    if not outcome.steps:
        lines = [f"{outcome.command}: nothing to do"]
    elif outcome.applied:
        lines = [f"{outcome.command}: done, {_count(outcome.steps)}", *(f"  {step.does}" for step in outcome.steps)]
    else:
        lines = [f"{outcome.command}: {_count(outcome.steps)}; nothing was changed", *_plan_lines(outcome.steps, backwards=outcome.backwards)]
    lines += [line for tally in outcome.tallies for line in tally_lines(tally, outcome.applied)]
    return "\n".join([*(plain(line) for line in lines), *(f"note: {plain(note)}" for note in outcome.notes)])


def outcome_json(outcome: Outcome) -> str:
    steps = [step_data(step, backwards=outcome.backwards) for step in outcome.steps]
    tallies = [{**vars(tally)} for tally in outcome.tallies]
    data = {"command": outcome.command, "applied": outcome.applied, "steps": steps, "notes": outcome.notes, "trees": tallies}
    return json.dumps(data, indent=1)


def step_data(step: Step, *, backwards: bool = False) -> dict[str, object]:
    return {
        "does": step.does, "why": step.why, "how": undo_of(step.act) if backwards else how(step.act), "reversible": step.reversible,
        "undo": undo_of(step.act), "check": check_of(step.act),
    }  # fmt: skip


def how(act: Act) -> str:
    argv = getattr(act, "argv", None)
    return " ".join(argv) if argv else f"{type(act).__name__.lower()} {getattr(act, 'path', '')}".strip()


def _plan_lines(steps: tuple[Step, ...], *, backwards: bool) -> list[str]:
    lines = []
    for number, step in enumerate(steps, 1):
        lines += [f"{number:3}. {step.does}" + ("" if step.reversible else "   [cannot be taken back]"), f"       why    {step.why}"]
        if backwards:
            lines += [f"       do     {undo_of(step.act)}"] if step.reversible else []
        else:
            lines += [f"       do     {how(step.act)}", f"       undo   {undo_of(step.act)}", f"       check  {check_of(step.act)}"]
    return lines


def _count(steps: tuple[Step, ...]) -> str:
    return f"{len(steps)} step" + ("" if len(steps) == 1 else "s")


def tally_lines(tally: Tally, applied: bool) -> list[str]:
    verb = "changed" if applied else "to be changed"
    lines = [f"  {tally.changed:,} {verb}, {tally.same:,} already so" + (f", {tally.gone:,} recorded and gone" if tally.gone else "")]
    for reason, (count, first) in tally.skipped.items():
        lines.append(f"  left alone: {count:,} {reason}")
        lines += [f"    {path or '.'}" for path in first] + (["    …"] if count > len(first) else [])
    return [*lines, *(f"  warning: {warning}" for warning in tally.warnings)]


def parts_text(name: str, parts: tuple[Part, ...], notes: tuple[str, ...] = ()) -> str:
    wrong = sum(not part.right for part in parts)
    lines = [f"{name}: " + (f"{wrong} of {len(parts)} not as it should be" if wrong else "all as it should be")]
    for part in parts:
        mark = "?    " if not part.known else "ok   " if part.right else "WRONG"
        lines.append(f"  {mark} {part.what}: {part.found}" + ("" if part.right else f"   (should be: {part.should})"))
    return "\n".join(plain(line) for line in (*lines, *(f"  note: {note}" for note in notes)))


def parts_json(name: str, parts: tuple[Part, ...], more: dict[str, object]) -> str:
    checks = [{"what": part.what, "should": part.should, "found": part.found, "ok": part.right if part.known else None} for part in parts]
    return json.dumps({"name": name, "ok": all(part.right for part in parts), **more, "checks": checks}, indent=1)
