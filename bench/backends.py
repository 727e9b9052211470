"""`python -m bench launch --backend all`: a launch with each backend side by side, and what single calls cost in each."""

from __future__ import annotations

import json

from bench.place import HERE, make_place, measure_there
from tests.machines.jail import Jail

BACKENDS = ("bwrap", "firejail", "landlock")


def main(rounds: int) -> int:
    with make_place() as jail:
        show_launches(json.loads(measure_there(jail, str(rounds), "backends"))["times"])
        show_calls(jail)
    return 0


def show_launches(times: dict[str, list[float]]) -> None:
    unit = times["python3 -I -S -c pass"][0]
    print(f"{'command':34} {'wall ms':>8} {'CPU ms':>8} {'× python':>9}")
    for name, (wall, cpu) in times.items():
        print(f"{name:34} {wall:8.1f} {cpu:8.1f} {wall / unit:9.2f}")
    wall = {name: pair[0] for name, pair in times.items()}
    print(f"\nlandlock / bwrap: {wall['agent-sandbox, landlock'] / wall['agent-sandbox, bwrap']:.2f}   (limit 1.3)")
    over = wall["agent-sandbox, firejail"] - wall["firejail, same options"]
    print(f"firejail over bare firejail: {over:.1f} ms = {over / unit:.2f} × python3 -I -S -c pass   (limit 7.5)")


def show_calls(jail: Jail) -> None:
    """The same script outside and in each jail, from the project."""
    script = jail.write(jail.project / "calls.py", (HERE / "calls.py").read_text())
    words = ("/usr/bin/python3", "-I", script)
    found = {"outside": json.loads(jail.outside(*words).out)}
    found |= {name: json.loads(jail.run(*words, options=["--quiet", "--backend", name]).out) for name in BACKENDS}
    print("\nmicroseconds a call" + "".join(f"{name:>11}" for name in found))
    for call in found["outside"]:
        print(f"{call:19}" + "".join(f"{one[call]:11.1f}" for one in found.values()))
