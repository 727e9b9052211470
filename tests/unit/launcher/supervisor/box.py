"""A process whose calls go to a supervisor, as a Landlock jail has it, without the rest of the jail.

The test process forks the supervisor's process, which becomes an ordinary user and forks the caller: so a function of the
test runs as the caller, and what it returns comes back. The caller is under the filter and nothing else: whatever the
supervisor does not refuse, the kernel does for it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_sandbox.launcher import syscalls
from agent_sandbox.launcher.seccomp.extra import ALLOW, EQUAL, LOAD, RETURN, instruction, own_calls_only
from agent_sandbox.launcher.seccomp.numbers import number_of, numbers_of, read_numbers
from agent_sandbox.launcher.supervisor import kernel
from agent_sandbox.launcher.supervisor.allowed import Allowed
from agent_sandbox.launcher.supervisor.attributes import HANDLERS
from agent_sandbox.launcher.supervisor.supervisor import Supervisor
from tests.machines.users import TestUser

MACHINE = os.uname().machine
NOTIFY = syscalls.SECCOMP_RET_USER_NOTIF
AND = 0x54
ARGUMENT_AT = 16  # offset of the first argument in struct seccomp_data
PR_SET_DUMPABLE = 4
SECONDS = 60
Act = Callable[[], Any]


def notify_filter(also: Sequence[str]) -> bytes:
    whole = numbers_of(("connect", "inotify_add_watch", *HANDLERS, *also), MACHINE)
    code = own_calls_only(MACHINE)
    for number in whole:
        code += instruction(EQUAL, number, otherwise=1) + instruction(RETURN, NOTIFY)
    code += _where("ioctl", 1, 0xFFFFFFFF, kernel.TIOCGPTPEER) + _where("socketpair", 1, 0xF, 2)
    return code + instruction(RETURN, ALLOW)


def _where(call: str, position: int, mask: int, value: int) -> bytes:
    """Notify of this call where the argument, masked, has the value. Ends with the number loaded again."""
    number = number_of(call, MACHINE)
    assert number is not None
    check = instruction(LOAD, ARGUMENT_AT + 8 * position) + instruction(AND, mask)
    check += instruction(EQUAL, value, otherwise=1) + instruction(RETURN, NOTIFY) + instruction(LOAD, 0)
    return instruction(EQUAL, number, otherwise=len(check) // 8) + check


@dataclass(frozen=True, kw_only=True)
class Box:
    user: TestUser
    writable: Sequence[Path] = ()
    readable: Sequence[Path] = ()
    sockets: Sequence[Path] = ()
    abstract: bool = True
    hosts: tuple[tuple[str, int], ...] | None = None
    told: int = -1
    also: Sequence[str] = ()  # calls that a jail does not hand over
    before: Act = field(default=lambda: None)  # done by the caller before the filter is on
    watcher: Callable[[Supervisor], Any] = field(default=lambda supervisor: None)  # asked of the supervisor's process before and after

    @property
    def allowed(self) -> Allowed:
        paths = {name: tuple(map(str, getattr(self, name))) for name in ("writable", "readable", "sockets")}
        return Allowed(**paths, abstract=self.abstract, hosts=self.hosts, told=self.told)

    def run(self, act: Act) -> Any:
        """What the function returns, done under the supervisor; its exception, raised again."""
        return self.look(act)[0]

    def look(self, act: Act) -> tuple[Any, Any]:
        """As `run`, and what the watcher saw before and after."""
        code, answer, seen = in_child(lambda: self._supervise(act), self.user)
        if isinstance(answer, BaseException):
            raise answer
        assert code == 0, code
        return answer, seen

    def outside(self, act: Act) -> Any:
        """The control: the same function as the same user, without the supervisor."""
        answer = in_child(lambda: _outcome(act), self.user)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _supervise(self, act: Act) -> tuple[int, Any, Any]:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        told, tell = os.pipe()
        go, let_go = os.pipe()
        answers, answer = os.pipe()
        caller = os.fork()
        if caller == 0:
            os.close(let_go)
            self._call(act, tell, go, answer)
        for end in (tell, go, answer):
            os.close(end)
        number = int.from_bytes(os.read(told, 4), "little")
        handle = kernel.pidfd_open(caller)
        listener = kernel.pidfd_getfd(handle, number)
        supervisor = Supervisor(listener, MACHINE, self.allowed)
        os.close(handle)
        before = self.watcher(supervisor)
        os.write(let_go, b"x")
        said = _serve(supervisor, answers)
        seen = before, self.watcher(supervisor)
        _, status = os.waitpid(caller, 0)
        return os.waitstatus_to_exitcode(status), pickle.loads(said), seen  # noqa: S301 - our own child

    def _call(self, act: Act, tell: int, go: int, answer: int) -> None:
        """Never returns."""
        try:
            self.before()
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
            listener = syscalls.seccomp_load(notify_filter(self.also), listener=True)
            os.write(tell, listener.to_bytes(4, "little"))
            os.read(go, 1)
            os.close(listener)  # else we would wait for ever for a supervisor that is dead
            outcome = _outcome(act)
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        _write(answer, pickle.dumps(outcome))
        os._exit(0)


def _serve(supervisor: Supervisor, answers: int) -> bytes:
    poll = select.poll()
    poll.register(supervisor.fileno(), select.POLLIN)
    poll.register(answers, select.POLLIN)
    said, deadline = b"", time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        ready = dict(poll.poll(1000))
        if supervisor.fileno() in ready:
            supervisor.answer()
        if answers in ready:
            part = os.read(answers, 1 << 20)
            said += part
            if not part:
                return said
    raise TimeoutError("the caller hangs")


def _outcome(act: Act) -> Any:
    try:
        return act()
    except Exception as error:
        if not isinstance(error, OSError):
            error.add_note(traceback.format_exc())
        return error


def in_child(act: Act, user: TestUser) -> Any:
    """What a function returns in a process of its own, as an ordinary user."""
    answers, answer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(answers)
        try:
            os.setsid()
            _become(user)
            _write(answer, pickle.dumps(act()))
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(3)
        os._exit(0)
    os.close(answer)
    with open(answers, "rb") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    try:
        os.killpg(child, signal.SIGKILL)  # whoever it left
    except ProcessLookupError:
        pass
    assert os.waitstatus_to_exitcode(status) == 0
    return pickle.loads(said)  # noqa: S301 - our own child


def _become(user: TestUser) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    os.umask(0o022)
    syscalls.prctl(PR_SET_DUMPABLE, 1)  # becoming somebody else has switched it off


def _write(pipe: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(pipe, left) :]


def error_of(act: Act) -> int:
    """0, or the number of the error."""
    try:
        act()
    except OSError as error:
        return error.errno or -1
    return 0


NUMBERS = read_numbers(MACHINE)  # before a test leaves no descriptor for it
_libc = ctypes.CDLL(None, use_errno=True)


def raw(name: str, *arguments: int | bytes | ctypes.Array[Any] | None) -> int:
    """A system call as the kernel knows it: 0, or the number of the error."""
    number = NUMBERS[name]
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    return ctypes.get_errno() if _libc.syscall(ctypes.c_long(number), *words) < 0 else 0
