"""Our own process becomes firejail: the profile and the orders for our stage inside go with it as open files.

Nothing that restricts this process may come before it: firejail is setuid, and needs what no_new_privs and Landlock take away.
Signals that reach the whole process group are blocked, since firejail would end the jail for them and passes its mask on; the
stage inside gives the command the usual one back.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import signal

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.backends.bwrap import GROUP_SIGNALS
from agent_sandbox.launcher.backends.firejail import HATCH_FD, INPUT_FD, ORDERS_FD, PIN, PROFILE_FD, check_path
from agent_sandbox.launcher.plan import Data
from agent_sandbox.launcher.say import say
from agent_sandbox.launcher.stage import StageError, place_files, set_signals
from agent_sandbox.launcher.status import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_sandbox.launcher.plan import Inner, Plan

EVERYBODY = "0 0 4294967295"  # the user map of a process that is in no user namespace but the first
OURS_TO_RESTORE = frozenset({signal.SIGPIPE, signal.SIGXFSZ})  # ignored by Python, not by the caller
NAMESPACES = ("pid", "mnt", "ipc")
ABOVE = HATCH_FD + 1  # no number that something else is put on


def become(plan: Plan, status: int, environment: dict[str, str], ready: Callable[[], object], hatch: int = -1) -> None:
    """Returns only by an exception."""
    assert plan.inner is not None
    refuse_in_user_namespace()
    hidden = tuple(other_entries(plan.inner.shown))
    lines = tuple(profile(plan, hidden))
    orders = marshal.dumps(orders_for(plan, hidden, lines))
    tell(status, monitor_pid=os.getpid())
    ready()
    data = (Data(fd=PROFILE_FD, content=b"".join(os.fsencode(line) + b"\n" for line in lines), label="profile"),
            Data(fd=ORDERS_FD, content=orders, label="orders"))  # fmt: skip
    hatch = fcntl.fcntl(hatch, fcntl.F_DUPFD, ABOVE) if hatch >= 0 else -1
    place_files(replace(plan, options=(), options_fd=ORDERS_FD, data=data), {}, status, kept=hatch)
    set_input_aside()
    if hatch >= 0:
        os.dup2(hatch, HATCH_FD)
        os.close(hatch)
    set_signals(())
    signal.pthread_sigmask(signal.SIG_BLOCK, GROUP_SIGNALS)
    os.chdir("/")
    os.execve(plan.program, (plan.program, *plan.words), environment)


def set_input_aside() -> None:
    """firejail throws away what was typed at a terminal that is its standard input and not read yet: that may be for the caller's
    script, which goes on after us."""
    os.dup2(0, INPUT_FD)
    null = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)


def refuse_in_user_namespace() -> None:
    with open("/proc/self/uid_map", "rb") as file:
        if " ".join(file.read().decode().split()) != EVERYBODY:
            raise StageError("firejail does not work inside a user namespace (a container, or `unshare --user`): use another backend")


def other_entries(shown: tuple[str, ...]) -> Iterator[str]:
    """What lies in / and is not to be seen. A link is left alone: where it leads is decided there."""
    with os.scandir("/") as found:
        yield from sorted(f"/{entry.name}" for entry in found if f"/{entry.name}" not in shown and not entry.is_symlink())


def profile(plan: Plan, hidden: tuple[str, ...]) -> Iterator[str]:
    assert plan.inner is not None
    for line in plan.options:
        if line.startswith(f"{PIN} "):
            yield from pin(line.partition(" ")[2], plan.inner)
        else:
            yield line
    for path in hidden:
        check_path(path)
        yield f"blacklist {path}"


def pin(path: str, inner: Inner) -> Iterator[str]:
    """firejail makes only what belongs to the user writable again."""
    if os.lstat(path).st_uid == os.getuid():
        yield from (f"read-only {path}", f"read-write {path}")
        return
    problem = f"{path} is somebody else's: firejail cannot keep it from being renamed, with what is protected in it"
    if inner.insists_on_pins:
        raise StageError(f"{problem} (project-protect is required)")
    say(f"weak point in project-protect: {problem}", "warning")


def orders_for(plan: Plan, hidden: tuple[str, ...], lines: tuple[str, ...]) -> dict[str, object]:
    """All that the stage inside needs, in plain values."""
    inner, stage = plan.inner, plan.stage
    assert inner is not None
    checks = [(path, check, _identity(path)) for path, check in inner.checks if check != "pinned" or f"read-write {path}" in lines]
    spaces = (*NAMESPACES, "net") if inner.own_network else NAMESPACES
    return {
        "command": plan.command, "environment": inner.environment, "cwd": inner.cwd, "home": inner.home, "filters": inner.filters,
        "files": (*inner.files, *_copies(inner)), "links": inner.links, "limits": dict(stage.limits.__dict__),
        "checks": (*checks, *((path, "hidden", _identity(path)) for path in hidden)),
        "scope_signals": stage.scope_signals, "scope_abstract_sockets": stage.scope_abstract_sockets,
        "ignored": [int(one) for one in signal.valid_signals() - OURS_TO_RESTORE if signal.getsignal(one) == signal.SIG_IGN],
        "listen": inner.listen, "outside": [(name, os.readlink(f"/proc/self/ns/{name}")) for name in spaces],
    }  # fmt: skip


def _copies(inner: Inner) -> Iterator[tuple[str, bytes]]:
    for path in inner.copies:
        try:
            with open(path, "rb") as file:
                yield path, file.read()
        except OSError:  # gone meanwhile, or not a file
            continue


def _identity(path: str) -> tuple[int, int]:
    """Of the very file or directory; (0, 0) = not there, or not for us to see."""
    try:
        found = os.lstat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino
