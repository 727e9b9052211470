"""What a jail costs the work in it: the same commands outside and inside, in pairs, by the CPU time of the work alone."""

from __future__ import annotations

import shutil
import statistics
import sys
import zipfile
from pathlib import Path

from bench.place import make_place
from tests.machines.jail import Jail

# Run outside and inside alike: does the work and prints its CPU seconds, children included.
CLOCK = """
import os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
sys.exit(done.returncode)
"""
FILES, FUNCTIONS = 2000, 1500


def main(argv: list[str]) -> int:
    rounds = int(argv[argv.index("--rounds") + 1]) if "--rounds" in argv else 15
    with make_place() as jail:
        works = prepare(jail)
        print(f"{'work':14} {'outside s':>10} {'inside s':>10} {'inside/outside':>15}   (median of paired ratios, {rounds} pairs)")
        for name, command in works.items():
            pairs = [pair(jail, command, first_inside=index % 2 == 1) for index in range(rounds + 1)][1:]
            outside, inside = (statistics.median(one) for one in zip(*pairs, strict=True))
            ratio = statistics.median(i / o for o, i in pairs)
            print(f"{name:14} {outside:10.3f} {inside:10.3f} {ratio:15.3f}", flush=True)
    return 0


def prepare(jail: Jail) -> dict[str, list[str]]:
    """A repository, a wheel and a source file, all in the project."""
    for index in range(FILES):
        jail.write(jail.project / f"d{index % 40}" / f"f{index}.txt", f"{index}\n" * 20)
    jail.outside("git", "add", ".")
    source = "".join(f"int f{i}(int x) {{ int s = 0; for (int i = 0; i < x; i++) s += i * {i}; return s; }}\n" for i in range(FUNCTIONS))
    jail.write(jail.project / "many.c", source)
    wheel = make_wheel(jail.project / "many-1.0-py3-none-any.whl")
    jail.outside("/usr/bin/python3", "-m", "venv", "venv")
    return {
        "git status": ["sh", "-c", "for i in $(seq 60); do git status --porcelain; done"],
        "compile": ["gcc", "-O2", "-c", "many.c", "-o", "many.o"],
        "pip install": ["venv/bin/pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall", str(wheel)],
    }


def make_wheel(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for index in range(400):
            wheel.writestr(f"many/m{index}.py", f"def f(x):\n    return x + {index}\n" * 10)
        wheel.writestr("many-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: many\nVersion: 1.0\n")
        wheel.writestr("many-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("many-1.0.dist-info/RECORD", "")
    path.chmod(0o644)
    return path


def pair(jail: Jail, command: list[str], *, first_inside: bool) -> tuple[float, float]:
    runs = [jail.outside, jail.run]
    seconds = {}
    for run in reversed(runs) if first_inside else runs:
        done = run("/usr/bin/python3", "-I", "-S", "-c", CLOCK, *command)
        if done.code:
            sys.exit(f"{' '.join(command)} failed: {done.err}")
        seconds[run.__name__] = float(done.out)
    shutil.rmtree(jail.project / "__pycache__", ignore_errors=True)
    return seconds["outside"], seconds["run"]
