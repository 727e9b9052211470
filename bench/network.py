"""`python -m bench network`: the web through a session's proxy beside the same without it, and beside tinyproxy.

The generators (traffic.c) do nothing but move bytes, and compete with the proxy for the same cores: what is measured is the most that a
proxy can cost. Rounds are short and interleaved, and each is compared with the direct one beside it: a noisy moment falls on both.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable

from bench.place import HERE, make_place
from bench.ways import Way, close, open_ways, resident
from tests.machines.jail import Jail

MB = 1_000_000
STREAM, MANY, SMALL, IDLE = 300 * MB, 5 * MB, 2000, 1000
# What is shown, the line for the generator, the goal for ours over direct, and whether tinyproxy can do it (it keeps no plain connection).
WORKS = (
    ("one stream, MB/s", f"stream 1 {STREAM}", "≥ 0.75", True),
    ("64 streams, MB/s", f"stream 64 {MANY}", "≥ 0.75", True),
    ("small requests/s, one after the other", f"ask 1 {SMALL}", "≥ 0.4", True),
    ("small requests/s, 16 connections", f"ask 16 {4 * SMALL}", "≥ 0.4", True),
    ("the same, plain http://", f"plain 1 {SMALL}", "", False),
)
CONNECT = "connect 1 100"


def main(argv: list[str]) -> int:
    rounds = int(argv[argv.index("--rounds") + 1]) if "--rounds" in argv else 25
    with make_place() as jail:
        ways = open_ways(jail)
        try:
            show_ratios(ways, rounds)
            show_connections(ways, rounds)
            show_memory(ways)
        finally:
            close(ways)
        show_launches(jail, rounds)
    return 0


def show_ratios(ways: dict[str, Way], rounds: int) -> None:
    others = list(ways)[1:]
    print(f"{'':38}" + "".join(f"{name:>11}" for name in ways) + "".join(f"{name + '/direct':>18}" for name in others) + "   goal     processor")
    for shown, line, goal, by_all in WORKS:
        seen, spent = in_turn({name: way for name, way in ways.items() if by_all or name != "tinyproxy"}, line, rounds)
        unit = MB if "MB/s" in shown else 1
        rates = "".join(f"{statistics.median(seen[name]) / unit:11,.0f}" if name in seen else f"{'–':>11}" for name in ways)
        ratios = "".join(f"{over_direct(seen, name):18.2f}" if name in seen else f"{'–':>18}" for name in others)
        processor = ", ".join(f"{name} × {spent[name] / spent['direct']:.1f}" for name in others if name in spent)
        print(f"{shown:38}{rates}{ratios}   {goal:8} {processor}", flush=True)


def in_turn(ways: dict[str, Way], line: str, rounds: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """What each said in each round, and the time of the processor that all its rounds took. The first round fills caches and starts
    what is started by the first connection."""
    runs = [{name: way.measure(line) for name, way in ways.items()} for _ in range(rounds + 1)][1:]
    return {name: [run[name][0] for run in runs] for name in ways}, {name: sum(run[name][1] for run in runs) for name in ways}


def over_direct(seen: dict[str, list[float]], name: str, compare: Callable[[float, float], float] = lambda a, b: a / b) -> float:
    """The median of the comparisons, each within its round."""
    return statistics.median(compare(ours, direct) for ours, direct in zip(seen[name], seen["direct"], strict=True))


def show_connections(ways: dict[str, Way], rounds: int) -> None:
    seen, _ = in_turn(ways, CONNECT, rounds)
    print(f"\na new connection and its first answer: direct {statistics.median(seen['direct']) / 1e3:.2f} ms")
    for name in list(ways)[1:]:
        print(f"  {name:12} + {over_direct(seen, name, lambda a, b: a - b) / 1e3:.2f} ms" + ("   (limit 1.5)" if name == "proxied" else ""))


def show_memory(ways: dict[str, Way]) -> None:
    print(f"\n{IDLE} idle tunnels, memory of the proxy:")
    for name in list(ways)[1:]:
        way = ways[name]
        assert way.server
        before = resident(way.server())
        held = way.ask(f"hold 1 {IDLE}")
        after = resident(way.server())
        print(f"  {name:12} {before / MB:.1f} → {after / MB:.1f} MB, {held:.0f} open" + ("   (limit 60)" if name == "proxied" else ""))
        way.ask(CONNECT)


def show_launches(jail: Jail, rounds: int) -> None:
    script = (HERE / "network_launches.py").read_text()
    done = jail.outside("/usr/bin/python3", "-I", "-c", script, str(jail.program), str(rounds))
    if done.code:
        raise RuntimeError(done.err)
    found = json.loads(done.out)
    print("\na launch of `true`, ms: " + ", ".join(f"{mode} {wall:.1f}" for mode, wall in found["modes"].items()))
    print(f"  proxied over open, in each round: + {found['added']:.1f} ms   (limit 15)")
