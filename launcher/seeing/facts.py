"""This machine becomes the Facts that tell why a backend does not run. Asks the program for its version; reads /proc."""

from __future__ import annotations

import os
import stat

from agent_sandbox.launcher.seeing.child import in_child
from agent_sandbox.launcher.seeing.reasons import Facts
from agent_sandbox.launcher.tries import KINDS, SECONDS, execute, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.policy import Host

CONTAINERS = ("/.dockerenv", "/run/.containerenv", "/.singularity.d")
WHOLE = ["0", "0", "4294967295"]  # the map of a process that is in no user namespace but the first
CAPABILITIES = "security.capability"


def read_bwrap(host: Host, problem: str) -> Facts:
    """`problem` is what was said when it was run."""
    return _facts(host.bwrap, host.entry, problem.removeprefix("bwrap: "))


def read_firejail(host: Host, problem: str) -> Facts:
    return _facts(host.firejail, host.entry, problem)


def _facts(program: str, entry: str, problem: str) -> Facts:
    if not program or not problem:
        return Facts(program=program, entry=entry)
    status = read("/proc/self/status")
    return Facts(
        program=program, entry=entry, problem=problem, version=read_version(program), setuid=is_setuid(program), switches=_switches(),
        apparmor=_text("kernel/apparmor_restrict_unprivileged_userns"), container=any(map(os.path.exists, CONTAINERS)),
        filtered=b"\nSeccomp:\t2" in status, no_new_privileges=b"\nNoNewPrivs:\t1" in status,
        mapped=read("/proc/self/uid_map").decode().split() != WHOLE,
    )  # fmt: skip


def _switches() -> tuple[tuple[str, str], ...]:
    names = [("kernel.unprivileged_userns_clone", "user"), *((f"user.max_{kind}_namespaces", _word(kind)) for kind in KINDS)]
    return tuple((name, kind) for name, kind in names if _text(name.replace(".", "/")) == "0")


def _word(kind: str) -> str:
    return {"mnt": "mount", "pid": "process", "net": "network"}.get(kind, kind)


def read_version(program: str) -> tuple[int, ...]:
    """The first word of its answer that is made of numbers."""
    said = in_child(lambda: execute((program, "--version")), SECONDS).out
    for word in said.split():
        parts = word.split(".")
        if len(parts) > 1 and all(part.isdecimal() for part in parts):
            return tuple(map(int, parts))
    return ()


def is_setuid(path: str) -> bool:
    """Or as good as: with capabilities on the file."""
    try:
        found = os.stat(path)
        return bool(found.st_uid == 0 and found.st_mode & stat.S_ISUID) or CAPABILITIES in os.listxattr(path)
    except OSError:
        return False


def _text(name: str) -> str:
    return read(f"/proc/sys/{name}").decode("ascii", "replace")
