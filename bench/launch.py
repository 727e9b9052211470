"""What a launch costs over bare bwrap with the same mounts, in units of starting Python; and where the time goes."""

from __future__ import annotations

import json

from bench.place import make_place, measure_there


def main(argv: list[str]) -> int:
    rounds = int(argv[argv.index("--rounds") + 1]) if "--rounds" in argv else 40
    if "--backend" in argv:
        from bench.backends import main as compare

        return compare(rounds)
    with make_place() as jail:
        found = measure_there(jail, str(rounds))
    return show(json.loads(found))


def show(found: dict[str, dict[str, list[float]]]) -> int:
    times = {name: tuple(pair) for name, pair in found["times"].items()}
    unit, bare, ours = times["python3 -I -S -c pass"], times["bwrap, same mounts"], times["agent-sandbox -- true"]
    print(f"{'command':28} {'wall ms':>8} {'CPU ms':>8} {'× python':>9}")
    for name, (wall, cpu) in times.items():
        print(f"{name:28} {wall:8.1f} {cpu:8.1f} {wall / unit[0]:9.2f}")
    over = (ours[0] - bare[0]) / unit[0]
    print(f"\nover bare bwrap: {ours[0] - bare[0]:.1f} ms = {over:.2f} × python3 -I -S -c pass   (limit 5, goal 3)")
    print("\nwhere the time goes, ms:")
    for name, milliseconds in found["phases"].items():
        print(f"  {name:34} {milliseconds:6.2f}")
    print("\ndearest imports, ms (-X importtime, self):")
    for name, milliseconds in found["imports"].items():
        print(f"  {name:34} {milliseconds:6.2f}")
    return 0
