"""Run outside and in a jail alike: what Slurm's commands cost, in milliseconds, as JSON. Needs nothing but Python."""

import json
import os
import statistics
import sys
import time

ROUNDS, MANY = int(sys.argv[1]), int(sys.argv[2])
ENDS = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
SBATCH = ["sbatch", "--hold", "job.sh"]


def start(argv):
    return os.posix_spawnp(argv[0], argv, os.environ, file_actions=ENDS)


def finish(pid):
    if os.waitpid(pid, 0)[1]:
        raise SystemExit("a measured command failed")


def once(argv):
    begin = time.perf_counter()
    finish(start(argv))
    return (time.perf_counter() - begin) * 1e3


def together(argv, number):
    begin = time.perf_counter()
    for pid in [start(argv) for _ in range(number)]:
        finish(pid)
    return (time.perf_counter() - begin) * 1e3


def main():
    once(SBATCH)
    found = {
        "sbatch": statistics.median(once(SBATCH) for _ in range(ROUNDS)),
        "squeue": statistics.median(once(["squeue", "--me"]) for _ in range(ROUNDS)),
        "20 sbatch at once": statistics.median(together(SBATCH, 20) for _ in range(3)),
    }
    if MANY:
        row = [once(SBATCH) for _ in range(MANY)]
        tenth = MANY // 10
        found |= {f"sbatch, the first {tenth} of {MANY}": statistics.median(row[:tenth]), "sbatch, the last": statistics.median(row[-tenth:])}
    once(["scancel", "--me", "--quiet"])
    print(json.dumps(found))


main()
