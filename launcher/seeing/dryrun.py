"""`--dry-run`: what would run, as a command to paste or as JSON. Changes nothing and shows no secret."""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Mapping

from agent_sandbox.launcher.launch import decide, open_case
from agent_sandbox.launcher.seeing.outline import outline
from agent_sandbox.launcher.seeing.paste import is_ours, paste

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.cli import Request
    from agent_sandbox.launcher.launch import Case, Decision


def run(request: Request) -> int:
    """What is pasted has no session, and so no process of ours beside it: see paste.py."""
    case = open_case(request)
    return show(case, decide(case, in_session=request.json))


def show(case: Case, decision: Decision) -> int:
    if case.request.json:
        text = json.dumps(as_data(case, decision), indent=2) + "\n"
    else:
        text = paste(case, decision) if decision.backend.name == "bwrap" else outline(decision)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())  # as bytes: what is pasted must not depend on the locale
    sys.stdout.buffer.flush()
    return 0


def as_data(case: Case, decision: Decision) -> dict[str, object]:
    policy, plan = plain(decision.policy), plain(decision.plan)
    assert isinstance(policy, dict) and isinstance(plan, dict)
    values = decision.policy.environment.values
    shown = {name: value if is_ours(name, value, case, decision) else f"${name}" for name, value in values.items()}
    policy["environment"] = {**policy["environment"], "values": shown}
    if decision.backend.name == "bwrap":
        plan["options"] = _without_values(decision.plan.options, shown)
    for part in ("domain", "inner"):
        if plan.get(part):
            plan[part] = {**plan[part], "environment": shown}
    return {
        "backend": decision.backend.name, "policy": policy, "plan": plan, "gaps": plain(decision.gaps),
        "clamps": plain(case.settings.clamps),
    }  # fmt: skip


def _without_values(options: tuple[str, ...], shown: dict[str, str]) -> list[str]:
    """`--setenv NAME VALUE` stands at the end, after everything that could be taken for it."""
    size = 3 * len(shown)
    setting = [word for name, value in shown.items() for word in ("--setenv", name, value)]
    assert options[len(options) - size :: 3] == ("--setenv",) * len(shown)
    return [*options[: len(options) - size], *setting]


def plain(value: object) -> object:
    """Records as objects, enums by their words, bytes by their number."""
    if isinstance(value, enum.Enum):
        return value.name.lower() if isinstance(value, enum.IntEnum) else value.value
    if isinstance(value, bytes):
        return {"bytes": len(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [plain(one) for one in value]
    return plain(vars(value)) if hasattr(value, "__dict__") and not isinstance(value, (int, str)) else value
