"""Environment modules inside a jail, with the real Lmod."""

from __future__ import annotations

from pathlib import Path

from tests.machines.jail import Jail
from tests.machines.needs import missing

INIT = "/usr/share/lmod/lmod/init/bash"


def test_module_load_works_inside_as_outside(jail: Jail) -> None:
    if not Path(INIT).exists():
        missing("lmod is not installed")
    jail.write(jail.project / "modules" / "solver.lua", 'setenv("SOLVER_ROOT", "/opt/solver")\nprepend_path("PATH", "/opt/solver/bin")\n')
    use = f'. {INIT}; module use "{jail.project}/modules"; '
    work = "'module load solver; echo $SOLVER_ROOT; module list 2>&1 | grep -o solver'"
    assert jail.outside("bash", "-c", f"{use} exec bash -c {work}").out == "/opt/solver\nsolver\n"
    inside = jail.outside("bash", "-c", f'{use} exec "$0" --quiet -- bash -c {work}', jail.program)
    assert (inside.code, inside.out) == (0, "/opt/solver\nsolver\n")
