"""A policy becomes one whose jail has the CA bundle and is told of it. Keeps what it makes in the state directory.

Ours win over the caller's values of these variables, which name files that are seldom there inside and would leave the site's CA
out; what `environment.set` says of one is meant for the jail, and stays.
"""

from __future__ import annotations

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.own import BUNDLE
from agent_sandbox.launcher.policy import Access
from agent_sandbox.launcher.resolve.carves import as_enforced
from agent_sandbox.launcher.trust.kept import get_bundle
from agent_sandbox.launcher.trust.sources import Named, refused
from agent_sandbox.launcher.view import Carving, Kind, Mount, View, in_order, is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

KEY = "network.ca_bundle"
WGET = "SYSTEM_WGETRC"  # wget reads no variable about certificates, but one that names a file about everything
VARIABLES = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "GIT_SSL_CAINFO", "PIP_CERT",
    "AWS_CA_BUNDLE", WGET,
)  # fmt: skip
SYSTEM_WGETRC = "/etc/wgetrc"
HELD = (Carving.READ, Carving.HIDE)


def attach(policy: Policy, case: Case, backend: str) -> Policy:
    named = tuple(Named(path=one.value, entry=one, host=case.host.name) for one in case.settings.entries(KEY))
    for one in named:
        check_place(one, as_enforced(policy, backend), case)
    library = case.host.package.rpartition("/")[0]
    made = get_bundle(named, case.places.state, case.host.name, library, keep=not case.request.dry_run)
    path = f"{policy.rooms.own}/{BUNDLE}"
    files = {path: made.content, f"{policy.rooms.own}/wgetrc": _wgetrc(path, case)}
    mounts = [Mount(path=place, kind=Kind.FILE, content=content, origin=KEY) for place, content in files.items()]
    values = {**dict.fromkeys(VARIABLES, path), WGET: f"{policy.rooms.own}/wgetrc"}
    ours = {name: value for name, value in values.items() if name not in case.settings.table("environment.set")}
    environment = replace(
        policy.environment, values={**policy.environment.values, **ours}, renamed=(*policy.environment.renamed, *ours),
        removed=tuple(pair for pair in policy.environment.removed if pair[0] not in ours),
    )  # fmt: skip
    return replace(
        policy, view=View(mounts=in_order([*policy.view.mounts, *mounts])), environment=environment, notes=(*policy.notes, *made.warnings),
    )  # fmt: skip


def _wgetrc(bundle: str, case: Case) -> bytes:
    """What the system's says, and the bundle."""
    return (case.disk.read(SYSTEM_WGETRC) or b"") + f"\nca_certificate = {bundle}\n".encode()


def check_place(one: Named, policy: Policy, case: Case) -> None:
    """An agent that could write the file, or a link on the way to it, would choose whom the next session believes."""
    found = case.disk.follow(one.path)
    for place in (found.real, *(where for where, _ in found.links)):
        mount = policy.view.covering(place)
        is_held = any(carve.carving in HELD and is_below(place, carve.path) for carve in policy.carves)
        if mount and mount.kind == Kind.BIND and mount.access == Access.WRITE and not is_held:
            raise refused(one, "lies where the command inside can write: it could choose for itself, and for later sessions, whom to trust")
