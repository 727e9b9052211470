"""What earlier launches made, in the state directory, which no jail sees: used as long as it is true, else made again.

    ca/HASH.pem     a bundle, named by its content
    ca/HOST.HASH    what it was made of on this machine for these settings: the files, how each is known again, its content's hash

Both are written under another name and renamed, so that launches that start together need no lock: each makes the same.
Home may be shared: nodes whose files are alike share a bundle. What nobody has used for a month goes when the next one is made.
"""

from __future__ import annotations

import os
import stat
import time

from agent_sandbox.config.record import record
from agent_sandbox.launcher.trust.sources import find_sources, read

try:  # importing hashlib would load OpenSSL
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.trust.sources import Named, Source

VERSION = "ca bundle 1"
PLACE = "ca"
MOST_RECORD = 1 << 20
DAY = 86400
KEPT = 30 * DAY


@record
class Made:
    """A bundle, and what is to be said of it at every launch."""

    content: bytes
    warnings: tuple[str, ...]


@record
class Note:
    """What is known of a bundle without reading its sources."""

    bundle: str  # the hash of its content
    until: int
    sources: tuple[tuple[str, str, str], ...]  # path, identity, hash of the content
    warnings: tuple[str, ...]


def get_bundle(named: tuple[Named, ...], state: str, host: str, library: str, *, keep: bool) -> Made:
    """`keep`: who only asks leaves nothing behind."""
    place = f"{state}/{PLACE}"
    sources, now = find_sources(named), int(time.time())
    path = f"{place}/{host.replace('/', '_')}.{_hash(os.fsencode(chr(0).join(one.path for one in sources)))[:16]}"
    note = read_note(path)
    content = read_kept(place, note.bundle) if note and note.until > now else None
    if note and content and [one[:2] for one in note.sources] == [(one.path, one.identity) for one in sources]:
        return Made(content=content, warnings=note.warnings)
    files = [(one, read(one.path)) for one in sources]
    hashes = tuple((one.path, one.identity, _hash(data)) for one, data in files)
    if note and content and [one[::2] for one in note.sources] == [one[::2] for one in hashes]:
        made = Note(bundle=note.bundle, until=note.until, sources=hashes, warnings=note.warnings)  # touched, and not changed
    else:
        content, made = _make(files, hashes, now, library)
    problem = _keep(place, path, content, made) if keep else ""
    return Made(content=content, warnings=(*made.warnings, *problem.splitlines()))


def _make(files: list[tuple[Source, bytes]], hashes: tuple[tuple[str, str, str], ...], now: int, library: str) -> tuple[bytes, Note]:
    from agent_sandbox.launcher.trust.build import build

    built = build([(one.path, one.site, data) for one, data in files], now, library)
    warnings = built.warnings
    if all(one.site for one, _ in files):
        warnings = ("network.ca_bundle: no roots of the system's were found: only the site's own CAs are trusted inside", *warnings)
    return built.content, Note(bundle=_hash(built.content), until=built.until, sources=hashes, warnings=warnings)


def read_note(path: str) -> Note | None:
    """None = there is none, or it is not one that we could have written."""
    lines = (_read_own(path, MOST_RECORD) or b"").decode("utf-8", "surrogateescape").split("\n")
    if lines[0] != VERSION or lines[-1] != "end" or len(lines) < 4:
        return None
    try:
        rows = [line.split("\t", 3) for line in lines[3:-1]]
        sources = tuple((path, known, hashed) for _, known, hashed, path in (row for row in rows if row[0] == "source"))
        return Note(bundle=lines[1], until=int(lines[2]), sources=sources, warnings=tuple(row[1] for row in rows if row[0] == "warning"))
    except (ValueError, IndexError):
        return None


def write_note(note: Note) -> bytes:
    rows = [("source", known, hashed, path) for path, known, hashed in note.sources] + [("warning", " ".join(text.split())) for text in note.warnings]
    lines = [VERSION, note.bundle, str(note.until), *("\t".join(row) for row in rows), "end"]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def read_kept(place: str, name: str) -> bytes | None:
    """None = gone, cut short, or changed by somebody: its name says what it must hold."""
    path = f"{place}/{name}.pem"
    content = _read_own(path, 64 << 20)
    if content is None or _hash(content) != name:
        return None
    try:
        if time.time() - os.stat(path).st_mtime > DAY:
            os.utime(path)  # in use
    except OSError:
        pass
    return content


def _read_own(path: str, most: int) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022
        return file.read(most) if is_ours else None


def _keep(place: str, path: str, content: bytes, note: Note) -> str:
    """The bundle before what speaks of it. A problem in words: the launch has its bundle all the same."""
    mask = os.umask(0o077)
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        _write(f"{place}/{note.bundle}.pem", content)
        _write(path, write_note(note))
        _sweep(place)
    except OSError as error:
        return f"network.ca_bundle: the bundle cannot be kept in {place} ({error.strerror}): the next launch makes it again"
    finally:
        os.umask(mask)
    return ""


def _write(path: str, content: bytes) -> None:
    new = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.new"
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(content)
        os.rename(new, path)
    except OSError:
        _remove(new)
        raise


def _sweep(place: str) -> None:
    """Also what was left half written by somebody who was killed."""
    for entry in os.scandir(place):
        try:
            old = time.time() - entry.stat(follow_symlinks=False).st_mtime
        except OSError:
            continue
        if old > (DAY if entry.name.endswith(".new") else KEPT):
            _remove(entry.path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _hash(data: bytes) -> str:
    return str(sha256(data).hexdigest())
