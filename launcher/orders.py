"""What the guard is told once everything is decided – plan, session, log – as bytes for a pipe between two processes of ours. Pure."""

from __future__ import annotations

import marshal

from agent_sandbox.config.record import record
from agent_sandbox.launcher.audit import Log
from agent_sandbox.launcher.plan import Data, Held, Plan, Stage
from agent_sandbox.launcher.policy import Limits
from agent_sandbox.launcher.session import Session
from agent_sandbox.launcher.view import Carve, Carving


@record
class Orders:
    plan: Plan
    session: Session
    log: Log


def pack(orders: Orders) -> bytes:
    plan, stage = orders.plan, orders.plan.stage
    return marshal.dumps((
        {name: getattr(plan, name) for name in ("backend", "program", "options", "options_fd", "status_fd", "command")},
        [_fields(one) for one in plan.data],
        [{**_fields(one), "carving": one.carving.value} for one in stage.carves],
        [_fields(one) for one in stage.held],
        _fields(stage.limits),
        {
            "most_user_namespaces": stage.most_user_namespaces, "scope_abstract_sockets": stage.scope_abstract_sockets,
            "scope_signals": stage.scope_signals, "ignored_signals": tuple(map(int, stage.ignored_signals)),
        },
        _fields(orders.session),
        _fields(orders.log),
    ))  # fmt: skip


def unpack(packed: bytes) -> Orders:
    plan, data, carves, held, limits, rest, session, log = marshal.loads(packed)
    stage = Stage(
        carves=tuple(Carve(**{**one, "carving": Carving(one["carving"])}) for one in carves),
        held=tuple(Held(**one) for one in held), limits=Limits(**limits), **rest,
    )  # fmt: skip
    whole = Plan(**plan, data=tuple(Data(**one) for one in data), stage=stage)
    return Orders(plan=whole, session=Session(**session), log=Log(**log))


def _fields(item: object) -> dict[str, object]:
    return dict(item.__dict__)
