"""The entries of `network.inject` become what the proxy is told of them and the variables that lead programs there. Reads no secret.

What a later step will read or run outside for a secret must be out of reach inside: a file that the jail can see would be no secret, and a
program that it can write would run outside at the next launch.
"""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.inject import read
from agent_sandbox.config.record import record
from agent_sandbox.launcher.own import BUNDLE
from agent_sandbox.launcher.policy import Access
from agent_sandbox.launcher.view import Carving, Kind, is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.inject import Injection
    from agent_sandbox.config.settings import Entry, Settings
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy
    from agent_sandbox.launcher.proxy.credential import Wired

KEY = "network.inject"
NOT_YET = "it was not read"
NEITHER = (Carving.READ, Carving.HIDE)


@record
class Asked:
    injection: Injection
    entry: Entry

    def refused(self, problem: str, hint: str = "") -> UserError:
        return UserError(f"the credential {self.injection.name} {problem}", where=self.entry.origin(), hint=hint)


def asked(settings: Settings) -> tuple[Asked, ...]:
    """The higher ranks last: of one variable they have the last word."""
    found = [Asked(injection=read(entry.value), entry=entry) for entry in settings.entries(KEY)]
    return tuple(sorted(found, key=lambda one: one.entry.rank))


def wire(one: Injection, secret: str = "", missing: str = NOT_YET) -> Wired:
    return (one.name, one.host, one.port, one.path, one.field, one.before, one.after, secret, missing)


def variables(entries: tuple[Asked, ...], port: int | str, settings: Settings) -> dict[str, str]:
    """But those whose names a higher rank blocks."""
    found: dict[str, str] = {}
    for one in entries:
        injection = one.injection
        values = {injection.base_url_variable: f"http://127.0.0.1:{port}/{injection.name}", injection.placeholder_variable: injection.placeholder}
        found.update({name: value for name, value in values.items() if name and not settings.denied_by("environment.set", name, one.entry.rank)})
    return found


def roots(policy: Policy) -> str:
    """The bundle that the jail itself believes, where network.ca_bundle made one; "" = the system's own."""
    path = f"{policy.rooms.own}/{BUNDLE}"
    return next((mount.content.decode("ascii") for mount in policy.view.mounts if mount.path == path and mount.kind == Kind.FILE), "")


def check_places(entries: tuple[Asked, ...], policy: Policy, case: Case) -> None:
    for one in entries:
        if one.injection.source == "file":
            _check_file(one, policy, case)
        for word in one.injection.command:
            if word.startswith("/"):
                _check_program(one, word, policy, case)


def _check_file(one: Asked, policy: Policy, case: Case) -> None:
    found = case.disk.follow(one.injection.place)
    places = (found.real, *(where for where, _ in found.links))
    hidden = [carve.path for carve in policy.carves if carve.carving == Carving.HIDE]
    if policy.view.shows(found.real) and not any(is_below(found.real, path) for path in hidden):
        hint = "keep it where the jail does not look, or name it in filesystem.hidden"
        raise one.refused(f"is in {one.injection.place}, which can be read inside", hint)
    if any(_writable(place, policy) for place in places):
        raise one.refused(f"is in {one.injection.place}, and the way to it can be changed from inside")


def _check_program(one: Asked, word: str, policy: Policy, case: Case) -> None:
    found = case.disk.follow(word)
    if any(_writable(place, policy) for place in (found.real, *(where for where, _ in found.links))):
        raise one.refused(f"comes from a command with {word} in it, which can be changed from inside, and would run outside")


def _writable(place: str, policy: Policy) -> bool:
    mount = policy.view.covering(place)
    is_held = any(carve.carving in NEITHER and is_below(place, carve.path) for carve in policy.carves)
    return mount is not None and mount.kind == Kind.BIND and mount.access == Access.WRITE and not is_held
