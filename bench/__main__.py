"""`python -m bench launch [--rounds N] [--backend all]`, `python -m bench work`, and so on: which measurement to run."""

from __future__ import annotations

import importlib
import sys

BENCHES = {"launch": "what a launch costs, and where the time goes", "work": "what a jail costs the work in it",
           "slurm": "what the chaperon costs Slurm's commands", "network": "what the proxy costs the web"}  # fmt: skip


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in BENCHES:
        print("usage: python -m bench NAME [--rounds N] [--backend all]\n" + "\n".join(f"  {name:8} {text}" for name, text in BENCHES.items()))
        return 2
    return int(importlib.import_module(f"bench.{argv[0]}").main(argv[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
