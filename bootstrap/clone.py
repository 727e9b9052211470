"""Whether a clone has changed since the copy that runs was made from it.

By the time of change (ctime): programs that copy files set the time of modification back.
"""

from __future__ import annotations

import os

FOLDERS = ("src", "launcher", "config", "chaperon", "admin", "bootstrap")
NOTICE = (
    b"agent-sandbox: this clone changed since it was installed; running the installed copy. "
    b"`make install` takes the change over.\n"
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def note_change(clone: str, record: str) -> None:
    if is_changed(clone, os.stat(record).st_mtime_ns):
        try:
            os.write(2, NOTICE)
        except OSError:  # standard error is closed
            pass


def is_changed(clone: str, since: int) -> bool:
    try:
        return any(change > since for change in changes(clone))
    except OSError:
        return True


def changes(clone: str) -> Iterator[int]:
    """When each file below the code's folders changed. Links are not followed, folders do not count: Python and
    editors change those."""
    yield os.lstat(f"{clone}/agent-sandbox").st_ctime_ns
    waiting = [f"{clone}/{name}" for name in FOLDERS]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.stat(follow_symlinks=False).st_ctime_ns
                elif entry.name != "__pycache__":
                    waiting.append(entry.path)
