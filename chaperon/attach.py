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
from agent_sandbox.launcher.resolve.network import may_send_mail
from agent_sandbox.launcher.stubs import OURS, link_to, place_of_stubs, stand_in, with_stubs
from agent_sandbox.launcher.view import Kind, Mount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

STUB, CODE, FIFOS = "slurm", "slurm.code", "slurm"


def attach(policy: Policy, case: Case, backend: str) -> Policy:
    programs = find_programs(policy, case)
    if not programs:
        if case.settings.text("slurm.enabled") == "on":
            raise UserError(
                "Slurm is not installed here, and slurm.enabled is on", where=case.settings.origin("slurm.enabled"),
                hint="slurm.prefix says where it is; slurm.enabled = auto does without",
            )  # fmt: skip
        return policy
    try:
        settings_file(policy, case)
    except UserError as error:
        if case.settings.text("slurm.enabled") == "on":
            raise
        return replace(policy, notes=(*policy.notes, f"Slurm is left out: {' '.join(str(error).split())}"))
    place = f"{sessions.room_of(case.session)}/{FIFOS}"
    helper = Helper(
        module="agent_sandbox.chaperon.main", orders=pack(orders_for(policy, case, programs, place)), place=place, door=f"{place}/ask",
        line="Slurm jobs run in the same jail",
    )  # fmt: skip
    return replace(with_stubs(policy, _mounts(policy, case, backend, programs, place)), helpers=(*policy.helpers, helper))


def orders_for(policy: Policy, case: Case, programs: str, place: str) -> Orders:
    from agent_sandbox.launcher.launch import open_audit

    host, settings = case.host, case.settings
    return Orders(
        session=sessions.id_of(case.session), fifos=place, state=case.places.state, project=policy.project, project_id="",
        user=host.user, uid=host.uid, home=host.home, entry=host.entry, python=host.python, library=host.package.rpartition("/")[0],
        programs=programs, slurm_conf=settings_file(policy, case),
        settings=settings.as_data(), caps=caps_of(settings), scope=settings.text("slurm.scope"),
        mail=may_send_mail(settings.text("mail.stubs"), policy.network), log=open_audit(settings, case.places, host).log,
    )  # fmt: skip


def _mounts(policy: Policy, case: Case, backend: str, programs: str, place: str) -> Iterator[Mount]:
    stubs = place_of_stubs(policy)
    inside = f"{policy.rooms.own}/{FIFOS}" if backend == "bwrap" else place  # not in /tmp, which people empty
    yield Mount(path=inside, source=place, kind=Kind.BIND, access=Access.WRITE, movable=True, origin=OURS)
    content = stub_file(case.host.python, f"{stubs}/{CODE}", inside)
    yield Mount(path=f"{stubs}/{CODE}", kind=Kind.FILE, content=stub_code(), origin=OURS)
    yield Mount(path=f"{stubs}/{STUB}", kind=Kind.FILE, content=content, executable=True, origin=OURS)
    yield from (link_to(stubs, name, STUB) for name in NAMES)
    yield from (stand_in(real, content, backend, case.disk) for real in real_programs(policy, case, programs))
