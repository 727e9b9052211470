"""ACLs: what sharing gives to the group, and that it gives nothing to anybody else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_sandbox.admin.share import acl
from agent_sandbox.admin.share.acl import Entry
from tests.machines.needs import need

rights = st.integers(0, 7)


@st.composite
def lists(draw: st.DrawFn) -> tuple[acl.Entry, ...]:
    """What the kernel takes: three base entries, named ones, and then a mask."""
    base = [Entry(tag=tag, rights=draw(rights)) for tag in (acl.OWNER, acl.OWNING_GROUP, acl.OTHER)]
    users = draw(st.sets(st.integers(1000, 1005), max_size=2))
    groups = draw(st.sets(st.integers(2000, 2005), max_size=2))
    who = [*((acl.USER, one) for one in users), *((acl.GROUP, one) for one in groups)]
    named = [Entry(tag=tag, rights=draw(rights), id=one) for tag, one in who]
    mask = [Entry(tag=acl.MASK, rights=draw(rights))] if named else []
    return tuple([*base, *named, *mask])


def effective(entries: tuple[acl.Entry, ...], tag: int, number: int = acl.NOBODY) -> int:
    mask = acl.rights_of(entries, acl.MASK) if acl.has(entries, acl.MASK) else 7
    return acl.rights_of(entries, tag, number) & (mask if tag in (acl.USER, acl.GROUP, acl.OWNING_GROUP) else 7)


@given(lists(), rights)
def test_the_group_gets_its_rights_and_nobody_else_any(entries: tuple[acl.Entry, ...], wanted: int) -> None:
    result = acl.with_group(entries, wanted)
    assert effective(result, acl.OWNING_GROUP) & wanted == wanted
    for one in entries:
        if one.tag in (acl.USER, acl.GROUP, acl.OWNER, acl.OTHER):
            assert effective(result, one.tag, one.id) == effective(entries, one.tag, one.id)
    assert acl.with_group(result, wanted) == result


@given(lists(), rights)
def test_one_more_group_changes_nobodys_rights(entries: tuple[acl.Entry, ...], wanted: int) -> None:
    result = acl.with_named_group(entries, 3000, wanted)
    assert effective(result, acl.GROUP, 3000) == wanted
    for one in entries:
        if one.tag != acl.MASK:
            assert effective(result, one.tag, one.id) == effective(entries, one.tag, one.id)
    back = acl.without_named_group(result, 3000)
    assert all(effective(back, one.tag, one.id) == effective(entries, one.tag, one.id) for one in entries if one.tag != acl.MASK)


@given(lists())
def test_what_is_packed_is_parsed_again(entries: tuple[acl.Entry, ...]) -> None:
    assert set(acl.parse(acl.pack(entries))) == set(entries)


def test_setfacl_and_we_write_the_same_bytes(tmp_path: Path) -> None:
    """The kernel's own program as the oracle."""
    (tmp_path / "d").mkdir(mode=0o750)
    subprocess.run([need("setfacl"), "-m", "g:12345:x", str(tmp_path / "d")], check=True)
    assert os.getxattr(tmp_path / "d", "system.posix_acl_access") == acl.pack(acl.with_named_group(acl.from_mode(0o750), 12345, acl.ENTER))


def test_who_may_enter() -> None:
    assert acl.may_enter(0o701, (), group=5, owning_group=6)
    assert not acl.may_enter(0o701, (), group=5, owning_group=5)  # the group's bits count for it, not the others'
    assert not acl.may_enter(0o700, (), group=5, owning_group=6)
    assert acl.may_enter(0o700, acl.with_named_group(acl.from_mode(0o700), 5, acl.ENTER), group=5, owning_group=6)
    assert not acl.may_enter(0o755, acl.with_named_group(acl.from_mode(0o755), 5, 0), group=5, owning_group=6)
