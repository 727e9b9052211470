"""What sharing does to one file, which files it leaves alone, and which names deserve a warning. Pure."""

from __future__ import annotations

import fnmatch
import stat

from agent_sandbox.admin.descriptors import Kept
from agent_sandbox.admin.share.acl import ALL, ENTER, READ, WRITE, pack, parse, shared_default, with_group
from agent_sandbox.config.record import record, replace

LINKS, SPECIAL, HARD, OTHERS, SETUID, FIXED, MOUNTS, DEEP, BESIDE = (
    "symbolic links", "devices, FIFOs and sockets", "files with several names (hard links)", "other people's files", "setuid and setgid programs",
    "files that nobody may change (immutable, append-only)", "other file systems (mount points)", "paths that are too long",
    "files beside the way that stay open to whoever may pass",
)  # fmt: skip
SECRETS = {
    ".git": "hooks and settings in it run as whoever uses git here next",
    ".envrc": "direnv runs it as you", ".vscode": "your editor runs what it says", ".idea": "your editor runs what it says",
    ".env": "keys", ".env.*": "keys", ".aws": "keys", ".ssh": "keys", ".gnupg": "keys", ".kube": "keys", ".docker": "tokens",
    ".netrc": "passwords", ".npmrc": "tokens", ".pypirc": "tokens", ".git-credentials": "tokens", ".pgpass": "passwords",
    "*.pem": "a key or certificate", "*.key": "a key", "*.p12": "a key", "*.pfx": "a key", "*.kdbx": "passwords",
    "id_rsa*": "a key", "id_ed25519*": "a key", "id_ecdsa*": "a key", "*credentials*.json": "tokens",
    "*.ovpn": "a key", ".htpasswd": "passwords", ".vault-token": "a token",
}  # fmt: skip
MOST_SHOWN = 10


@record
class File:
    """One file as it was found."""

    path: str  # relative to what is shared; "" = that itself
    kind: int  # stat.S_IFMT of its mode
    kept: Kept
    inode: int
    made: int
    names: int
    fixed: bool


def reason_to_skip(file: File, people: frozenset[int]) -> str:
    """"" = it is shared."""
    if file.kind not in (stat.S_IFDIR, stat.S_IFREG):
        return LINKS if file.kind == stat.S_IFLNK else SPECIAL
    if file.kept.uid not in people:
        return OTHERS
    if file.kind == stat.S_IFREG and file.names > 1:
        return HARD
    if file.kind == stat.S_IFREG and file.kept.mode & 0o6000:
        return SETUID
    return FIXED if file.fixed else ""


def shared(file: File, group: int) -> Kept:
    """As it should be: a directory g+rwxs with a default ACL, a file g+r, and g+w and g+x where its owner has them."""
    kept, is_directory = file.kept, file.kind == stat.S_IFDIR
    rights = ALL if is_directory else READ | kept.mode >> 6 & (WRITE | ENTER)
    mode = kept.mode | rights << 3 | (0o2000 if is_directory else 0)
    access = with_group(parse(bytes.fromhex(kept.access)), rights)
    default = shared_default(mode, parse(bytes.fromhex(kept.default))) if is_directory else ()
    return replace(kept, gid=group, mode=mode, access=pack(access).hex(), default=pack(default).hex())


def released(file: File, group: int, shared_group: int) -> Kept:
    """Of a file that was made while the tree was shared: the owner stays, the group is another, and new files inherit nothing."""
    if file.kept.gid != shared_group:
        return file.kept
    is_directory = file.kind == stat.S_IFDIR
    return replace(file.kept, gid=group, mode=file.kept.mode & ~0o2000 if is_directory else file.kept.mode, default="")


def warning(name: str) -> str:
    """What a shared file of this name gives away; "" = nothing that we know of."""
    return next((why for pattern, why in SECRETS.items() if fnmatch.fnmatchcase(name, pattern)), "")


@record
class Tally:
    """What became of a tree."""

    changed: int
    same: int
    skipped: dict[str, tuple[int, tuple[str, ...]]]  # a reason → how many, and the first of them
    warnings: tuple[str, ...] = ()
    gone: int = 0  # recorded, and no longer there
