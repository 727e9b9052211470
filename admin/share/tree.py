"""A tree is shared with the group, or gets back what it had: file by file, by descriptor, with the record written first."""

from __future__ import annotations

import grp
import os
import pwd
import stat
import time

from agent_sandbox.admin import interrupt
from agent_sandbox.admin.bots.facts import bots_of
from agent_sandbox.admin.descriptors import Kept, opened, restore
from agent_sandbox.admin.places import GROUP
from agent_sandbox.admin.share import records, ways
from agent_sandbox.admin.share.rules import BESIDE, MOST_SHOWN, OTHERS, File, Tally, reason_to_skip, released, shared, warning
from agent_sandbox.admin.share.walk import walk
from agent_sandbox.admin.tell import tell
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.steps import ShareTree, UnshareTree

EVERY = 0.5  # seconds between two words on how far we are


class Count:
    """How far we are, and what was left alone."""

    def __init__(self, what: str) -> None:
        self.changed = self.same = 0
        self._what, self._skipped, self._warnings = what, dict[str, list[str]](), list[str]()
        self._totals: dict[str, int] = {}
        self._next = time.monotonic() + EVERY

    def skip(self, reason: str, path: str) -> None:
        self._totals[reason] = self._totals.get(reason, 0) + 1
        if self._totals[reason] <= MOST_SHOWN:
            self._skipped.setdefault(reason, []).append(path)

    def warn(self, file: File) -> None:
        why = warning(file.path.rpartition("/")[2]) if len(self._warnings) < MOST_SHOWN else ""
        if why:
            self._warnings.append(f"{file.path}: {why}")

    def step(self, *, changed: bool) -> None:
        self.changed += changed
        self.same += not changed
        if time.monotonic() > self._next:
            self._next = time.monotonic() + EVERY
            tell(f"{self._what}: {self.changed + self.same:,} files so far")

    def tally(self, gone: int = 0) -> Tally:
        skipped = {reason: (self._totals[reason], tuple(paths)) for reason, paths in self._skipped.items()}
        return Tally(changed=self.changed, same=self.same, skipped=skipped, warnings=tuple(self._warnings), gone=gone)


def people(owner: str) -> frozenset[int]:
    """Whose files are shared: the owner's, and those of the owner's bots."""
    return frozenset(pwd.getpwnam(name).pw_uid for name in (owner, *bots_of(owner)))


def known(path: str) -> int:
    return records.size_of(path)


def survey(act: ShareTree) -> Tally:
    """What sharing would do; changes nothing."""
    count, ours, group = Count("looking"), people(act.owner), grp.getgrnam(GROUP).gr_gid
    with opened(act.path) as top:
        for _, file in walk(top, recursive=act.recursive, skipped=count.skip):
            count.warn(file)
            reason = reason_to_skip(file, ours)
            if reason:
                count.skip(reason, file.path)
            else:
                count.step(changed=shared(file, group) != file.kept)
    return count.tally()


def share(act: ShareTree) -> Tally:
    count, ours, group = Count("sharing"), people(act.owner), grp.getgrnam(GROUP).gr_gid
    before = records.read_known(act.path)
    writer = records.Writer(records.Header(path=act.path, owner=act.owner, recursive=act.recursive))
    try:
        with opened(act.path) as top:
            for open_still in ways.open_ways(act.path, group, pwd.getpwnam(act.owner).pw_uid):
                count.skip(BESIDE, open_still)
            for handle, file in walk(top, recursive=act.recursive, skipped=count.skip):
                interrupt.check()
                count.warn(file)
                reason = reason_to_skip(file, ours)
                if reason:
                    count.skip(reason, file.path)
                else:
                    count.step(changed=_share_one(handle, file, group, before, writer))
    finally:
        writer.close()
    return count.tally()


def _share_one(handle: int, file: File, group: int, before: dict[records.Identity, Kept], writer: records.Writer) -> bool:
    wanted = shared(file, group)
    if wanted == file.kept:
        return False
    if records.identity_of(file) not in before:
        writer.add(file)
    _change(handle, file, wanted)
    return True


def _change(handle: int, file: File, wanted: Kept) -> None:
    try:
        restore(handle, wanted, is_directory=file.kind == stat.S_IFDIR)
    except OSError as error:
        raise OSError(error.errno, error.strerror, file.path or ".") from None


def take_back(act: ShareTree, *, known: int) -> None:
    """What this sharing did, and nothing of an earlier one."""
    fresh = {records.identity(inode, made, path): kept for path, inode, made, kept in records.read_files(act.path, known)}
    with opened(act.path) as top:
        for handle, file in walk(top, recursive=act.recursive, skipped=lambda reason, path: None):
            kept = fresh.get(records.identity_of(file))
            if kept and kept != file.kept:
                _change(handle, file, kept)
    if not known:
        ways.close_ways(act.path, grp.getgrnam(GROUP).gr_gid)
    records.cut(act.path, known)


def unshare(act: UnshareTree) -> Tally:
    """Recorded files as recorded; what was made since keeps its owner and gets the other group. The record goes last."""
    count, before, terms = Count("giving back"), records.read_known(act.path), terms_of(act)
    whole = act.recursive or len(before) <= 1
    if os.path.lexists(act.path):
        with opened(act.path) as top:
            for handle, file in walk(top, recursive=act.recursive, skipped=count.skip):
                interrupt.check()
                _give_back(handle, file, before.pop(records.identity_of(file), None), terms, count)
    if whole or not os.path.lexists(act.path):  # a tree that is gone has only its record left
        ways.close_ways(act.path, terms.shared_group)
        records.forget(act.path)
    return count.tally(gone=len(before) if whole else 0)


@record
class Terms:
    """For what has no record: from which group to which, and whose files."""

    group: int
    shared_group: int
    people: frozenset[int]


def terms_of(act: UnshareTree) -> Terms:
    return Terms(group=grp.getgrnam(act.group).gr_gid, shared_group=grp.getgrnam(GROUP).gr_gid, people=people(act.owner))


def survey_back(act: UnshareTree) -> Tally:
    """What giving back would do; changes nothing."""
    count, before, terms = Count("looking"), records.read_known(act.path), terms_of(act)
    with opened(act.path) as top:
        for _, file in walk(top, recursive=act.recursive, skipped=count.skip):
            _judge_back(file, before.pop(records.identity_of(file), None), terms, count)
    return count.tally(gone=len(before) if act.recursive else 0)


def _judge_back(file: File, kept: Kept | None, terms: Terms, count: Count) -> Kept:
    """What it is to become; as it is, where it is left alone."""
    wanted = kept or released(file, terms.group, terms.shared_group)
    reason = reason_to_skip(file, terms.people) if kept is None and wanted != file.kept else ""
    if reason:
        count.skip(reason, file.path)
        return file.kept
    count.step(changed=wanted != file.kept)
    return wanted


def _give_back(handle: int, file: File, kept: Kept | None, terms: Terms, count: Count) -> None:
    wanted = _judge_back(file, kept, terms, count)
    if wanted != file.kept:
        _change(handle, file, wanted)


def belongs_to(path: str, owner: str) -> str:
    """"" = to the owner; else in words."""
    uid = os.lstat(path).st_uid
    return "" if uid == pwd.getpwnam(owner).pw_uid else f"{OTHERS}: it belongs to uid {uid}"
