"""Slurm's programs and settings are looked for along the caller's variables: what an agent can change there is never run or read outside."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines.jail import Jail
from tests.slurm.conftest import Site

BACKENDS = ("bwrap", "landlock", "firejail")
ASK = ("sh", "-c", "squeue -h; sbatch --version")


@pytest.fixture
def ran(site: Site) -> Iterator[Path]:
    """A file outside that every planted program writes to."""
    path = site.jail.write(site.jail.user.home / "outside" / "ran")
    path.unlink()
    yield path
    shutil.rmtree(path.parent)


def plant(jail: Jail, place: Path, ran: Path, *names: str) -> None:
    for name in names:
        jail.write(place / name, f'#!/bin/bash -p\necho {name} >> {shlex.quote(str(ran))}\nexec /usr/bin/{name} "$@"\n', 0o755)


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
@pytest.mark.parametrize("linked", ["the program", "the directory", "nothing"])
def test_no_directory_of_the_project_on_path_holds_the_programs_that_run_outside(site: Site, ran: Path, backend: str, linked: str) -> None:
    """Also not one in which sbatch is a link to the real one, and squeue, beside it, is not."""
    jail = site.jail
    place, other = jail.project / ".venv/bin", jail.project / "other"
    plant(jail, other, ran, "squeue", "scontrol", *(["sbatch"] if linked == "nothing" else []))
    if linked != "nothing":
        (other / "sbatch").symlink_to("/usr/bin/sbatch")
    jail.write(place.parent / "x").unlink()
    place.symlink_to(other) if linked == "the directory" else other.rename(place)
    jail.configure('[slurm]\nenabled = "on"\n')
    env = {"PATH": f"{place}:/usr/bin:/bin"}
    inside = site.inside(*ASK, options=(), env=env)
    assert inside.code == 0 and inside.out.startswith("slurm"), inside  # the real ones answer
    assert not ran.exists(), ran.read_text()
    site.outside(*ASK, env=env)
    assert "squeue" in ran.read_text()  # the control: outside it is what PATH finds


@pytest.mark.parametrize("home", ["restricted", "tmpwrite", "read", "write"])
def test_nor_does_one_of_the_users_where_another_agent_may_have_been(site: Site, ran: Path, home: str) -> None:
    other = site.jail.user.home / "elsewhere/bin"
    plant(site.jail, other, ran, "sbatch", "squeue")
    site.jail.configure(f'[slurm]\nenabled = "on"\n[filesystem]\nhome = "{home}"\n')
    inside = site.inside(*ASK, options=("--backend", "bwrap"), env={"PATH": f"{other}:/usr/bin:/bin"})
    assert inside.code == 0 and inside.out.startswith("slurm"), inside
    assert not ran.exists()


def test_settings_that_an_agent_can_change_are_not_given_to_slurm(site: Site) -> None:
    conf = site.jail.write(site.jail.project / "slurm.conf", "PluginDir=/nowhere\n")
    site.jail.configure('[slurm]\nenabled = "on"\n')
    (link := site.jail.project / "link").symlink_to("/etc/slurm/slurm.conf")
    for path in (conf, link):
        for command in ((site.jail.program, "--", *ASK), (site.jail.program, "explain", "sbatch", "--wrap=true")):
            done = site.outside(*command, env={"SLURM_CONF": str(path)})
            assert done.code and "SLURM_CONF names a file that an agent could change" in done.err, done
    assert site.inside(*ASK, options=(), env={"SLURM_CONF": "/etc/slurm/slurm.conf"}).code == 0


@pytest.mark.parametrize("planted", ["sbatch", "squeue", "bin", "module"])
def test_a_link_to_itself_on_path_keeps_no_session_from_starting(site: Site, planted: str) -> None:
    place, modules = site.jail.project / "bin", site.jail.project / "modules"
    site.jail.write((modules if planted == "module" else place) / "x").unlink()
    if planted == "bin":
        place.rmdir()
    if planted == "squeue":
        site.jail.write(place / "sbatch", "#!/bin/sh\n", 0o755)
    text = f'prepend_path("PATH", "{modules}/loop")\n'
    if planted == "module":
        site.jail.write(modules / "slurm/1.lua", text)
        (modules / "loop").symlink_to("loop")
    else:
        link = place if planted == "bin" else place / planted
        link.symlink_to(link.name)
    site.jail.configure('[slurm]\nenabled = "on"\n')
    inside = site.inside("sbatch", "--version", options=(), env={"PATH": f"{place}:/usr/bin:/bin", "MODULEPATH": str(modules)})
    assert inside.code == 0 and inside.out.startswith("slurm"), inside


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_links_in_the_project_name_no_program_that_is_covered(site: Site, backend: str) -> None:
    """Else whoever leaves a link named srun there takes Python, or the shell, away from the next session."""
    site.jail.write(site.jail.project / "bin/x").unlink()
    for name, target in {"sbatch": "/usr/bin/sbatch", "srun": "/usr/bin/python3", "squeue": "/bin/sh"}.items():
        (site.jail.project / "bin" / name).symlink_to(target)
    site.jail.configure('[slurm]\nenabled = "on"\n')
    inside = site.inside("sh", "-c", "/usr/bin/python3 -c 'print(7)'", options=(), env={"PATH": f"{site.jail.project}/bin:/usr/bin:/bin"})
    assert (inside.code, inside.out) == (0, "7\n"), inside
