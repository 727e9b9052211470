"""In mode `proxied` a session gets its proxy, and variables that lead programs to it: a policy becomes one with both. Changes nothing."""

from __future__ import annotations

import os

from agent_sandbox.config.record import replace
from agent_sandbox.config.settings import Rank
from agent_sandbox.launcher import session as sessions
from agent_sandbox.launcher.own import PORT, PORT_TO_COME
from agent_sandbox.launcher.policy import Helper
from agent_sandbox.launcher.proxy.orders import Orders, pack
from agent_sandbox.launcher.proxy.variables import variables_for, without_shim
from agent_sandbox.launcher.stubs import OURS
from agent_sandbox.launcher.view import Kind, Mount, View, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Environment, Policy
    from agent_sandbox.launcher.proxy.inject import Asked

SHIM, NODE = "node.cjs", "NODE_OPTIONS"
LISTS = ("network.block", "network.allow", "network.floor_open")
DEATH = "the network proxy of this session has ended: nothing outside can be reached any more; start again to have it back"


def attach(policy: Policy, case: Case, backend: str) -> Policy:
    entries = injections(case.settings)
    if policy.network.mode != "proxied":
        policy = replace(policy, environment=_without_shim(policy.environment))
        return _without_proxy(policy) if entries else policy
    shim = f"{policy.rooms.own}/{SHIM}"
    mount = Mount(path=shim, kind=Kind.FILE, content=_read(SHIM), origin=OURS)
    port = PORT_TO_COME if backend == "landlock" else PORT
    made = variables_for(port, policy.environment.values, shim)
    orders = orders_for(case)
    if entries:
        from agent_sandbox.launcher.proxy import inject
        from agent_sandbox.launcher.resolve.carves import as_enforced

        inject.check_places(entries, as_enforced(policy, backend), case)
        made |= inject.variables(entries, port, case.settings)
        orders = replace(orders, credentials=tuple([inject.wire(one.injection) for one in entries]), roots=inject.roots(policy))
    helper = Helper(module="agent_sandbox.launcher.proxy.main", orders=pack(orders), death=DEATH)
    return replace(
        policy, view=View(mounts=in_order([*policy.view.mounts, mount])), helpers=(*policy.helpers, helper),
        environment=_with_variables(policy.environment, made, case.settings),
    )  # fmt: skip


def injections(settings: Settings) -> tuple[Asked, ...]:
    """Their own module is loaded where there are some."""
    if not settings.entries("network.inject"):
        return ()
    from agent_sandbox.launcher.proxy.inject import asked

    return asked(settings)


def _without_proxy(policy: Policy) -> Policy:
    """The credentials stay outside whatever the mode. With no network nobody misses them; with an open one somebody might."""
    note = f"network {policy.network.mode}: network.inject adds no credential, since only the proxy could (--network proxied)"
    return replace(policy, notes=(*policy.notes, note)) if policy.network.mode != "isolated" else policy


def _without_shim(environment: Environment) -> Environment:
    """Of the session that a job was sent from."""
    kept = " ".join(without_shim(environment.values.get(NODE, ""), SHIM))
    others = {name: value for name, value in environment.values.items() if name != NODE}
    return replace(environment, values={**others, **({NODE: kept} if kept else {})})


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
