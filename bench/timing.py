"""Run commands in turn, round by round, so that a noisy moment falls on all of them; medians of wall and CPU time."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Run = Callable[[], int]  # starts a process and returns its pid


def spawn(argv: Sequence[str]) -> Run:
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
    return lambda: os.posix_spawn(argv[0], argv, os.environ, file_actions=quiet)


def once(start: Run) -> tuple[float, float]:
    """Milliseconds of wall and CPU time (with all that it waited for)."""
    begin = time.perf_counter()
    _, status, usage = os.wait4(start(), 0)
    wall = time.perf_counter() - begin
    if status:
        raise RuntimeError(f"a measured command failed with status {status}")
    return wall * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3


def in_turn(commands: Mapping[str, Run], rounds: int) -> dict[str, tuple[float, float]]:
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for index in range(rounds + 2):
        for name, start in commands.items():
            measured = once(start)
            if index >= 2:  # the first rounds fill the caches
                seen[name].append(measured)
    return {name: (statistics.median(w for w, _ in runs), statistics.median(c for _, c in runs)) for name, runs in seen.items()}
