"""Where mail is to be refused, a session gets a stub for every mailer: a policy becomes one with them. Reads, and changes nothing."""

from __future__ import annotations

import os

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.policy import Access
from agent_sandbox.launcher.resolve.network import may_send_mail
from agent_sandbox.launcher.stubs import OURS, link_to, place_of_stubs, stand_in, with_stubs
from agent_sandbox.launcher.view import Kind, Mount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy
    from agent_sandbox.launcher.probe import Disk

HERE = os.path.dirname(__file__)
STUB = "no-mail"
PLACES = ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec", "/usr/local/bin", "/usr/local/sbin", "/var/qmail/bin")
TELLING = ("mail", "smtp", "mutt", "exim", "pine")


def attach(policy: Policy, case: Case, backend: str) -> Policy:
    if may_send_mail(case.settings.text("mail.stubs"), policy.network):
        return policy
    return with_stubs(policy, _mounts(policy, case, backend))


def _mounts(policy: Policy, case: Case, backend: str) -> Iterator[Mount]:
    place, names, content = place_of_stubs(policy), read_names(), _read("stub.sh")
    yield Mount(path=f"{place}/{STUB}", kind=Kind.FILE, content=content, executable=True, origin=OURS)
    yield from (link_to(place, name, STUB) for name in names)
    yield from (stand_in(real, content, backend, case.disk) for real in find_installed(policy, case, names))


def read_names() -> list[str]:
    return _read("names.txt").decode().split()


def _read(name: str) -> bytes:
    with open(f"{HERE}/{name}", "rb", buffering=0) as file:
        return file.read()


def find_installed(policy: Policy, case: Case, names: list[str]) -> list[str]:
    """Every mailer that the jail would show, by its real path. Asked for by name: to list a directory of programs takes longer."""
    disk = case.disk
    places = dict.fromkeys((*PLACES, *case.host.environment.get("PATH", "").split(":")))
    homes = dict.fromkeys(filter(None, [_end(place, disk) for place in places if place.startswith("/")]))
    paths = [f"{home}/{name}" for home in homes if disk.kind(home) for name in names]
    there = filter(disk.executable, paths)
    found = dict.fromkeys(path for path in (_end(one, disk) for one in there) if disk.kind(path) == "file" and _is_mailer(path, names))
    return [path for path in found if _is_shown(path, policy)]


def _end(path: str, disk: Disk) -> str:
    """Where it leads; "" = nowhere, round and round."""
    try:
        return disk.follow(path).real
    except UserError:
        return ""


def _is_mailer(real: str, names: list[str]) -> bool:
    """And not what else a link may lead to: busybox, firejail, `true`, which must stay what they are."""
    base = real.rpartition("/")[2]
    return base in names or any(word in base for word in TELLING)


def _is_shown(path: str, policy: Policy) -> bool:
    """As a program of the host's; one that can be written inside is the agent's own affair, as any that it writes itself."""
    mount = policy.view.covering(path)
    return mount is not None and mount.kind == Kind.BIND and mount.access == Access.READ
