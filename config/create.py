"""The person's own config file where there is none yet. Writes a file, and needs nothing that a first use does not install."""

from __future__ import annotations

import os

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.template import template


def create(path: str) -> str:
    """A new file of comments alone; never over one that exists, not even over a link to nowhere."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UserError("exists already", where=path, hint="agent-sandbox config edit opens it") from None
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=path) from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(template())
    return path
