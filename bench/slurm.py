"""`python -m bench slurm`: Slurm's commands through the chaperon beside the same ones without it, on a real Slurm; and what it adds to a launch."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from bench.place import make_place
from tests.machines.slurm.cluster import cluster
from tests.slurm.conftest import Site

HERE = Path(__file__).resolve().parent
LAUNCHES = """
import json, os, statistics, sys, time
quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1, 2)]
def once(switch):
    path = os.path.expanduser("~/.config/agent-sandbox/conf.d/99-slurm.toml")
    open(path, "w").write(f'[slurm]\\nenabled = "{switch}"\\n')
    begin = time.perf_counter()
    status = os.waitpid(os.posix_spawn(sys.argv[1], [sys.argv[1], "--", "true"], os.environ, file_actions=quiet), 0)[1]
    if status: raise SystemExit("a launch failed")
    return (time.perf_counter() - begin) * 1e3
seen = {switch: [] for switch in ("off", "on")}
for _ in range(int(sys.argv[2]) + 2):
    for switch in seen: seen[switch].append(once(switch))
print(json.dumps({switch: statistics.median(runs[2:]) for switch, runs in seen.items()}))
"""


def main(argv: list[str]) -> int:
    rounds = int(argv[argv.index("--rounds") + 1]) if "--rounds" in argv else 25
    with make_place() as jail, cluster() as slurm:
        slurm.allow(jail.user)
        site = Site(slurm=slurm, jail=jail)
        jail.write(jail.project / "job.sh", "#!/bin/sh\ntrue\n")
        script = jail.write(jail.project / "calls.py", (HERE / "slurm_calls.py").read_text())
        jail.configure('[slurm]\nenabled = "on"\n', "conf.d/99-slurm.toml")
        direct = _read(site.outside("/usr/bin/python3", "-I", script, str(rounds), "0"))
        with Memory(jail.user.uid) as memory:
            through = _read(site.inside("/usr/bin/python3", "-I", script, str(rounds), "1000", options=()))
        launches = _read(site.outside("/usr/bin/python3", "-I", "-c", LAUNCHES, str(jail.program), str(rounds)))
    show(direct, through, launches)
    print(f"the chaperon's own memory after {memory.at(0.2)} of the run, after {memory.at(0.9)}")
    return 0


class Memory:
    """Of the chaperon, looked at now and then: kilobytes that it holds for itself."""

    def __init__(self, uid: int) -> None:
        self._uid, self._seen, self._ended = uid, [], threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            for pid in (name for name in os.listdir("/proc") if name.isdecimal()):
                try:
                    if os.readlink(f"/proc/{pid}/fd/3").endswith("/slurm/ask") and os.stat(f"/proc/{pid}").st_uid == self._uid:
                        rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                        self._seen.append(int(next(row for row in rows if row.startswith("Private_Dirty")).split()[1]))
                except (OSError, StopIteration):
                    continue

    def at(self, part: float) -> str:
        return f"{part:.0%}: {self._seen[min(len(self._seen) - 1, int(len(self._seen) * part))]} KiB" if self._seen else "?"


def _read(result) -> dict[str, float]:  # type: ignore[no-untyped-def]
    if result.code:
        raise RuntimeError(result.err)
    found: dict[str, float] = json.loads(result.out)
    return found


def show(direct: dict[str, float], through: dict[str, float], launches: dict[str, float]) -> None:
    limits = {"sbatch": 3, "squeue": 3, "20 sbatch at once": 4}
    print(f"{'command, median ms':34} {'direct':>9} {'chaperon':>9} {'ratio':>7}")
    for name, ours in through.items():
        alone = direct.get(name)
        ratio = f"{alone:9.1f} {ours:9.1f} {ours / alone:7.2f}   (limit {limits[name]})" if alone else f"{'':9} {ours:9.1f}"
        print(f"{name:34} {ratio}")
    more = launches["on"] / launches["off"]
    print(f"\na launch without {launches['off']:.1f} ms, with the chaperon {launches['on']:.1f} ms: {more:.2f}   (limit 1.10)")
