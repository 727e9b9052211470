"""A request becomes the first step of its answer, by a table: one handler for each command. What is not in it is refused.

srun and salloc, and what is refused as a whole, are in the registry too: their reason stands there.
"""

from __future__ import annotations

from agent_sandbox.chaperon.submit import submit
from agent_sandbox.chaperon.views.answer import PLANS, view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.command import Handler, Step
    from agent_sandbox.chaperon.orders import Orders
    from agent_sandbox.chaperon.wire import Request

HANDLERS: dict[str, Handler] = {"sbatch": submit, **dict.fromkeys(PLANS, view)}


def answer(request: Request, orders: Orders) -> Step:
    """A command without a handler is refused by the registry, in words."""
    return HANDLERS.get(request.command, view)(request, orders)
