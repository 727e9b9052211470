"""Acts and lines become plain data for the journal, and come back. Pure.

The journal is root's own file; still, only the records that are named here are made from it.
"""

from __future__ import annotations

from agent_sandbox.admin import steps
from agent_sandbox.admin.accountlines import Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.admin.steps import Act

KINDS = {
    kind.__name__: kind
    for kind in (
        steps.Tool, steps.Lines, steps.Put, steps.Drop, steps.Make, steps.Unmake, steps.Set, steps.Grant, steps.End,
        steps.Sweep, steps.Delete, steps.ShareTree, steps.UnshareTree,
    )
}  # fmt: skip


def from_act(act: Act) -> dict[str, object]:
    return {"act": type(act).__name__, **{name: _plain(value) for name, value in vars(act).items()}}


def to_act(data: dict[str, object]) -> Act:
    fields = {name: _back(value) for name, value in data.items() if name != "act"}
    make: Callable[..., Act] = KINDS[str(data["act"])]
    return make(**fields)


def from_lines(lines: tuple[Line, ...]) -> list[dict[str, str]]:
    return [dict(vars(line)) for line in lines]


def to_lines(data: object) -> tuple[Line, ...]:
    return tuple(Line(**one) for one in data) if isinstance(data, list) else ()


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return dict(vars(value)) if isinstance(value, Line) else value


def _back(value: object) -> object:
    if isinstance(value, list):
        return tuple(_back(one) for one in value)
    return Line(**value) if isinstance(value, dict) else value
