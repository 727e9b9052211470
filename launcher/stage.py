"""The last steps before the backend, done by the process that becomes it: namespaces, carves, limits, open files.

Carves are mounts below directories that the agent can write, perhaps while we look. So every target is opened first, meeting
no link, and mounted on by its descriptor: what was checked is what is covered, whatever the path says by then.
"""

from __future__ import annotations

import errno
import os
import resource
import signal

from agent_sandbox.launcher import syscalls
from agent_sandbox.launcher.view import SHELF, Carving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_sandbox.launcher.plan import Cover, Held, Plan, Stage
    from agent_sandbox.launcher.policy import Limits
    from agent_sandbox.launcher.view import Carve

RLIMITS = {
    "processes": resource.RLIMIT_NPROC, "memory": resource.RLIMIT_AS, "cpu_time": resource.RLIMIT_CPU,
    "file_size": resource.RLIMIT_FSIZE, "open_files": resource.RLIMIT_NOFILE, "core_size": resource.RLIMIT_CORE,
}  # fmt: skip


COVER_WORDS = 5  # `--perms`, a mode, `--ro-bind-data`, a number, a path
TRIES = 50


class StageError(Exception):
    """A step that failed, in words."""


def become(plan: Plan, status: int, environment: dict[str, str], ready: Callable[[], object], hatch: int = -1) -> None:
    """Prepare this process, wait until the others are ready, and turn it into the backend. Returns only by an exception."""
    enter_namespaces(plan.stage)
    if plan.stage.listen:
        make_network(plan.stage.listen, hatch)
    make_carves(plan.stage.carves)
    grants = open_grants(plan.stage.held)
    shelf = Shelf()
    covered = cover_files(plan, shelf)
    shelved = hold_grants(grants, shelf)
    set_limits(plan.stage.limits)
    if plan.stage.scope_abstract_sockets or plan.stage.scope_signals:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        syscalls.landlock_scope(abstract_sockets=plan.stage.scope_abstract_sockets, signals=plan.stage.scope_signals)
    set_signals(plan.stage.ignored_signals)
    ready()
    place_files(plan, shelved, status, left_out=covered)
    os.execve(plan.program, plan.argv, environment)


def enter_namespaces(stage: Stage) -> None:
    """An own user namespace (as the same user) and mount namespace: nothing that we mount is seen outside."""
    uid, gid = os.getuid(), os.getgid()
    try:
        syscalls.unshare(syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        syscalls.make_mounts_private()
        if stage.most_user_namespaces is not None:
            _write("/proc/sys/user/max_user_namespaces", str(stage.most_user_namespaces))
    except OSError as error:
        raise StageError(f"this machine does not let us make a user namespace: {error.strerror}")


def make_network(port: int, hatch: int) -> None:
    """An empty one, as the jail's own. Nobody inside has a right over it: it belongs to the user namespace around the jail's."""
    from agent_sandbox.launcher import listener

    try:
        syscalls.unshare(syscalls.CLONE_NEWNET)
        listener.raise_loopback()
        if hatch >= 0:
            made, _ = listener.listen(port)
            listener.hand_out(hatch, made)
            os.close(made)
    except OSError as error:
        raise StageError(f"this machine does not let us make a network namespace: {error.strerror}")


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def make_carves(carves: Sequence[Carve]) -> None:
    """First copy every tree as it is, then put the copies in place from the top down."""
    roots: dict[str, int] = {}
    copies = [(carve, _copy(carve, roots)) for carve in carves]
    for carve, (tree, seen) in copies:
        try:
            _attach(carve, tree, seen)
        except OSError as error:
            raise StageError(f"{carve.path}: cannot be made {carve.carving.value}: {error.strerror}")


def _open(carve: Carve, root: int) -> int:
    return syscalls.open_beneath(root, carve.path[len(carve.root) + 1 :] or ".", os.O_PATH)


def _open_root(path: str) -> int:
    """The writable directory itself, by a path that holds no link (it was resolved before)."""
    top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return syscalls.open_beneath(top, path[1:], os.O_PATH | os.O_DIRECTORY)
    finally:
        os.close(top)


def _copy(carve: Carve, roots: dict[str, int]) -> tuple[int, os.stat_result]:
    try:
        if carve.root not in roots:
            roots[carve.root] = _open_root(carve.root)
        found = _open(carve, roots[carve.root])
        seen = os.fstat(found)
        tree = _replacement(found, seen) if carve.carving == Carving.HIDE else syscalls.clone_tree(found)
        os.close(found)
        if carve.carving in (Carving.READ, Carving.HIDE):
            syscalls.set_mount_attributes(tree, syscalls.MOUNT_ATTR_RDONLY)
        return tree, seen
    except OSError as error:
        raise StageError(f"{carve.path} changed while the jail was being built ({error.strerror}): start again")


def _replacement(found: int, seen: os.stat_result) -> int:
    """Something empty of the same kind."""
    if seen.st_mode & 0o170000 == 0o040000:
        return syscalls.new_tmpfs("0000")
    null = os.open("/dev/null", os.O_PATH | os.O_CLOEXEC)
    try:
        return syscalls.clone_tree(null)
    finally:
        os.close(null)


def _attach(carve: Carve, tree: int, seen: os.stat_result) -> None:
    """Opened again through the mounts made so far, and only if it is still the same file."""
    root = _open_root(carve.root)
    target = _open(carve, root)
    now = os.fstat(target)
    if (now.st_dev, now.st_ino) != (seen.st_dev, seen.st_ino):
        raise StageError(f"{carve.path} changed while the jail was being built: start again")
    syscalls.attach_tree(tree, target)
    for handle in (root, target, tree):
        os.close(handle)


class Shelf:
    """A directory in memory, in our own mount namespace, for what must not be swapped; made when it is first used."""

    def __init__(self) -> None:
        self._handle = -1

    def handle(self) -> int:
        if self._handle < 0:
            self._handle = syscalls.new_tmpfs("0700")
            top = os.open(SHELF, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            syscalls.attach_tree(self._handle, top)
            os.close(top)
        return self._handle


def open_grants(held: Sequence[Held]) -> list[tuple[Held, int]]:
    """Each by a path without links, before the shelf lies over some of them; the one below the shelf as a copy already, which does not have it."""
    return [(one, syscalls.clone_tree(found) if one.path == SHELF and found >= 0 else found) for one in held for found in (_open_grant(one),)]


def hold_grants(grants: Sequence[tuple[Held, int]], shelf: Shelf) -> dict[int, str]:
    """Put the mount of each, with what covers files in it, where nobody else can swap it: which option names it, and how now."""
    try:
        return {one.word: _shelve(one, found, str(number), shelf.handle()) for number, (one, found) in enumerate(grants)}
    except OSError as error:
        raise StageError(f"the grants cannot be held: {error.strerror}")


def cover_files(plan: Plan, shelf: Shelf) -> frozenset[int]:
    """Files of ours over the host's, which bwrap's bind of the directory carries along: the options that are done with."""
    contents = {one.label: one.content for one in plan.data}
    sources: dict[tuple[bytes, bool], int] = {}  # many programs are one and the same
    top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    done = []
    try:
        targets = [_find(cover, top) for cover in plan.stage.covers]  # before the shelf lies over some of them
        for cover, target in zip(plan.stage.covers, targets, strict=True):
            kind = contents[cover.path], cover.executable
            if kind not in sources:
                sources[kind] = _lay_out(*kind, f"cover-{len(sources)}", shelf.handle())
            if _cover(cover, target, sources[kind], top):
                done.append(cover.word)
        for handle in (top, *sources.values()):
            os.close(handle)
    except OSError as error:
        raise StageError(f"files of the system cannot be covered: {error.strerror}")
    return frozenset(word + more for word in done for more in range(COVER_WORDS))


def _lay_out(content: bytes, executable: bool, name: str, shelf: int) -> int:
    """A file on the shelf, under a mount of its own that only reads: what is copied from that only reads, too."""
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=shelf)
    os.write(handle, content)
    os.fchmod(handle, 0o755 if executable else 0o644)
    os.close(handle)
    file = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=shelf)
    tree = syscalls.clone_tree(file)
    syscalls.set_mount_attributes(tree, syscalls.MOUNT_ATTR_RDONLY | syscalls.MOUNT_ATTR_NOSUID | syscalls.MOUNT_ATTR_NODEV)
    syscalls.attach_tree(tree, file)
    for one in (file, tree):
        os.close(one)
    return os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=shelf)


def _find(cover: Cover, top: int) -> int:
    """-1 = a link, or gone: left to bwrap, which follows links, out of the jail too. So not where somebody but root may have put it."""
    try:
        return syscalls.open_beneath(top, cover.path[1:], os.O_PATH)
    except OSError as error:
        if cover.movable:
            raise StageError(f"{cover.path} changed while the jail was being built ({error.strerror}): start again")
        if error.errno not in (errno.ELOOP, errno.ENOENT):
            raise
        return -1


def _cover(cover: Cover, target: int, source: int, top: int) -> bool:
    """Whoever adds an account replaces the file by another one: then once more, on that."""
    for _ in range(TRIES):
        if target < 0:
            return False
        tree = syscalls.clone_tree(source)
        try:
            syscalls.attach_tree(tree, target)
            return True
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
        finally:
            os.close(tree)
            os.close(target)
        target = _find(cover, top)
    raise StageError(f"{cover.path} is replaced all the time: start again")


def _open_grant(one: Held) -> int:
    top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return syscalls.open_beneath(top, one.path[1:], os.O_PATH)
    except OSError as error:
        if one.optional and error.errno == errno.ENOENT:
            return -1
        raise StageError(f"{one.path} changed while the jail was being built ({error.strerror}): start again")
    finally:
        os.close(top)


def _shelve(one: Held, found: int, name: str, shelf: int) -> str:
    """A place of the same kind on the shelf; one that is gone gets none, and its option is one that may fail."""
    path = f"{SHELF}/{name}"
    if found < 0:
        return path
    tree = os.dup(found) if one.path == SHELF else syscalls.clone_tree(found)
    if os.fstat(tree).st_mode & 0o170000 == 0o040000:
        os.mkdir(name, 0o700, dir_fd=shelf)
    else:
        os.close(os.open(name, os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=shelf))
    target = os.open(name, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=shelf)
    syscalls.attach_tree(tree, target)
    for handle in (target, tree, found):
        os.close(handle)
    return path


def set_limits(limits: Limits) -> None:
    for name, number in RLIMITS.items():
        wanted = getattr(limits, name)
        if wanted is not None:
            if number == resource.RLIMIT_CORE and wanted == 0:
                wanted = 1  # with 0 the kernel still feeds a core_pattern that is a program, outside; with 1 it does not
            hard = resource.getrlimit(number)[1]
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(number, (most, most))


def set_signals(ignored: Sequence[int]) -> None:
    """Python's own dispositions undone; what the backend must not die of, ignored; nothing blocked."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def place_files(plan: Plan, shelved: dict[int, str], status: int, left_out: frozenset[int] = frozenset(), kept: int = -1) -> None:
    """Each file on the number that the plan gives it, and every other descriptor closed: one left open reaches around the jail."""
    words = [shelved.get(number, word) for number, word in enumerate(plan.options) if number not in left_out]
    options = b"".join(os.fsencode(word) + b"\0" for word in words)
    unread = {plan.options[number] for number in left_out}  # the backend closes only what it is told to read
    contents = {plan.options_fd: options, **{one.fd: one.content for one in plan.data if str(one.fd) not in unread}}
    os.dup2(status, plan.status_fd)
    os.set_inheritable(plan.status_fd, True)
    for number, content in contents.items():
        _place(content, number)
    highest = max(*contents, plan.status_fd, kept)
    for number in range(3, highest):
        if number not in contents and number not in (plan.status_fd, kept):
            os.closerange(number, number + 1)
    syscalls.close_from(highest + 1)


def _place(content: bytes, number: int) -> None:
    handle = os.memfd_create("agent-sandbox", os.MFD_CLOEXEC)
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]
    os.lseek(handle, 0, os.SEEK_SET)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
    os.set_inheritable(number, True)
