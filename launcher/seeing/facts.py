"""This machine becomes the Facts that doctor reasons about: bwrap is run, not looked at. Starts bwrap; reads /proc."""

from __future__ import annotations

import os
import re
import subprocess

from agent_sandbox.launcher.plan import Stage
from agent_sandbox.launcher.policy import Limits
from agent_sandbox.launcher.seeing.child import in_child
from agent_sandbox.launcher.seeing.reasons import Facts
from agent_sandbox.launcher.stage import StageError, enter_namespaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.policy import Host

SMALLEST = (
    "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/true",
)  # fmt: skip
CONTAINERS = ("/.dockerenv", "/run/.containerenv", "/.singularity.d")
SECONDS = 20


def read_facts(host: Host) -> Facts:
    code, error = _run(host.bwrap, *SMALLEST) if host.bwrap else (1, "")
    return Facts(
        bwrap=host.bwrap, entry=host.entry, version=_version(host.bwrap), setuid=_is_setuid(host.bwrap),
        runs=code == 0, error=error.strip().removeprefix("bwrap: ")[:300],
        userns_clone=_text("/proc/sys/kernel/unprivileged_userns_clone"),
        most_namespaces=_text("/proc/sys/user/max_user_namespaces"),
        apparmor=_text("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        container=any(map(os.path.exists, CONTAINERS)), filtered="\nSeccomp:\t2" in _text("/proc/self/status"),
    )  # fmt: skip


def try_stage() -> str:
    """Our own namespaces, made in a child as every launch makes them; the problem in words, or ""."""
    nothing = Stage(
        carves=(), held=(), limits=Limits(), most_user_namespaces=2, scope_abstract_sockets=False, scope_signals=False, ignored_signals=(),
    )  # fmt: skip

    def enter() -> int:
        try:
            enter_namespaces(nothing)
        except StageError as error:
            os.write(2, str(error).encode())
            return 1
        return 0

    ended = in_child(enter)
    return "" if ended.code == 0 else ended.err or f"status {ended.code}"


def _run(program: str, *words: str) -> tuple[int, str]:
    """Status, and what was said on either stream."""
    try:
        done = subprocess.run(
            (program, *words), env={"PATH": "/usr/bin:/bin"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=SECONDS, check=False, cwd="/", text=True, errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout


def _version(bwrap: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", _run(bwrap, "--version")[1]) if bwrap else None
    return tuple(int(part) for part in found.groups() if part) if found else ()


def _is_setuid(path: str) -> bool:
    return bool(path) and bool(os.stat(path).st_mode & 0o4000)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(1 << 16).strip()
    except OSError:
        return ""
