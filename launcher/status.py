"""What the backend and the guard report on the status pipe: which process is the jail's first, and how the command ended.

Lines may arrive in pieces; only whole ones count.
"""

from __future__ import annotations

import os

from agent_sandbox.launcher.jsonline import dumps
from agent_sandbox.launcher.processes import oldest_descendant

BELOW_MONITOR = 2  # firejail's own first process inside, and our stage there


class Status:
    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        self._pipe = pipe
        self._text = ""

    def _read(self) -> list[str]:
        while True:
            try:
                piece = os.read(self._pipe, 65536)
            except BlockingIOError:
                break
            if not piece:
                break
            self._text += piece.decode("utf-8", "backslashreplace")
        return self._text.rpartition("\n")[0].splitlines()

    def number(self, name: str) -> int | None:
        for line in self._read():
            _, found, rest = line.partition(f'"{name}": ')
            digits = rest.partition(",")[0].strip(" }")
            if found and digits.isdecimal():
                return int(digits)
        return None

    def wait_for(self, name: str) -> int | None:
        """The number, as soon as it is there; None = nobody is left to report it."""
        os.set_blocking(self._pipe, True)
        piece = b" "
        while piece and not self._text.endswith("\n"):
            piece = os.read(self._pipe, 65536)
            self._text += piece.decode("utf-8", "backslashreplace")
        os.set_blocking(self._pipe, False)
        return self.number(name)

    def first_process(self) -> int | None:
        """The command's parent in the jail, by its number outside."""
        found, monitor = self.number("child-pid"), self.number("monitor-pid")
        if found is None and monitor is not None and self.is_inside():
            found = oldest_descendant(monitor, BELOW_MONITOR)
        return found

    def is_inside(self) -> bool:
        """Has our stage inside a backend that reports nothing itself got as far as the command?"""
        return self.number("inside") is not None

    def exit_code(self) -> int | None:
        """The command's; None = it never started, or the backend was killed."""
        return self.number("exit-code")

    def timed_out(self) -> bool:
        """Did the guard end it at the time limit?"""
        return any(line.startswith('{"timed-out"') for line in self._read())

    def stage_error(self) -> str:
        """Why our own steps stopped before the backend."""
        for line in self._read():
            if '"stage-error"' in line:
                import json

                return str(json.loads(line)["stage-error"])
        return ""


def tell(status: int, **facts: str | int) -> None:
    """One line of words and numbers; `_` stands for `-` in a name."""
    try:
        os.write(status, dumps({name.replace("_", "-"): value for name, value in facts.items()}).encode() + b"\n")
    except OSError:  # the launcher is gone
        pass
