"""What the proxy of a session is told, as bytes between two processes of ours. Pure."""

from __future__ import annotations

import marshal

from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.audit import Log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.proxy.credential import Wired

    Said = tuple[str, int, str, str]  # key, rank, entry, origin


@record
class Orders:
    session: str
    said: tuple[Said, ...]  # the lists
    default: str  # what holds for hosts on no list
    default_origin: str
    presets: tuple[str, ...] | None  # None = all
    upstream: str  # host:port of the site's proxy; "" = none
    direct: tuple[str, ...]  # what is reached without it
    judges_upstream: bool  # it was not the admin who named it, and there is one
    connections: int | None
    total_bytes: int | None
    rate: int | None
    log: Log
    credentials: tuple[Wired, ...] = ()
    roots: str = ""


def pack(orders: Orders) -> bytes:
    return marshal.dumps((dict(replace(orders, log=None).__dict__), dict(orders.log.__dict__)))


def unpack(packed: bytes) -> Orders:
    orders, log = marshal.loads(packed)
    return Orders(**{**orders, "log": Log(**log)})
