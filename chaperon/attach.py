"""Where Slurm is, a session gets its stubs and its chaperon: a policy becomes one with both. Reads, and changes nothing.

The stubs come first on PATH; a backend that can mount puts them over the real programs too, the others refuse those.
"""

from __future__ import annotations

from agent_sandbox.chaperon.installed import NAMES, find_programs, real_programs, settings_file
from agent_sandbox.chaperon.orders import Orders, caps_of, pack
from agent_sandbox.chaperon.stubfile import stub_code, stub_file
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace
from agent_sandbox.launcher import session as sessions
from agent_sandbox.launcher.policy import Access, Helper
from agent_sandbox.launcher.view import Kind, Mount, View, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

STUBS, STUB, CODE, FIFOS = "stubs", "slurm", "slurm.code", "slurm"
OURS = "agent-sandbox"


def attach(policy: Policy, case: Case, backend: str) -> Policy:
    programs = find_programs(policy, case)
    if not programs:
        if case.settings.text("slurm.enabled") == "on":
            raise UserError(
                "Slurm is not installed here, and slurm.enabled is on", where=case.settings.origin("slurm.enabled"),
                hint="slurm.prefix says where it is; slurm.enabled = auto does without",
            )  # fmt: skip
        return policy
    place = f"{sessions.room_of(case.session)}/{FIFOS}"
    helper = Helper(
        module="agent_sandbox.chaperon.main", orders=pack(orders_for(policy, case, programs, place)), place=place, door=f"{place}/ask",
        line="Slurm jobs run in the same jail",
    )  # fmt: skip
    stubs = f"{policy.rooms.own}/{STUBS}"
    mounts = {mount.path: mount for mount in policy.view.mounts}
    mounts |= {mount.path: mount for mount in _mounts(policy, case, backend, programs, place, stubs)}
    values = {**policy.environment.values, "PATH": f"{stubs}:{policy.environment.values['PATH']}"}
    return replace(
        policy, view=View(mounts=in_order(list(mounts.values()))), helpers=(*policy.helpers, helper),
        environment=replace(policy.environment, values=values),
    )  # fmt: skip


def orders_for(policy: Policy, case: Case, programs: str, place: str) -> Orders:
    from agent_sandbox.launcher.launch import open_audit

    host, settings = case.host, case.settings
    return Orders(
        session=sessions.id_of(case.session), fifos=place, state=case.places.state, project=policy.project, project_id="",
        user=host.user, uid=host.uid, home=host.home, entry=host.entry, python=host.python, library=host.package.rpartition("/")[0],
        programs=programs, slurm_conf=settings_file(policy, case),
        settings=settings.as_data(), caps=caps_of(settings), scope=settings.text("slurm.scope"), mail=settings.text("mail.stubs") == "off",
        log=open_audit(settings, case.places, host).log,
    )  # fmt: skip


def _mounts(policy: Policy, case: Case, backend: str, programs: str, place: str, stubs: str) -> Iterator[Mount]:
    inside = f"{policy.rooms.own}/{FIFOS}" if backend == "bwrap" else place  # not in /tmp, which people empty
    yield Mount(path=inside, source=place, kind=Kind.BIND, access=Access.WRITE, movable=True, origin=OURS)
    content = stub_file(case.host.python, f"{stubs}/{CODE}", inside)
    yield Mount(path=f"{stubs}/{CODE}", kind=Kind.FILE, content=stub_code(), origin=OURS)
    yield Mount(path=f"{stubs}/{STUB}", kind=Kind.FILE, content=content, executable=True, origin=OURS)
    yield from (Mount(path=f"{stubs}/{name}", kind=Kind.LINK, target=STUB, origin=OURS) for name in NAMES)
    for real in real_programs(policy, case, programs):
        if backend == "bwrap":
            yield Mount(path=real, kind=Kind.FILE, content=content, executable=True, movable=case.disk.movable(real), origin=OURS)
        else:
            yield Mount(path=real, kind=Kind.MASK, origin=OURS)
