"""The person's process while a bot's session lives: it hands over what the session is about, passes on signals, and ends as the session does.

sudo's process is root's, so that no signal of ours reaches it, and it closes every descriptor that we could pass. So there is a socket
whose name sudo's command line tells: each side asks the kernel who is at the other end. It stays open: through it go the signals that
were sent to us, and its end tells the bot's side that we are gone.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import struct

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher import syscalls
from agent_sandbox.launcher.handover import STOPS, WATCHED
from agent_sandbox.launcher.processes import parent
from agent_sandbox.launcher.supervise import die_of
from agent_sandbox.launcher.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

FAILED = 125
RECORD = 128  # bytes of a signal, as signalfd tells it
CREDENTIALS = struct.Struct("3i")


def attend(words: tuple[str, ...], environment: Mapping[str, str], frame: bytes, bot: int, name: str) -> int:
    """Until the session is over: its exit code."""
    terminal = Terminal()
    listener, address = listen()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a caller may have ignored it for us: then nobody tells of sudo's end
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    pid = fork()
    if pid == 0:
        _become_sudo((*words, address), environment, mask)
    ended = _Attendance(pid, listener, frame, bot).until_it_ends()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if not ended.met and ended.status:
        raise UserError(f"sudo did not start a session as {name}", hint=f"`botadm status {name}` shows what is missing")
    terminal.take_back(restore_modes=ended.status != 0)
    if os.WIFSIGNALED(ended.status):
        die_of(os.WTERMSIG(ended.status))
    return os.waitstatus_to_exitcode(ended.status)


def listen() -> tuple[socket.socket, str]:
    """A name without a file: the bot could go to no directory of the person's."""
    address = f"agent-sandbox-{secrets.token_hex(16)}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.bind(f"\0{address}")
    listener.listen(8)
    return listener, address


def fork() -> int:
    try:
        return os.fork()
    except OSError as error:
        raise UserError(f"no process can be started: {error.strerror}", hint="`ulimit -u` may be too low") from None


def peer(end: socket.socket) -> tuple[int, int]:
    """The process and the user at the other end, when it was connected or began to listen."""
    pid, uid, _ = CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    return pid, uid


def is_below(pid: int, top: int) -> bool:
    """Was it started by `top`? Where /proc hides other users' processes (hidepid) nobody can tell, and the user alone has to do."""
    if not parent(top):
        return True
    while pid not in (0, top):
        pid = parent(pid)
    return pid == top


def _become_sudo(words: tuple[str, ...], environment: Mapping[str, str], mask: set[int | signal.Signals]) -> NoReturn:
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execve(words[0], words, dict(environment))
    finally:
        os._exit(FAILED)


class _Attendance:
    """`met`: the bot's side has come; `status`: how sudo ended, as waitpid says it."""

    def __init__(self, sudo: int, listener: socket.socket, frame: bytes, bot: int) -> None:
        self._sudo, self._listener, self._frame, self._bot = sudo, listener, frame, bot
        self._bell = syscalls.signal_handle(WATCHED)
        self._line: socket.socket | None = None
        self._early: list[int] = []
        self.met, self.status = False, -1

    def until_it_ends(self) -> _Attendance:
        ears = select.poll()
        ears.register(self._bell, select.POLLIN)
        ears.register(self._listener, select.POLLIN)
        while self.status < 0:
            for handle, _ in ears.poll():
                if handle == self._bell:
                    self._hear()
                elif not self.met:
                    self._meet()
                    if self.met:
                        ears.unregister(self._listener)
        return self

    def _meet(self) -> None:
        """Anybody on this machine can connect; only the bot is spoken to, and of its processes the one that our sudo started."""
        end, _ = self._listener.accept()
        pid, uid = peer(end)
        if uid != self._bot or not is_below(pid, self._sudo):
            end.close()
            return
        self._line, self.met = end, True
        try:
            end.sendall(self._frame)
            for number in self._early:
                end.send(bytes([number]))
        except OSError:
            pass  # it ended: sudo will tell

    def _hear(self) -> None:
        for at in range(0, len(told := os.read(self._bell, RECORD * 8)), RECORD):
            number, _, code = struct.unpack_from("Iii", told, at)
            if number == signal.SIGCHLD:
                self._look()
            elif code <= 0 and number not in STOPS:  # what the terminal sent has reached the session, too
                self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        if self._line is None:
            self._early.append(number)
            return
        try:
            self._line.send(bytes([number]))
        except OSError:
            pass

    def _look(self) -> None:
        """Stopped with the session, so that the caller's shell sees it; or over."""
        pid, status = os.waitpid(self._sudo, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
        elif pid:
            self.status = status
