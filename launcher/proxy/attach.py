"""In mode `proxied` a session gets its proxy, and variables that lead programs to it: a policy becomes one with both. Changes nothing."""

from __future__ import annotations

import os

from agent_sandbox.config.record import replace
from agent_sandbox.config.settings import Rank
from agent_sandbox.launcher import session as sessions
from agent_sandbox.launcher.own import PORT, PORT_TO_COME
from agent_sandbox.launcher.policy import Helper
from agent_sandbox.launcher.proxy.orders import Orders, pack
from agent_sandbox.launcher.proxy.variables import variables_for
from agent_sandbox.launcher.stubs import OURS
from agent_sandbox.launcher.view import Kind, Mount, View, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Environment, Policy

SHIM = "node.cjs"
LISTS = ("network.block", "network.allow", "network.floor_open")
DEATH = "the network proxy of this session has ended: nothing outside can be reached any more; start again to have it back"


def attach(policy: Policy, case: Case, backend: str) -> Policy:
    if policy.network.mode != "proxied":
        return policy
    shim = f"{policy.rooms.own}/{SHIM}"
    mount = Mount(path=shim, kind=Kind.FILE, content=_read(SHIM), origin=OURS)
    port = PORT_TO_COME if backend == "landlock" else PORT
    helper = Helper(module="agent_sandbox.launcher.proxy.main", orders=pack(orders_for(case)), death=DEATH)
    return replace(
        policy, view=View(mounts=in_order([*policy.view.mounts, mount])), helpers=(*policy.helpers, helper),
        environment=_with_variables(policy.environment, variables_for(port, policy.environment.values, shim), case.settings),
    )  # fmt: skip


def _read(name: str) -> bytes:
    with open(f"{os.path.dirname(__file__)}/{name}", "rb", buffering=0) as file:
        return file.read()


def _with_variables(environment: Environment, made: dict[str, str], settings: Settings) -> Environment:
    """What `environment.set` says of one is meant for the jail, and stays."""
    ours = {name: value for name, value in made.items() if name not in settings.table("environment.set")}
    return replace(
        environment, values={**environment.values, **ours}, renamed=(*environment.renamed, *ours),
        removed=tuple(pair for pair in environment.removed if pair[0] not in ours),
    )  # fmt: skip


def orders_for(case: Case) -> Orders:
    from agent_sandbox.launcher.launch import open_audit

    settings = case.settings
    said = tuple((key, int(entry.rank), entry.value, entry.rank.name.lower()) for key in LISTS for entry in settings.entries(key))
    default = settings.values["network.default"]
    return Orders(
        session=sessions.id_of(case.session), said=said, default=settings.text("network.default"), default_origin=default.rank.name.lower(),
        presets=settings.names("network.presets") if settings.is_set("network.presets") else None,
        upstream=settings.text("network.upstream_proxy"), direct=settings.names("network.no_proxy"), judges_upstream=_judges_upstream(settings),
        connections=settings.number("network.max_connections"), total_bytes=settings.number("network.max_bytes"),
        rate=settings.number("network.max_rate"), log=open_audit(settings, case.places, case.host).log,
    )  # fmt: skip


def _judges_upstream(settings: Settings) -> bool:
    """A person's own choice leads past an admin's lists, unless it has to pass them itself; where there is no admin it is theirs."""
    has_admin = any(layer.rank is Rank.ADMIN for layer in settings.layers)
    return has_admin and settings.values["network.upstream_proxy"].rank is not Rank.ADMIN
