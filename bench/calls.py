"""Run outside and in a jail alike: what single calls cost, in microseconds, as JSON. Needs nothing but Python."""

import json
import os
import socket
import statistics
import tempfile
import time

ROUNDS, CALLS = 7, 400


def measure(act):
    """The median over the rounds of the mean of one call."""
    runs = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            act()
        runs.append((time.perf_counter() - begin) / CALLS * 1e6)
    return statistics.median(runs)


def main():
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as listener:
        file, name = f"{place}/file", f"{place}/socket"
        open(file, "w").close()
        listener.bind(name)
        listener.listen(ROUNDS * CALLS + 1)

        def reach():
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(name)
                listener.accept()[0].close()

        found = {
            "open and close": measure(lambda: os.close(os.open(file, os.O_RDONLY))),
            "stat": measure(lambda: os.stat(file)),
            "connect and accept": measure(reach),
            "chmod": measure(lambda: os.chmod(file, 0o600)),
            "utime": measure(lambda: os.utime(file)),
        }
    print(json.dumps(found))


main()
