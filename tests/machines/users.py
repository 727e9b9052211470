"""Throw-away accounts, and running programs as them.

Root makes a fresh account for each `account()` and removes it with its home and its processes; for anybody else the
only user is the one who runs the tests. An account carries its maker's pid and start time in the comment field of
passwd: that is how `sweep` tells the accounts of a killed run from those of a run that is still going on.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

PREFIX = "sbxt"
COMMENT = "agent-sandbox test of process "
LOCKED = (1, 10, 16)  # useradd, userdel: somebody else holds the lock of passwd, group or subuid
numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class TestUser:
    __test__: ClassVar[bool] = False  # not a class of tests, whatever its name begins with
    name: str
    uid: int
    gid: int
    home: Path

    @property
    def groups(self) -> tuple[int, ...]:
        return tuple(os.getgrouplist(self.name, self.gid))

    @property
    def environment(self) -> dict[str, str]:
        """What a login shell starts from; nothing of the test runner's own variables."""
        return {
            "HOME": str(self.home),
            "USER": self.name,
            "LOGNAME": self.name,
            "SHELL": "/bin/bash",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
        }


@contextlib.contextmanager
def account(*, groups: Sequence[str] = ()) -> Iterator[TestUser]:
    """A fresh account for as long as the block lasts; the current user where we cannot make one."""
    if os.geteuid() != 0:
        yield current_user()
        return
    user = create(groups=groups)
    try:
        yield user
    finally:
        remove(user)


def current_user() -> TestUser:
    return found(pwd.getpwuid(os.geteuid()))


def create(*, groups: Sequence[str] = ()) -> TestUser:
    name = f"{PREFIX}{os.getpid()}n{next(numbers)}"
    home = ("--create-home", "--key", "HOME_MODE=0700", "--shell", "/bin/bash")
    comment = ("--comment", COMMENT + identity(os.getpid()))
    change_accounts("useradd", *home, *comment, "--user-group", "--groups", ",".join(groups), "--", name)
    return found(pwd.getpwnam(name))


def remove(user: TestUser) -> None:
    end_processes(user.uid)
    change_accounts("userdel", "--force", "--", user.name)
    shutil.rmtree(user.home)


def sweep() -> None:
    """Remove the accounts whose maker is gone. Two runs may sweep at once: who comes second finds nothing to do."""
    for entry in pwd.getpwall() if os.geteuid() == 0 else ():
        if entry.pw_name.startswith(PREFIX) and is_orphan(entry.pw_gecos):
            with contextlib.suppress(subprocess.CalledProcessError, FileNotFoundError):
                remove(found(entry))


def run_as(
    user: TestUser,
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    input: str | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run to the end and return output and status. A time-out ends everything the program started in its session."""
    pipe = subprocess.PIPE
    stdin = subprocess.DEVNULL if input is None else pipe
    with start_as(user, argv, env=env, cwd=cwd, stdin=stdin, stdout=pipe, stderr=pipe, new_session=True) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def start_as(
    user: TestUser,
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    stdin: int | IO[Any] | None = subprocess.DEVNULL,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    new_session: bool = False,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[str]:
    """Start a program as `user`, at home, in a login environment to which `env` adds."""
    same = user.uid == os.geteuid()  # and then setgroups may be refused
    return subprocess.Popen(
        [os.fspath(word) for word in argv],
        user=None if same else user.uid,
        group=None if same else user.gid,
        extra_groups=None if same else user.groups,
        env={**user.environment, **(env or {})},
        cwd=cwd or user.home,
        umask=0o022,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=new_session,
        pass_fds=pass_fds,
        encoding="utf-8",
        errors="surrogateescape",
    )


def become(user: TestUser) -> Callable[[], None]:
    """The change of identity as a `preexec_fn`, for what starts programs by itself (pexpect)."""
    groups = user.groups

    def change() -> None:
        if user.uid != os.geteuid():
            os.setgroups(groups)
            os.setgid(user.gid)
            os.setuid(user.uid)

    return change


def found(entry: pwd.struct_passwd) -> TestUser:
    return TestUser(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid, home=Path(entry.pw_dir))


def change_accounts(program: str, *arguments: str) -> None:
    """Workers and other runs change the same files: try again for as long as one of them holds the lock."""
    for _ in range(200):
        done = subprocess.run((f"/usr/sbin/{program}", *arguments), capture_output=True, text=True)
        if done.returncode not in LOCKED:
            break
        time.sleep(0.1)
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)


def end_processes(uid: int, patience: float = 10) -> None:
    """Kill what runs under `uid` until nothing does: a process may fork while we look."""
    deadline = time.monotonic() + patience
    while running := [pid for pid in processes() if owner(pid) == uid and state(pid) != "Z"]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes of uid {uid} that do not end: {running}")
        for pid in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def owner(pid: int) -> int | None:
    """The real uid: the owner of /proc/PID is root for a process that is not dumpable."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
    return None


def state(pid: int) -> str:
    return stat_fields(pid)[0]


def identity(pid: int) -> str:
    """A pid together with its start time: pids are used again."""
    return f"{pid} {stat_fields(pid)[19]}"


def is_orphan(comment: str) -> bool:
    maker = comment.removeprefix(COMMENT)
    pid = maker.split(" ")[0]
    return maker != comment and pid.isdecimal() and identity(int(pid)) != maker


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, from the state on; of a process that is gone, a zombie's."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["Z"] + ["0"] * 19
