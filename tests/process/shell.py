"""A person at a terminal: an interactive shell of the user's on a pty, with everything that was written kept as a screen."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pexpect
import pyte

from agent_sandbox.launcher import processes
from tests.machines import users
from tests.machines.jail import Jail

PROMPT = r"\[(\d+)\]> "  # the exit code of the command before
ROWS, COLUMNS = 24, 80


class Shell:
    """`a COMMAND` runs it in the jail. Keys are sent as a terminal sends them."""

    def __init__(self, jail: Jail, *argv: str, wait_for_prompt: bool = True) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        stream = pyte.Stream(self.screen)
        env = {**jail.user.environment, "TERM": "linux"}
        words = [str(word) for word in argv] or ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"]
        self.child = pexpect.spawn(
            words[0], words[1:], env=env, cwd=str(jail.project), dimensions=(ROWS, COLUMNS), timeout=15,
            encoding="utf-8", codec_errors="replace", preexec_fn=users.become(jail.user),
        )  # fmt: skip
        self.child.delaybeforesend = None
        self.child.logfile_read = _Tee(stream.feed)
        self.code = 0
        if wait_for_prompt:
            self.type("PS1='[$?]> '")
            self.prompt()
            self.run(f"alias a='{jail.program} --quiet --'")

    def run(self, line: str) -> str:
        """Type a line and wait for the next prompt: what was written between them."""
        self.type(line)
        return self.prompt()

    def type(self, line: str) -> None:
        self.child.sendline(line)

    def key(self, letter: str) -> None:
        """Ctrl with a letter."""
        self.child.sendcontrol(letter)

    def see(self, pattern: str) -> str:
        self.child.expect(pattern)
        return str(self.child.before)

    def prompt(self) -> str:
        """Wait for the outer shell to be back, and keep the code that it shows."""
        self.child.expect(PROMPT)
        self.code = int(self.child.match[1])
        return str(self.child.before).replace("\r\n", "\n")

    def rows(self) -> list[str]:
        """The screen as a person sees it now."""
        self.child.expect([pexpect.TIMEOUT, pexpect.EOF], timeout=0.1)  # read what has come
        return [row.rstrip() for row in self.screen.display]

    def resize(self, rows: int, columns: int) -> None:
        self.child.setwinsize(rows, columns)
        self.screen.resize(rows, columns)

    def close(self) -> None:
        self.child.close(force=True)


class _Tee:
    def __init__(self, feed: Callable[[str], None]) -> None:
        self.write = feed

    def flush(self) -> None: ...


@contextlib.contextmanager
def shell(jail: Jail, *argv: str, wait_for_prompt: bool = True) -> Iterator[Shell]:
    opened = Shell(jail, *argv, wait_for_prompt=wait_for_prompt)
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def started(jail: Jail, *command: str, options: Sequence[str] = (), stdin: int = subprocess.DEVNULL) -> Iterator[subprocess.Popen[str]]:
    """A launch with pipes in a session of its own; ended at the end of the block, also when the test has failed there."""
    argv = [jail.program, "--quiet", *options, "--", *command]
    pipe = subprocess.PIPE
    process = users.start_as(jail.user, argv, cwd=jail.project, stdin=stdin, stdout=pipe, stderr=pipe, new_session=True)
    alarm = threading.Timer(30, process.kill)  # a read from it must not wait for ever
    alarm.start()
    try:
        yield process
    finally:
        alarm.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=20)


def until(condition: Callable[[], object], seconds: float = 10, pause: float = 0.01) -> bool:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def alive(uid: int) -> list[tuple[int, str]]:
    """The processes of a user that are not merely waiting to be collected."""
    found = []
    for pid in users.processes():
        if users.owner(pid) == uid and users.state(pid) not in "ZX":
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                found.append((pid, file.read().replace(b"\0", b" ").decode(errors="replace").strip()))
    return found


def generations(pid: int) -> int:
    """How many hang on the launcher: guard, backend, the jail's first process, the command."""
    below = processes.children(pid)
    return 1 + generations(below[0]) if below else 0


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

