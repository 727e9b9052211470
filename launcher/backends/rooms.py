"""What belongs into the throw-away home and our own place becomes the content of a session's room: directories, links, files. Pure.

For backends that cannot mount. A grant below home keeps its path; in the room a link of the same name leads to it.
"""

from __future__ import annotations

from agent_sandbox.launcher.plan import Room
from agent_sandbox.launcher.view import Kind, is_below, way_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.policy import Policy
    from agent_sandbox.launcher.view import Mount


def places_of_helpers(policy: Policy) -> Room | None:
    """All that a backend needs that can mount the rest."""
    places = tuple(helper.place for helper in policy.helpers if helper.place)
    if not places:
        return None
    room = places[0].rpartition("/")[0]
    return Room(path=room, directories=(room, *places), links=(), files=())


def furnish(policy: Policy) -> Room:
    """Parents first. In the room nothing lies below a link: what is granted below a grant comes with it."""
    rooms = policy.rooms
    own = (place for place in (rooms.home, rooms.tmp) if is_below(place, rooms.session))
    directories = dict.fromkeys((rooms.session, rooms.own, *own, *(helper.place for helper in policy.helpers if helper.place)))
    links: dict[str, str] = {}
    files: dict[str, tuple[bytes, bool]] = {}
    for mount in policy.view.mounts:
        place = place_of(mount.path, policy)
        if not place or mount.kind == Kind.MASK or place in directories or place in links:
            continue
        if place.rpartition("/")[0] not in directories:  # those lie below no link
            above = way_to(place)[1:]
            if any(parent in links for parent in above):
                continue
            directories.update(dict.fromkeys(parent for parent in reversed(above) if is_below(parent, rooms.session)))
        if mount.kind == Kind.SCRATCH:
            directories.setdefault(place)
        elif mount.kind == Kind.FILE:
            files[place] = (mount.content, mount.executable)
        else:
            links[place] = _target(mount)
    written = tuple((path, *file) for path, file in files.items())
    return Room(path=rooms.session, directories=tuple(directories), links=tuple(links.items()), files=written)


def place_of(path: str, policy: Policy) -> str:
    """Where the room has something for `path`: for what is below home, and for what is in the room by its own path. "" = nowhere."""
    if is_below(path, policy.rooms.session):
        return path
    if path.startswith(policy.real_home + "/") and is_below(policy.rooms.home, policy.rooms.session):
        return policy.rooms.home + path[len(policy.real_home) :]
    return ""


def _target(mount: Mount) -> str:
    """A relative link is read where it lies outside."""
    if mount.kind != Kind.LINK:
        return mount.path
    return mount.target if mount.target.startswith("/") else f"{mount.path.rpartition('/')[0]}/{mount.target}"
