"""The caller's terminal, given back as it was: a shell inside makes itself the foreground group and cannot name ours to undo it."""

from __future__ import annotations

import os
import signal
import termios


class Terminal:
    def __init__(self) -> None:
        self._handle = next((number for number in (0, 1, 2) if os.isatty(number)), -1)
        self._modes = _modes(self._handle)
        self._was_ours = self._is_ours()

    def _is_ours(self) -> bool:
        try:
            return self._handle >= 0 and os.tcgetpgrp(self._handle) == os.getpgrp()
        except OSError:
            return False

    def take_back(self, *, restore_modes: bool) -> None:
        """Modes too if the command did not end well: it had no chance to put them back."""
        if not self._was_ours:
            return
        try:
            if not self._is_ours():
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
                os.tcsetpgrp(self._handle, os.getpgrp())
            if restore_modes and self._modes is not None:
                termios.tcsetattr(self._handle, termios.TCSADRAIN, self._modes)
        except (OSError, termios.error):
            pass  # the terminal is gone


def _modes(handle: int) -> list[object] | None:
    try:
        return termios.tcgetattr(handle) if handle >= 0 else None
    except termios.error:
        return None
