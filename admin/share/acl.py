"""POSIX ACLs as the kernel keeps them in attributes, and what sharing makes of them. Pure.

A mask caps what named users and every group get. Where sharing has to raise it, each named entry is first cut down to what the
old mask left of it: nobody else gains a right.
"""

from __future__ import annotations

import struct

from agent_sandbox.config.record import record

VERSION, NOBODY = 2, 0xFFFFFFFF
OWNER, USER, OWNING_GROUP, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
READ, WRITE, ENTER = 4, 2, 1
ALL = READ | WRITE | ENTER


@record
class Entry:
    tag: int
    rights: int
    id: int = NOBODY


def parse(value: bytes) -> tuple[Entry, ...]:
    """No attribute: no entries. ValueError for what is no ACL of a version that we know."""
    if not value:
        return ()
    if len(value) % 8 != 4 or struct.unpack_from("<I", value)[0] != VERSION:
        raise ValueError("an ACL of an unknown kind")
    return tuple(Entry(tag=tag, rights=rights, id=number) for tag, rights, number in struct.iter_unpack("<HHI", value[4:]))


def pack(entries: tuple[Entry, ...]) -> bytes:
    """In the order that the kernel asks for."""
    if not entries:
        return b""
    ordered = sorted(entries, key=lambda one: (one.tag, one.id))
    return struct.pack("<I", VERSION) + b"".join(struct.pack("<HHI", one.tag, one.rights, one.id) for one in ordered)


def from_mode(mode: int) -> tuple[Entry, ...]:
    """What a mode alone says."""
    return tuple(Entry(tag=tag, rights=mode >> shift & 7) for tag, shift in ((OWNER, 6), (OWNING_GROUP, 3), (OTHER, 0)))


def rights_of(entries: tuple[Entry, ...], tag: int, number: int = NOBODY) -> int:
    return next((one.rights for one in entries if one.tag == tag and one.id == number), 0)


def has(entries: tuple[Entry, ...], tag: int, number: int = NOBODY) -> bool:
    return any(one.tag == tag and one.id == number for one in entries)


def with_group(entries: tuple[Entry, ...], rights: int) -> tuple[Entry, ...]:
    """The owning group gets these rights in fact, and nobody else any more than before."""
    mask = rights_of(entries, MASK) if has(entries, MASK) else ALL
    result = []
    for one in entries:
        kept = one.rights
        if one.tag in (USER, GROUP):
            kept &= mask
        elif one.tag == OWNING_GROUP:
            kept = kept & mask | rights
        elif one.tag == MASK:
            kept |= rights
        result.append(Entry(tag=one.tag, rights=kept, id=one.id))
    return tuple(result)


def with_named_group(entries: tuple[Entry, ...], number: int, rights: int) -> tuple[Entry, ...]:
    """One more group gets these rights, and nobody else any more than before."""
    mask = rights_of(entries, MASK) if has(entries, MASK) else ALL
    cut = [Entry(tag=one.tag, rights=one.rights & mask if one.tag in (USER, GROUP, OWNING_GROUP) else one.rights, id=one.id) for one in entries]
    cut = [one for one in cut if one.tag != MASK and (one.tag, one.id) != (GROUP, number)]
    already = rights_of(entries, GROUP, number) & mask
    cut.append(Entry(tag=GROUP, rights=rights | already, id=number))
    most = 0
    for one in cut:
        if one.tag in (USER, GROUP, OWNING_GROUP):
            most |= one.rights
    return (*cut, Entry(tag=MASK, rights=most))


def without_named_group(entries: tuple[Entry, ...], number: int) -> tuple[Entry, ...]:
    """Without that group's entry, and without a mask where nobody else needs one: then the owning group gets what it had under it."""
    rest = tuple(one for one in entries if (one.tag, one.id) != (GROUP, number))
    if any(one.tag in (USER, GROUP) for one in rest) or not has(rest, MASK):
        return rest
    mask = rights_of(rest, MASK)
    return tuple(Entry(tag=one.tag, rights=one.rights & mask if one.tag == OWNING_GROUP else one.rights) for one in rest if one.tag != MASK)


def others_may(mode: int, entries: tuple[Entry, ...], *, group: int) -> bool:
    """May somebody of `group`, who is not otherwise named, do anything at all with it?"""
    return not has(entries, GROUP, group) and bool(rights_of(entries, OTHER) if entries else mode & 0o007)


def shared_default(mode: int, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """What new files start from, so that a umask does not take the group's rights: the owner's and the group's all, others' as here."""
    base = entries or from_mode(mode & 0o007)
    full = [Entry(tag=one.tag, rights=ALL, id=one.id) if one.tag == OWNER else one for one in base]
    return with_group(tuple(full), ALL)


def for_person(uid: int) -> bytes:
    """The default ACL of a namespace: its group and one person may do everything with what is made there, others nothing."""
    return pack((
        Entry(tag=OWNER, rights=ALL), Entry(tag=USER, rights=ALL, id=uid), Entry(tag=OWNING_GROUP, rights=ALL),
        Entry(tag=MASK, rights=ALL), Entry(tag=OTHER, rights=0),
    ))  # fmt: skip


def has_person(value: bytes, uid: int) -> bool:
    return rights_of(parse(value), USER, uid) == ALL


def may_enter(mode: int, entries: tuple[Entry, ...], *, group: int, owning_group: int) -> bool:
    """May a member of `group`, who is neither the owner nor named, pass through a directory?"""
    if not entries:
        return bool(mode & (0o010 if group == owning_group else 0o001))
    mask = rights_of(entries, MASK) if has(entries, MASK) else ALL
    asked = [one.rights & mask for one in entries if (one.tag == GROUP and one.id == group) or (one.tag == OWNING_GROUP and group == owning_group)]
    return any(rights & ENTER for rights in asked) if asked else bool(rights_of(entries, OTHER) & ENTER)
