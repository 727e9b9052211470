"""What a user leaves that would work on for whoever gets its name or its number next: crontabs, jobs of at, lingering, System V IPC."""

from __future__ import annotations

import contextlib
import os
import stat

from agent_sandbox.admin.descriptors import opened
from agent_sandbox.admin.programs import find_tool, run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BY_NAME = ("/var/spool/cron", "/var/spool/cron/crontabs", "/var/spool/cron/tabs", "/var/lib/systemd/linger")
BY_NUMBER = ("/var/spool/cron/atjobs", "/var/spool/at", "/var/spool/atjobs")
IPC = (("shm", "shmid", "--shmem-id"), ("sem", "semid", "--semaphore-id"), ("msg", "msqid", "--queue-id"))


def remove_leftovers(name: str, uid: int) -> None:
    for folder, entry in find_files(name, uid):
        with opened(folder, os.O_PATH | os.O_DIRECTORY) as handle, contextlib.suppress(FileNotFoundError):
            os.unlink(entry, dir_fd=handle)
    ipcrm = find_tool("ipcrm")
    for option, number in find_ipc(uid) if ipcrm else ():
        run((ipcrm, option, str(number)))


def describe_leftovers(name: str, uid: int) -> str:
    """What is there still; "" = nothing."""
    files = [f"{folder}/{entry}" for folder, entry in find_files(name, uid)]
    return ", ".join([*files, *(f"System V IPC {number}" for _, number in find_ipc(uid))])


def find_files(name: str, uid: int) -> Iterator[tuple[str, str]]:
    """Spools are the system's: only regular files in them, and no links."""
    for folder in BY_NAME:
        if _is_file(f"{folder}/{name}"):
            yield folder, name
    for folder in BY_NUMBER:
        for entry in os.listdir(folder) if os.path.isdir(folder) else ():
            if _is_file(f"{folder}/{entry}", uid):
                yield folder, entry


def _is_file(path: str, uid: int = -1) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and uid in (-1, status.st_uid)


def find_ipc(uid: int) -> Iterator[tuple[str, int]]:
    """Owned or made by the user; as an option of ipcrm and a number."""
    for kind, field, option in IPC:
        with contextlib.suppress(FileNotFoundError), open(f"/proc/sysvipc/{kind}", encoding="ascii") as file:
            names = file.readline().split()
            for line in file:
                fields = dict(zip(names, map(int, line.split()), strict=False))
                if uid in (fields["uid"], fields["cuid"]):
                    yield option, fields[field]
