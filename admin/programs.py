"""The one place where admin runs programs: an argv tuple, an absolute program, an environment of ours, a time-out, no shell."""

from __future__ import annotations

import os
import subprocess

from agent_sandbox.admin.places import TOOL_FOLDERS
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record

ENVIRONMENT = {"PATH": ":".join(TOOL_FOLDERS), "LC_ALL": "C", "HOME": "/", "TERM": "dumb"}
SECONDS = 60


@record
class Done:
    argv: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def reason(self) -> str:
        """The last thing it said."""
        said = (self.err.strip() or self.out.strip()).splitlines()
        return said[-1] if said else f"exit status {self.code}"


def run(argv: tuple[str, ...], *, seconds: float = SECONDS, keep: tuple[int, ...] = ()) -> Done:
    """Run to the end. `keep` names descriptors that it inherits: our lock, so that nobody takes a turn while it still works."""
    if not os.path.isabs(argv[0]):
        raise ValueError(f"not an absolute path: {argv[0]}")
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRONMENT, cwd="/", timeout=seconds, pass_fds=keep,
            encoding="utf-8", errors="replace", umask=0o022,
            start_new_session=True,  # Ctrl-C is for us: half an account is worse than a second's wait
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Done(argv=argv, code=124, out="", err=f"did not end within {seconds:g} s")
    except OSError as error:
        return Done(argv=argv, code=127, out="", err=f"cannot be started: {error.strerror}")
    return Done(argv=argv, code=done.returncode, out=done.stdout, err=done.stderr)


def find_tool(name: str) -> str:
    """Its absolute path; "" where the system has none."""
    paths = (f"{folder}/{name}" for folder in TOOL_FOLDERS)
    return next((path for path in paths if os.access(path, os.X_OK) and os.path.isfile(path)), "")


def find_tools(names: tuple[str, ...]) -> dict[str, str]:
    """All of them, or a UserError that names each missing one: before anything is changed."""
    found = {name: find_tool(name) for name in names}
    missing = [name for name, path in found.items() if not path]
    if missing:
        raise UserError(
            f"missing on this machine: {', '.join(missing)}",
            hint="Debian, Ubuntu: apt install passwd sudo acl   Fedora, RHEL: dnf install shadow-utils sudo acl",
        )
    return found
