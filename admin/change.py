"""A command that changes the machine, from its plan to what it came to: root alone, one at a time, from code that only root can change."""

from __future__ import annotations

from agent_sandbox.admin import interrupt, journal
from agent_sandbox.admin.apply import apply, recover
from agent_sandbox.admin.owner import need_root
from agent_sandbox.admin.places import TOOLS
from agent_sandbox.admin.programs import find_tools
from agent_sandbox.admin.report import Outcome
from agent_sandbox.admin.tell import tell
from agent_sandbox.admin.trust import check_own_code
from agent_sandbox.admin.turn import own_turn
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.admin.share.rules import Tally
    from agent_sandbox.admin.steps import Step

    Tools = dict[str, str]


@record
class Planned:
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    surveyed: tuple[Tally, ...] = ()  # of trees, where nothing is to be applied


def change(command: str, plan: Callable[[Tools], Planned], *, dry_run: bool) -> Outcome:
    """`plan` is asked in our own turn: what it finds is what is there when the first step is done."""
    need_root()
    check_own_code()
    tools = find_tools(TOOLS)
    if dry_run:
        planned = plan(tools)
        return Outcome(command=command, steps=planned.steps, applied=False, notes=(*interrupted(), *planned.notes), tallies=planned.surveyed)
    with interrupt.noted(), own_turn() as turn:
        for line in recover():
            tell(line)
        planned = plan(tools)
        tallies = apply(command, planned.steps, turn) if planned.steps else planned.surveyed
    return Outcome(command=command, steps=planned.steps, applied=bool(planned.steps), notes=planned.notes, tallies=tallies)


def interrupted() -> tuple[str, ...]:
    return tuple(f"«{entry.command}» was interrupted, and would be taken back first" for entry in journal.entries() if not entry.end)
