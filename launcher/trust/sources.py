"""The files that a bundle is made of: which they are, how one is known again, and their content. Reads, and changes nothing."""

from __future__ import annotations

import os
import stat

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Entry

# The first that can be read: Debian, Red Hat, SUSE, newer Red Hat, Alpine.
SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
)  # fmt: skip
MOST_BYTES = 16 << 20


@record
class Source:
    path: str
    identity: str  # the same as long as nobody touches the file
    site: bool  # named in network.ca_bundle, and not the system's


@record
class Named:
    """An entry of the settings, with what starts a message about it."""

    path: str
    entry: Entry
    host: str


def find_sources(named: tuple[Named, ...]) -> tuple[Source, ...]:
    """One look at each: all that a launch does when nothing has changed."""
    return (*_systems_roots(), *(Source(path=one.path, identity=identity(_look(one)), site=True) for one in named))


def _systems_roots() -> tuple[Source, ...]:
    """None = none of them is there; one that is just being replaced is passed over."""
    for path in SYSTEM:
        try:
            if os.access(path, os.R_OK):
                return (Source(path=path, identity=identity(os.stat(path)), site=False),)
        except OSError:
            continue
    return ()


def identity(found: os.stat_result) -> str:
    """Not the number of the device, which differs from node to node for the same shared directory."""
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _look(one: Named) -> os.stat_result:
    try:
        found = os.stat(one.path)
    except OSError as error:
        raise refused(one, f"cannot be read on {one.host}: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise refused(one, "is a directory: name the files in it" if stat.S_ISDIR(found.st_mode) else "is not a regular file")
    if found.st_size > MOST_BYTES:
        raise refused(one, f"has {found.st_size} bytes, and {MOST_BYTES} are enough for a bundle")
    if found.st_mode & stat.S_IWOTH:
        raise refused(one, "can be written by everybody, and so nobody can trust it")
    if not os.access(one.path, os.R_OK):
        raise refused(one, f"cannot be read on {one.host}: Permission denied")
    return found


def refused(one: Named, problem: str) -> UserError:
    hint = "network.ca_bundle names it; a job looks for the same path on its own node"
    return UserError(f"the CA file {one.path} {problem}", where=one.entry.origin(), hint=hint)


def read(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            return file.read(MOST_BYTES)
    except OSError as error:
        raise UserError(f"the CA file cannot be read: {error.strerror}", where=path) from None
