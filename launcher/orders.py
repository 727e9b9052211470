"""What the guard is told once everything is decided – plan, session, log – as bytes for a pipe between two processes of ours. Pure."""

from __future__ import annotations

import marshal

from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.audit import Log
from agent_sandbox.launcher.plan import Cover, Data, Domain, Held, Inner, PathRule, Plan, Room, Stage
from agent_sandbox.launcher.policy import Helper, Limits
from agent_sandbox.launcher.session import Session
from agent_sandbox.launcher.view import Carve, Carving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@record
class Orders:
    plan: Plan
    session: Session
    log: Log


def pack(orders: Orders) -> bytes:
    plan, stage, domain = orders.plan, orders.plan.stage, orders.plan.domain
    parts: Any = (
        _fields(replace(plan, stage=None, domain=None, room=None, inner=None, helpers=(), data=())),
        [_fields(one) for one in plan.data],
        _fields(replace(stage, carves=(), held=(), covers=(), limits=None, ignored_signals=tuple(map(int, stage.ignored_signals)))),
        [{**_fields(one), "carving": one.carving.value} for one in stage.carves],
        [_fields(one) for one in stage.held],
        [_fields(one) for one in stage.covers],
        _fields(stage.limits),
        domain and _pack_domain(domain),
        plan.room and _fields(plan.room),
        plan.inner and _fields(plan.inner),
        [_fields(one) for one in plan.helpers],
        _fields(orders.session),
        _fields(orders.log),
    )  # fmt: skip
    return marshal.dumps(parts)


def unpack(packed: bytes) -> Orders:
    plan, data, stage, carves, held, covers, limits, domain, room, inner, helpers, session, log = marshal.loads(packed)
    whole_stage = Stage(**{
        **stage, "held": tuple(Held(**one) for one in held), "covers": tuple(Cover(**one) for one in covers), "limits": Limits(**limits),
        "carves": tuple(Carve(**{**one, "carving": Carving(one["carving"])}) for one in carves),
    })  # fmt: skip
    whole = Plan(**{
        **plan, "stage": whole_stage, "data": tuple(Data(**one) for one in data),
        "domain": domain and _unpack_domain(domain), "room": room and Room(**room), "inner": inner and Inner(**inner),
        "helpers": tuple(Helper(**one) for one in helpers),
    })  # fmt: skip
    return Orders(plan=whole, session=Session(**session), log=Log(**log))


def _pack_domain(domain: Domain) -> dict[str, object]:
    return {**_fields(domain), "rules": [_fields(one) for one in domain.rules], "allowed": _fields(domain.allowed)}


def _unpack_domain(packed: dict[str, Any]) -> Domain:
    from agent_sandbox.launcher.supervisor.allowed import Allowed

    return Domain(**{**packed, "rules": tuple(PathRule(**one) for one in packed["rules"]), "allowed": Allowed(**packed["allowed"])})


def _fields(item: object) -> dict[str, object]:
    return dict(item.__dict__)
