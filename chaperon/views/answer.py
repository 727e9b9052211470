"""A request to look or to control → the first step of its answer: what is asked (registry), what may be seen (ledger), which command."""

from __future__ import annotations

from agent_sandbox.chaperon import words
from agent_sandbox.chaperon.control import cancel, control
from agent_sandbox.chaperon.ledger import Ledger
from agent_sandbox.chaperon.validate import validate
from agent_sandbox.chaperon.views.cluster import cluster, shares
from agent_sandbox.chaperon.views.lookup import look
from agent_sandbox.chaperon.views.queue import accounting, queue, running
from agent_sandbox.chaperon.wire import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.chaperon.command import Step
    from agent_sandbox.chaperon.orders import Orders
    from agent_sandbox.chaperon.views.lookup import Live
    from agent_sandbox.chaperon.views.scope import Scope
    from agent_sandbox.chaperon.wire import Request
    from agent_sandbox.chaperon.words import Approved, Rules

    Plan = Callable[[Approved, Scope], Step]

PLANS: dict[str, Plan] = {
    "squeue": queue, "sprio": queue, "sacct": accounting, "sstat": running, "sshare": shares, "sinfo": cluster, "sacctmgr": cluster,
    "scancel": cancel, "scontrol": control,
}  # fmt: skip

_ledgers: dict[str, Ledger] = {}  # of this process: one, but for tests


def view(request: Request, orders: Orders) -> Step:
    asked = words.Request(command=request.command, words=request.words, environment=request.environment, cwd=request.cwd)
    checked = validate(asked, rules_of(orders))
    if isinstance(checked, words.Refused):
        return refused(request.command, *map(str, checked.reasons))
    return with_scope(ledger_of(orders), lambda scope: PLANS[checked.command](checked, scope))


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


def rules_of(orders: Orders) -> Rules:
    caps = orders.caps
    return words.Rules(
        project=orders.project, user=orders.user, mail=orders.mail, max_nodes=caps.max_nodes, max_tasks=caps.max_tasks, max_cpus=caps.max_cpus,
        max_gpus=caps.max_gpus, max_time=caps.max_time, max_array=caps.max_array, partitions=caps.partitions or (), accounts=caps.accounts or (),
        qos=caps.qos or (),
    )  # fmt: skip
