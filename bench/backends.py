"""`python -m bench launch --backend all`: a launch with each backend side by side, and what single calls cost in each."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from bench.place import admin_files, make_place
from tests.machines import users
from tests.machines.jail import Jail

HERE = Path(__file__).resolve().parent
BACKENDS = ("bwrap", "firejail", "landlock")


def main(rounds: int) -> int:
    with make_place() as jail:
        scripts = jail.copy / "bench"
        shutil.copytree(HERE, scripts, ignore=shutil.ignore_patterns("__pycache__"))
        words = ["/usr/bin/python3", "-I", str(scripts / "measure.py"), str(jail.copy), str(rounds), "backends"]
        with jail.argv(admin=admin_files()) as command:
            runner = users.current_user() if admin_files() else jail.user
            done = users.run_as(runner, [*command[:-1], *words], env=jail.user.environment, cwd=jail.project, timeout=900)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        show_launches(json.loads(done.stdout)["times"])
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
