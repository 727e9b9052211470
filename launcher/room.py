"""A session's room is made: directories, links and files that stand in for what cannot be mounted, and the FIFOs of its helpers.

Done by the guard before anything else of the session runs; removed together with the session.
"""

from __future__ import annotations

import os

from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.plan import Room


def make_room(room: Room) -> None:
    mask = os.umask(0o077)
    try:
        for path in room.directories:
            os.mkdir(path, 0o700)
        for path, content, executable in room.files:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700 if executable else 0o600), "wb") as file:
                file.write(content)
        ours = {path for path, _, _ in room.files}
        for path, target in room.links:
            make_link = os.link if target in ours else os.symlink  # another name of a file takes a fifth of the time: stubs have many
            make_link(target, path)
    except OSError as error:
        raise UserError(f"the session's own directory cannot be made: {error.strerror}", where=room.path)
    finally:
        os.umask(mask)
