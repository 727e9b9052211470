"""Runs every act that it is given, all at once, and prints as JSON how each ended. Runs in the jail and, as the control, outside it.

    python3 -I acts.py '[{"name": …, "argv": […], "env": {…}, "patience": seconds}, …]'
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def start(argv: list[str], env: dict[str, str]) -> subprocess.Popen[str] | str:
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    try:
        return subprocess.Popen(argv, env={**os.environ, **env}, stdin=null, stdout=pipe, stderr=pipe, text=True)
    except OSError as error:
        return str(error)


def end(process: subprocess.Popen[str] | str, deadline: float) -> tuple[bool, str]:
    """Did it work, and what was said. sacct ends with 0 whatever happened, so an error that is said counts too."""
    if isinstance(process, str):
        return False, process
    try:
        out, err = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return process.returncode == 0 and not err, (out + err)[-300:]


if __name__ == "__main__":
    begun = time.monotonic()
    acts = json.loads(sys.argv[1])
    started = [start(act["argv"], act["env"]) for act in acts]
    ended = [end(process, begun + act["patience"]) for process, act in zip(started, acts, strict=True)]
    print(json.dumps({act["name"]: how for act, how in zip(acts, ended, strict=True)}))
