"""Inside firejail: look whether the jail is what was asked for, close what firejail leaves open, start the command, end with it.

Run by path in an isolated interpreter. It stays as the command's parent: when the command ends, so does whatever it has started,
and firejail, which would wait for all of it, ends with the command's exit code.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal

FAILED = 125
NOT_DUMPABLE = 4, 0  # PR_SET_DUMPABLE: nothing inside may look into this process
SKELETON = (".bashrc", ".zshrc", ".cshrc")  # what firejail puts into a home of its own


class Problem(Exception):
    """What is not as it should be, in words."""


def main(words: list[str]) -> NoReturn:
    status, orders, standard_input, *hatches = map(int, words)
    try:
        os.dup2(standard_input, 0)
        os.close(standard_input)
        told = read_orders(orders)
        check_namespaces(told["outside"])
        open_the_way_out(told["listen"], *hatches)
        fill_home(told)
        mounted = mount_points()
        for path, check, outside in told["checks"]:
            CHECKS[check](path, outside, mounted)
        restrict(told)
    except Problem as problem:
        fail(status, str(problem))
    except OSError as error:
        fail(status, f"the jail cannot be entered: {error.filename or ''}: {error.strerror}")
    except BaseException as error:  # nothing may run in a jail that is not finished
        fail(status, f"unexpected: {error!r}")
    run(told, status)


def read_orders(number: int) -> Any:
    with os.fdopen(number, "rb") as file:
        return marshal.loads(file.read())


def fail(status: int, problem: str) -> NoReturn:
    from agent_sandbox.launcher.jsonline import dumps

    os.write(status, dumps({"stage-error": problem}).encode() + b"\n")
    os._exit(FAILED)


def check_namespaces(outside: list[tuple[str, str]]) -> None:
    """Where firejail believes that it is in a jail already it starts the command with nothing around it."""
    for name, link in outside:
        if os.readlink(f"/proc/self/ns/{name}") == link:
            raise Problem(f"firejail started without a jail (no {name} namespace)")


def open_the_way_out(port: int, hatch: int = -1) -> None:
    """Where the proxy is to listen. Nobody may wait for it outside: then there is no way out, and nothing else is different."""
    try:
        os.fstat(hatch)
    except OSError:
        return
    from agent_sandbox.launcher import listener

    made, _ = listener.listen(port)
    listener.hand_out(hatch, made)
    os.close(made)


def fill_home(told: dict[str, Any]) -> None:
    """Our own files in the place of firejail's, where home is a throw-away one that can be written."""
    home = told["home"]
    if not home or not os.access(home, os.W_OK):
        return
    for name in SKELETON:
        remove(f"{home}/{name}")
    for path, content in told["files"]:
        remove(path)
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(content)
    for path, target in told["links"]:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        if not os.path.lexists(path):
            os.symlink(target, path)


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def mount_points() -> frozenset[str]:
    with open("/proc/self/mountinfo", "rb") as file:
        return frozenset(unescaped(line.split(b" ")[4]) for line in file)


def unescaped(path: bytes) -> str:
    """The kernel writes space, tab, newline and backslash in octal."""
    for code, plain in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        path = path.replace(code, plain)
    return os.fsdecode(path)


def is_read_only(path: str) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def check_same(path: str, outside: tuple[int, int]) -> None:
    """The file that was resolved. /sys is made anew, as the one of the jail's own network."""
    try:
        found = os.lstat(path)
    except OSError as error:
        raise Problem(f"{path}: firejail does not show it: {error.strerror}")
    if (found.st_dev, found.st_ino) != outside and not path.startswith("/sys"):
        raise Problem(f"{path} changed while the jail was being built: start again")


def check_read(path: str, outside: tuple[int, int], mounted: frozenset[str]) -> None:
    check_same(path, outside)
    if not is_read_only(path):
        raise Problem(f"{path}: firejail did not make it read-only")


def check_write(path: str, outside: tuple[int, int], mounted: frozenset[str]) -> None:
    check_same(path, outside)
    if is_read_only(path):
        raise Problem(f"{path}: firejail makes only what belongs to you writable below something read-only")


def check_hidden(path: str, outside: tuple[int, int], mounted: frozenset[str]) -> None:
    if os.access(path, os.R_OK) or os.access(path, os.X_OK):
        raise Problem(f"{path}: firejail did not hide it")


def check_scratch(path: str, outside: tuple[int, int], mounted: frozenset[str]) -> None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return
    if (found.st_dev, found.st_ino) == outside:
        raise Problem(f"{path}: firejail did not make it private")


def check_pinned(path: str, outside: tuple[int, int], mounted: frozenset[str]) -> None:
    if path not in mounted or is_read_only(path):
        raise Problem(f"{path}: firejail cannot keep it from being renamed")


CHECKS = {"read": check_read, "write": check_write, "hidden": check_hidden, "scratch": check_scratch, "pinned": check_pinned}


def restrict(told: dict[str, Any]) -> None:
    from agent_sandbox.launcher import syscalls

    os.chdir(told["cwd"])
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if told["scope_signals"] or told["scope_abstract_sockets"]:
        syscalls.landlock_scope(abstract_sockets=told["scope_abstract_sockets"], signals=told["scope_signals"])
    syscalls.prctl(*NOT_DUMPABLE)
    for program in told["filters"]:
        syscalls.seccomp_load(program, listener=False)


def run(told: dict[str, Any], status: int) -> NoReturn:
    try:
        command = os.fork()
        if command == 0:
            start(told, status)
    except OSError as error:
        fail(status, f"the command cannot be started: {error.strerror}")
    os.close(status)
    os.setsid()  # `kill -KILL 0` inside must leave us to say how the command ended, and to end the rest
    code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    try:
        os.kill(-1, signal.SIGKILL)  # all that are in this jail, but its first process and this one
    except ProcessLookupError:
        pass
    os._exit(code if code >= 0 else 128 - code)


def start(told: dict[str, Any], status: int) -> NoReturn:
    """The status pipe is closed before anything of the agent's runs: what is said there is believed."""
    from agent_sandbox.launcher import inner, syscalls
    from agent_sandbox.launcher.policy import Limits
    from agent_sandbox.launcher.stage import set_limits

    set_limits(Limits(**told["limits"]))
    os.write(status, b'{"inside": 1}\n')
    syscalls.close_from(3)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN if number in told["ignored"] else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    inner.become(told["command"], told["environment"])


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    main(sys.argv[1:])
