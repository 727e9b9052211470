"""The caller's terminal, given back as it was: a shell inside takes the foreground, and cannot name our group to undo it."""

from __future__ import annotations

import os
import signal
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    Modes = list[int | list[bytes | int]]


class Terminal:
    def __init__(self) -> None:
        self._handle = next((number for number in (0, 1, 2) if os.isatty(number)), -1)
        self._modes = _modes(self._handle)
        self.was_ours = self._foreground() == os.getpgrp()

    def _foreground(self) -> int:
        """The group that has the terminal; 0 = there is no terminal, or it is not ours to ask about."""
        try:
            return os.tcgetpgrp(self._handle) if self._handle >= 0 else 0
        except OSError:
            return 0

    def take_back(self, *, restore_modes: bool) -> None:
        """From a group that ended with the jail; never from the caller's shell, which has it when we are in the background.

        Modes too if the command did not end well: it had no chance to put them back.
        """
        if not self.was_ours:
            return
        try:
            if _is_empty(self._foreground()):
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
                os.tcsetpgrp(self._handle, os.getpgrp())
            if restore_modes and self._modes is not None and self._foreground() == os.getpgrp():
                termios.tcsetattr(self._handle, termios.TCSANOW, self._modes)
        except (OSError, termios.error):
            pass  # the terminal is gone


def _is_empty(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


def _modes(handle: int) -> Modes | None:
    try:
        return termios.tcgetattr(handle) if handle >= 0 else None
    except termios.error:
        return None
