"""Run as the user: launches in each network mode in turn, wall milliseconds, and what `proxied` adds to `open`, as JSON. Needs only Python."""

import json
import os
import statistics
import sys
import time

PROGRAM, ROUNDS = sys.argv[1], int(sys.argv[2])
MODES = ("open", "isolated", "proxied")
QUIET = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]


def once(mode):
    begin = time.perf_counter()
    argv = [PROGRAM, "--network", mode, "--", "true"]
    status = os.waitpid(os.posix_spawn(PROGRAM, argv, os.environ, file_actions=QUIET), 0)[1]
    if status:
        raise SystemExit(f"a launch with {mode} failed")
    return (time.perf_counter() - begin) * 1e3


runs = [{mode: once(mode) for mode in MODES} for _ in range(ROUNDS + 2)][2:]
found = {mode: statistics.median(run[mode] for run in runs) for mode in MODES}
print(json.dumps({"modes": found, "added": statistics.median(run["proxied"] - run["open"] for run in runs)}))
