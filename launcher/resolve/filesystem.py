"""Grants and hidden paths become the View and the carves below what is writable. Pure given a Disk.

Hidden wins over every grant. Below something read-only a hidden path is left out: its directory becomes an empty one with
the siblings bound in, so that nothing done outside can uncover it. Below something writable only a mask is possible.
"""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.policy import Access, Masking
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.resolve.hidden import SELF_PROTECTION, Hidden
from agent_sandbox.launcher.view import Carve, Carving, Kind, Mount, by_depth, is_below, way_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.launcher.policy import Grant, Host
    from agent_sandbox.launcher.probe import Disk
    from agent_sandbox.launcher.resolve.grants import Asked


class Layout:
    """The table while it is being made: what holds at each path, and the mounts that make it so."""

    def __init__(self, host: Host, disk: Disk, hidden: Iterable[Hidden], masking: Masking) -> None:
        self.host, self.disk, self.masking = host, disk, masking
        self.hidden = {one.path: one for one in hidden}
        self._ends = {disk.identity(path): path for path in self.hidden if disk.kind(path)}
        ways = {way for path in self.hidden for way in way_to(path.rpartition("/")[0])}
        self._ways = {disk.identity(way): way for way in ways if disk.kind(way)}
        self.mounts: dict[str, Mount] = {}
        self.carves: dict[str, Carve] = {}
        self._rights: dict[str, Access] = {}  # HIDDEN = a scratch directory: nothing of the host's

    def scratch(self, path: str, access: Access, origin: str) -> None:
        self.mounts[path] = Mount(path=path, kind=Kind.SCRATCH, access=access, origin=origin)
        self._rights[path] = Access.HIDDEN

    def add_all(self, asked: Iterable[Asked]) -> None:
        listed = sorted(asked, key=lambda one: (by_depth(one.grant.path), -one.grant.access))
        for one in listed:
            if self._refused(one):
                continue
            self._add(one.grant)
        for one in listed:
            if one.grant.path in self._rights or self.right_at(one.grant.path)[0] > Access.HIDDEN:
                self.add_links(one.links)

    def _refused(self, one: Asked) -> bool:
        """A grant at or below a hidden path: shipped ones give way, a person is told."""
        cover = next((h for h in self.hidden.values() if is_below(one.grant.path, h.path)), None)
        if cover and not one.shipped:
            raise UserError(
                f"{one.grant.origin} lies at or below {printable(cover.path)}, which is hidden (filesystem.hidden {cover.rule})",
                where=printable(one.grant.path), hint="filesystem.reveal takes an entry off the shipped list; an admin's entry stays",
            )  # fmt: skip
        return cover is not None or self._is_alias(one)

    def _is_alias(self, one: Asked) -> bool:
        """Another name, by a bind mount, of something that is hidden, lies below it, or holds it: there hiding by path would miss it."""
        path = one.grant.path
        own = self._ways.get(self.disk.identity(path), path)
        below = next((self._ends[i] for i in map(self.disk.identity, way_to(path)) if i in self._ends), path)
        other = below if not is_below(path, below) else own
        if other != path and not is_below(path, other) and not one.shipped:
            raise UserError(
                f"{one.grant.origin} is another name of {printable(other)}, where something is hidden",
                where=printable(path), hint="grant what is needed by its own name",
            )  # fmt: skip
        return other != path and not is_below(path, other)

    def right_at(self, path: str) -> tuple[Access, str]:
        """The right that holds at `path` so far, and the path that it comes from."""
        here = path
        while here:
            if here in self._rights:
                return self._rights[here], here
            here = here.rpartition("/")[0]
        return self._rights.get("/", Access.HIDDEN), "/"

    def _add(self, grant: Grant) -> None:
        right, holder = self.right_at(grant.path)
        if right == grant.access or (holder == grant.path and right > grant.access):
            return
        root = self.writable_root(grant.path)
        if root:
            self.carve(root, grant.path, Carving.READ if grant.access == Access.READ else Carving.WRITE, grant.origin)
        else:
            self._bind(grant.path, grant.access, grant.origin)
        self._rights[grant.path] = grant.access

    def _bind(self, path: str, access: Access, origin: str, *, optional: bool = False) -> None:
        movable = self.disk.movable(path)
        self.mounts[path] = Mount(path=path, kind=Kind.BIND, access=access, origin=origin, movable=movable, optional=optional)

    def writable_root(self, path: str) -> str:
        """The writable bind that `path` lies strictly below, or ""."""
        here = path.rpartition("/")[0]
        while here:
            mount = self.mounts.get(here)
            if mount:
                return here if mount.kind == Kind.BIND and mount.access == Access.WRITE else ""
            here = here.rpartition("/")[0]
        return ""

    def carve(self, root: str, path: str, carving: Carving, origin: str) -> None:
        self.carves[path] = Carve(root=root, path=path, carving=carving, origin=origin)

    def add_links(self, links: Iterable[tuple[str, str]]) -> None:
        for path, target in links:
            if target and self.right_at(path)[0] == Access.HIDDEN and path not in self.mounts:
                self.mounts[path] = Mount(path=path, kind=Kind.LINK, target=target, origin="link on the way")

    def hold(self, path: str, origin: str) -> None:
        """Keep `path` read-only where it lies below, or is, something writable."""
        right, holder = self.right_at(path)
        if right == Access.WRITE:
            self.carve(self.writable_root(path) or holder, path, Carving.READ, origin)

    def replace_file(self, path: str, real: str, content: bytes, origin: str) -> None:
        """Our own text in the place of a host file, which is not shown anywhere."""
        if self.right_at(real)[0] == Access.READ:
            self.hidden[real] = Hidden(path=real, rule=origin)
        self.mounts[path] = Mount(path=path, kind=Kind.FILE, content=content, access=Access.WRITE, origin=origin)

    def hide_all(self) -> None:
        """Each hidden path that a grant would show is left out, masked or carved."""
        apart: dict[str, list[str]] = {}
        for path in self.hidden:
            right, holder = self.right_at(path)
            if right == Access.HIDDEN:
                continue
            root = self.writable_root(path) or (holder if right == Access.WRITE else "")
            if root:
                self._hide_below_writable(root, path)
            elif self._may_be_masked(path):
                self._mask(path)
            elif self.masking != Masking.ALL and self._could_be_read(path):
                apart.setdefault(holder, []).append(path)
        for holder, paths in apart.items():
            self._take_apart(holder, self.mounts[holder], paths)

    def _hide_below_writable(self, root: str, path: str) -> None:
        """What is not there cannot be masked – our own directories are made for it – and a link needs none: what it names is hidden too."""
        kind = self.disk.kind(path)
        if kind != "link" and (kind or self.hidden[path].rule == SELF_PROTECTION):
            self.carve(root, path, Carving.HIDE, self.hidden[path].rule)

    def _may_be_masked(self, path: str) -> bool:
        """A directory that only root could replace, which nobody does while people work: taking /etc apart is slow."""
        if self.masking != Masking.SOME:
            return self.masking == Masking.ALL and self.disk.kind(path) != "" and self._could_be_read(path)
        own = self.host.uid == 0 or self.disk.writable(path.rpartition("/")[0] or "/")
        return not own and self.disk.kind(path) == "directory" and self.disk.readable(path)

    def _mask(self, path: str) -> None:
        self.mounts[path] = Mount(path=path, kind=Kind.MASK, origin=f"hidden {self.hidden[path].rule}")

    def _could_be_read(self, path: str) -> bool:
        """Now, or after somebody replaced it outside: a mask over it would not last, and what nobody may read needs none."""
        if self.disk.readable(path) or self.host.uid == 0:
            return True
        return self.disk.writable(path.rpartition("/")[0] or "/")

    def _take_apart(self, directory: str, whole: Mount, hidden: list[str]) -> None:
        """An empty directory with everything bound in but what is hidden, down to where the hidden paths are."""
        self.mounts[directory] = Mount(path=directory, kind=Kind.SCRATCH, access=Access.READ, origin=whole.origin)
        self._rights[directory] = Access.HIDDEN
        for name in self.disk.entries(directory):
            path = f"{directory.rstrip('/')}/{name}"
            if path in self.hidden or path in self.mounts:
                continue
            below = [one for one in hidden if is_below(one, path)]
            if below:
                self._take_apart(path, whole, below)
            else:
                self._show(path, whole)

    def _show(self, path: str, whole: Mount) -> None:
        kind = self.disk.kind(path)
        if kind == "link":
            self.add_links([(path, self.disk.link(path))])
        elif kind in ("file", "directory"):
            self._bind(path, Access.READ, whole.origin, optional=True)
            self._rights[path] = Access.READ
