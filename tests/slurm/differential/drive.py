"""Runs cases, one after the other, and prints as JSON how each ended. Runs in the jail and, as the control, outside it.

    python3 -I drive.py CASES       [{"directory": …, "words": […], "before": [[…], …], "input": …, "env": {…}, "umask": …}, …]

`before` are submissions; `{0}`, `{1}` in the words of a case stand for the ids that they got.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

PATIENCE = 120


def run(case: dict) -> dict:  # type: ignore[type-arg]
    ids: list[str] = []
    for words in case["before"]:
        code, out, err = call(case, filled(words, ids))
        if code:
            return {"code": code, "out": out, "err": f"before: {err}", "ids": ids}
        ids.append(number_in(out))
        if "touch started" in words[-1]:
            wait_for_file(os.path.join(case["directory"], "started"))
    code, out, err = call(case, filled(case["words"], ids))
    return {"code": code, "out": out, "err": err, "ids": [*ids, number_in(out)] if case["words"][0] == "sbatch" else ids}


def wait_for_file(path: str) -> None:
    """Which a job makes that must run by now."""
    deadline = time.monotonic() + PATIENCE
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.02)


def filled(words: list[str], ids: list[str]) -> list[str]:
    for place, number in enumerate(ids):
        words = [word.replace(f"{{{place}}}", number) for word in words]
    return words


def number_in(out: str) -> str:
    found = re.search(r"[0-9]+", out)
    return found[0] if found else ""


def call(case: dict, words: list[str]) -> tuple[int, str, str]:  # type: ignore[type-arg]
    done = subprocess.run(
        words, cwd=case["directory"], env={**os.environ, **case["env"]}, umask=case["umask"], capture_output=True, timeout=PATIENCE,
        input=case["input"].encode("utf-8", "surrogateescape"),
    )  # fmt: skip
    return done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode("utf-8", "surrogateescape")


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        cases = json.load(file)
    print(json.dumps({"jailed": os.environ.get("AGENT_SANDBOX", ""), "ended": [run(case) for case in cases]}))
