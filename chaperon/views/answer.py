"""A request to look or to control → the first step of its answer: what is asked (registry), what may be seen (ledger), which command."""

from __future__ import annotations

from agent_sandbox.chaperon import words
from agent_sandbox.chaperon.control import cancel, control
from agent_sandbox.chaperon.ledger import Ledger
from agent_sandbox.chaperon.room import requeue
from agent_sandbox.chaperon.validate import validate
from agent_sandbox.chaperon.version import ask_version, known_version
from agent_sandbox.chaperon.views.cluster import cluster, shares
from agent_sandbox.chaperon.views.lookup import look
from agent_sandbox.chaperon.views.queue import accounting, queue, running
from agent_sandbox.chaperon.wire import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.command import Step
    from agent_sandbox.chaperon.orders import Caps, Orders
    from agent_sandbox.chaperon.views.lookup import Live
    from agent_sandbox.chaperon.views.scope import Scope
    from agent_sandbox.chaperon.wire import Request
    from agent_sandbox.chaperon.words import Approved, Refused, Rules

    Plan = Callable[[Approved, Scope], Step]

PLANS: dict[str, Plan] = {
    "squeue": queue, "sprio": queue, "sacct": accounting, "sstat": running, "sshare": shares, "sinfo": cluster, "sacctmgr": cluster,
    "scancel": cancel, "scontrol": control,
}  # fmt: skip

_ledgers: dict[str, Ledger] = {}  # of this process: one, but for tests


def view(request: Request, orders: Orders) -> Step:
    asked = words.Request(command=request.command, words=request.words, environment=request.environment, cwd=request.cwd)
    return with_verdict(asked, orders, lambda checked: _carry_out(checked, orders))


def _carry_out(checked: Approved | Refused, orders: Orders) -> Step:
    if isinstance(checked, words.Refused):
        return refused(checked.command, *map(str, checked.reasons))
    ledger = ledger_of(orders)

    def act() -> Step:
        return with_scope(ledger, lambda scope: PLANS[checked.command](checked, scope))

    return requeue(checked, orders.caps, ledger, act) if checked.operands == ("requeue",) else act()


def with_verdict(asked: words.Request, orders: Orders, then: Callable[[Approved | Refused], Step]) -> Step:
    """What the tables say. Slurm is asked for its version once, and only where something depends on it."""
    known = known_version(orders.programs)
    checked = validate(asked, rules_of(orders, known))
    if known or not checked.dated:
        return then(checked)
    return ask_version(orders.programs, lambda version: then(validate(asked, rules_of(orders, version))))


def with_scope(ledger: Ledger, then: Callable[[Scope], Step]) -> Step:
    """Where somebody died in the middle of a submission Slurm is asked first what became of it."""
    scope = ledger.scope()
    if not scope.interrupted:
        return then(scope)

    def recovered(rows: tuple[Live, ...]) -> Step:
        ledger.recover(rows)
        return then(ledger.scope())

    return look(scope, recovered)


def ledger_of(orders: Orders) -> Ledger:
    return _ledgers.setdefault(orders.session, Ledger(orders))


def rules_of(orders: Orders, version: tuple[int, ...] = ()) -> Rules:
    return make_rules(orders.caps, orders.project, orders.user, mail=orders.mail, version=version)


def make_rules(caps: Caps, project: str, user: str, *, mail: bool, version: tuple[int, ...]) -> Rules:
    return words.Rules(
        project=project, user=user, mail=mail, version=version, max_nodes=caps.max_nodes, max_tasks=caps.max_tasks, max_cpus=caps.max_cpus,
        max_gpus=caps.max_gpus, max_time=caps.max_time, max_array=caps.max_array, partitions=caps.partitions, accounts=caps.accounts, qos=caps.qos,
    )  # fmt: skip
