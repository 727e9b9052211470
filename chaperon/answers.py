"""A request becomes the first step of its answer, by a table: one handler for each command. What is not in it is refused. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.wire import refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.command import Handler, Step
    from agent_sandbox.chaperon.orders import Orders
    from agent_sandbox.chaperon.wire import Request


def answer(request: Request, orders: Orders) -> Step:
    handler = HANDLERS.get(request.command)
    if handler is None:
        return refused(request.command, "this command is not available inside the jail")
    return handler(request, orders)


def _nodes(request: Request, orders: Orders) -> Step:
    if request.words:
        return refused(request.command, "only without options for now")
    return Command(program="sinfo", live=True)


HANDLERS: dict[str, Handler] = {"sinfo": _nodes}
