"""Runs every act that it is given, all at once, and prints as JSON how each ended. Runs in the jail and, as the control, outside it.

    python3 -I acts.py < [{"name": …, "argv": […], "env": {…}}, …]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys


def start(argv: list[str], env: dict[str, str]) -> subprocess.Popen[str] | str:
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    try:
        return subprocess.Popen(argv, env={**os.environ, **env}, stdin=null, stdout=pipe, stderr=pipe, text=True)
    except OSError as error:
        return str(error)


def end(process: subprocess.Popen[str] | str) -> tuple[bool, str]:
    """Did it work, and what was said."""
    if isinstance(process, str):
        return False, process
    try:
        out, err = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return process.returncode == 0, (out + err)[-300:]


if __name__ == "__main__":
    started = {act["name"]: start(act["argv"], act["env"]) for act in json.loads(sys.argv[1])}
    print(json.dumps({name: end(process) for name, process in started.items()}))
