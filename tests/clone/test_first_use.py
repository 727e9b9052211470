"""`./agent-sandbox` in a fresh clone: what it installs, what it runs, and what cannot make it run something else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_sandbox import __version__
from tests.clone.conftest import Person, mounted_root
from tests.machines.needs import need, need_root

VERSION = f"agent-sandbox {__version__}\n"
CODE = ("src/agent_sandbox/x", "launcher/x", "config/x", "chaperon/x", "admin/x", "bootstrap/x", "agent-sandbox")
CHANGED = (
    "agent-sandbox: this clone changed since it was installed; running the installed copy. "
    "`make install` takes the change over.\n"
)
SHOW_ARGUMENTS = """
import os, sys

def main():
    print(sys.argv[1:], sys.flags.isolated, sys.flags.no_site, os.getcwd())
    print(*sorted(f"{name}={value}" for name, value in os.environ.items() if "planted" in name), end="")
    return 7
"""


def installed(person: Person) -> list[str]:
    return sorted(path.name for path in person.data.glob("versions/*"))


def tree(top: Path) -> dict[str, tuple[str, int, int]]:
    """Every path below with what would show a change: type and mode, size, time of modification."""
    found = {}
    for path in sorted(top.rglob("*")):
        status = path.lstat()
        found[str(path.relative_to(top))] = (oct(status.st_mode), status.st_size, status.st_mtime_ns)
    return found


def run_installed(person: Person, clone: Path) -> None:
    done = person.run(clone / "agent-sandbox", "--version")
    assert (done.returncode, done.stdout) == (0, VERSION), done.stderr


@pytest.mark.clone
def test_first_use_installs_a_copy_and_later_uses_change_nothing(person: Person, clone: Path) -> None:
    before = tree(clone)
    first = person.run(clone / "agent-sandbox", "--version")
    [key] = installed(person)
    copy = person.user.home / ".local/share/agent-sandbox/versions" / key
    notice = f"agent-sandbox: first use of this clone, installed a copy in {copy}\n"
    assert (first.returncode, first.stdout, first.stderr) == (0, VERSION, notice)

    after_first = tree(person.data)
    second = person.run(clone / "agent-sandbox", "--version")
    assert (second.returncode, second.stdout, second.stderr) == (0, VERSION, "")
    assert tree(person.data) == after_first
    assert tree(clone) == before


def test_the_first_command_runs_in_a_jail_with_the_clone_itself_as_its_project(person: Person, clone: Path) -> None:
    need_root()  # a borrowed home lies in a user namespace, where the system's files seem to belong to nobody
    need("bwrap")
    for path in (clone, *clone.rglob("*")):
        os.chown(path, person.user.uid, person.user.gid, follow_symlinks=False)
    run_installed(person, clone)
    before = tree(person.data)
    script = 'pwd; echo planted >new; touch "$1"/planted "$1"/versions/*/lib/planted; ./agent-sandbox --version; exit 7'
    words = ("bash", "-c", script, "bash", person.user.home / ".local/share/agent-sandbox")
    done = person.run(clone / "agent-sandbox", *words, cwd=clone)
    assert (done.returncode, done.stdout) == (7, f"{clone}\n{VERSION}"), done.stderr
    assert (clone / "new").read_text() == "planted\n"
    assert tree(person.data) == before


@pytest.mark.clone
def test_the_copy_is_whole_readable_for_all_and_writable_for_its_owner_alone(user: Person, clone: Path) -> None:
    run_installed(user, clone)
    [key] = installed(user)
    library = user.data / "versions" / key / "lib/agent_sandbox"
    for folder in ("launcher", "config", "chaperon", "admin"):
        sources = {path.relative_to(clone): path.read_bytes() for path in (clone / folder).rglob("*.py")}
        copies = {path.relative_to(library): path.read_bytes() for path in (library / folder).rglob("*.py")}
        assert copies == sources
    assert not [path for path in library.rglob("*") if path.is_symlink()]
    modes = {oct(path.stat().st_mode & 0o7777) for path in (user.data / "versions").rglob("*")}
    assert modes <= {"0o755", "0o644"}
    assert list(library.glob("launcher/__pycache__/*.pyc"))


@pytest.mark.clone
def test_arguments_directory_status_and_odd_variables_pass_unchanged(user: Person, clone: Path, shared: Path) -> None:
    (clone / "launcher/__main__.py").write_text(SHOW_ARGUMENTS)
    arguments = ["", "a b", "-c", "--", "$HOME`id`", "line\nend\n", "\\", "*"]
    environment = {"BASH_FUNC_planted%%": "() { :; }", "planted.dot": "1", "IFS": "a", "CDPATH": "/usr"}
    for _ in range(2):
        done = user.run(clone / "agent-sandbox", *arguments, cwd=shared, env=environment)
        expected = f"{arguments} 1 1 {shared}\nBASH_FUNC_planted%%=() {{ :; }} planted.dot=1"
        assert (done.returncode, done.stdout) == (7, expected)


def test_twenty_first_uses_at_once_all_succeed_and_install_once(person: Person, clone: Path) -> None:
    with ThreadPoolExecutor(20) as pool:
        done = list(pool.map(lambda _: person.run(clone / "agent-sandbox", "--version"), range(20)))
    assert {(one.returncode, one.stdout) for one in done} == {(0, VERSION)}
    assert len([one for one in done if one.stderr]) == 1
    assert len(installed(person)) == 1


def test_first_uses_that_cannot_lock_all_succeed(user: Person, clone: Path) -> None:
    installer = clone / "bootstrap/install.py"
    installer.write_text(installer.read_text().replace("fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH"))
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda _: user.run(clone / "agent-sandbox", "--version"), range(8)))
    assert {(one.returncode, one.stdout) for one in done} == {(0, VERSION)}
    assert len(installed(user)) == 1


@pytest.mark.clone
@pytest.mark.parametrize("name", CODE)
def test_a_changed_clone_runs_the_installed_copy_and_says_so(user: Person, clone: Path, name: str) -> None:
    run_installed(user, clone)
    with open(clone / name, "a") as changed:
        changed.write("\n")
    os.utime(clone / name, (1, 1))  # as rsync and tar set it
    done = user.run(clone / "agent-sandbox", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, VERSION, CHANGED)
    closed = user.run("/bin/bash", "-c", 'exec "$@" 2>&-', "bash", clone / "agent-sandbox", "--version")
    assert (closed.returncode, closed.stdout) == (0, VERSION)
    assert len(installed(user)) == 1


def test_make_install_takes_a_change_over(person: Person, clone: Path) -> None:
    run_installed(person, clone)
    package = clone / "src/agent_sandbox/__init__.py"
    package.write_text(package.read_text().replace(__version__, "9.9.9"))
    assert person.run(clone / "agent-sandbox", "--version").stdout == VERSION

    done = person.run(need("make"), "-C", clone, "install")
    assert done.returncode == 0, done.stderr
    command = person.user.home / ".local/bin/agent-sandbox"
    for started in (clone / "agent-sandbox", command):
        done = person.run(started, "--version")
        assert (done.returncode, done.stdout, done.stderr) == (0, "agent-sandbox 9.9.9\n", "")


def test_make_install_leaves_a_command_of_another_origin_alone(user: Person, clone: Path) -> None:
    command = user.home / ".local/bin/agent-sandbox"
    assert user.run("/bin/sh", "-c", 'mkdir -p "${1%/*}" && echo other >"$1"', "sh", command).returncode == 0
    done = user.run(need("make"), "-C", clone, "install")
    assert done.returncode == 0
    assert "left" in done.stderr
    assert command.read_text() == "other\n"


def test_bytecode_in_the_clone_is_no_change(user: Person, clone: Path) -> None:
    run_installed(user, clone)
    shutil.rmtree(clone / "launcher/__pycache__", ignore_errors=True)
    (clone / "launcher/__pycache__").mkdir()
    (clone / "launcher/__pycache__/cli.cpython-311.pyc").write_bytes(b"")
    assert user.run(clone / "agent-sandbox", "--version").stderr == ""


@pytest.mark.clone
def test_every_way_to_name_the_clone_leads_to_the_same_copy(
    user: Person, shared: Path, make_clone: Callable[[str], Path]
) -> None:
    clone = make_clone("line\nend – a clone\n")
    run_installed(user, clone)
    (shared / "by name").symlink_to(clone / "agent-sandbox")
    (shared / "relative").symlink_to(os.path.relpath(clone / "agent-sandbox", shared))
    (shared / "folder").symlink_to(clone)
    (clone / "launcher/planted.py").write_text("")  # taken over only by a way that does not find the copy
    ways: list[tuple[list[str | Path], Path]] = [
        (["./agent-sandbox"], clone),
        (["../agent-sandbox"], clone / "launcher"),
        ([shared / "by name"], shared),
        (["./relative"], shared),
        ([shared / "folder/agent-sandbox"], shared),
        ([f"/{clone}//agent-sandbox"], shared),
        (["/usr/bin/env", f"PATH={clone}:/usr/bin:/bin", "agent-sandbox"], shared),
        ([need("dash"), clone / "agent-sandbox"], shared),
        ([need("busybox"), "sh", "agent-sandbox"], clone),
    ]
    for way, cwd in ways:
        done = user.run(*way, "--version", cwd=cwd, env={"CDPATH": "/usr"})
        assert (done.returncode, done.stdout, done.stderr) == (0, VERSION, CHANGED), way
    assert len(installed(user)) == 1


@pytest.mark.clone
def test_no_variable_and_no_file_in_the_directory_chooses_what_runs(person: Person, clone: Path, shared: Path) -> None:
    planted = shared / "planted"
    planted.mkdir(mode=0o777)
    planted.chmod(0o777)
    trace = f"open({str(planted / 'trace')!r}, 'a').write(__name__)\n"
    for module in ("ctypes", "sitecustomize", "usercustomize", "os", "bootstrap", "agent_sandbox"):
        (planted / f"{module}.py").write_text(trace)
    for program in ("python3", "find", "getent", "id", "readlink", "cut", "printf"):
        (planted / program).write_text(f"#!/bin/sh\necho {program} >>'{planted}/trace'\n")
        (planted / program).chmod(0o755)
    (planted / "rc").write_text(f"echo rc >>'{planted}/trace'\n")
    body = f"() {{ echo function >>'{planted}/trace'; }}"
    directories = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "PYTHONPATH", "PYTHONHOME", "CDPATH")
    environment = {
        **dict.fromkeys(directories, str(planted)),
        **dict.fromkeys(("ENV", "BASH_ENV", "PYTHONSTARTUP"), str(planted / "rc")),
        **dict.fromkeys((f"BASH_FUNC_{name}%%" for name in ("cd", "read", "exec", "fail", "find_copy", "test")), body),
        "PATH": f"{planted}:/usr/bin:/bin",
        "SHELLOPTS": "xtrace",
        "USER": "root",
    }
    control = person.run(need("python3"), "-c", "", cwd=planted, env={"PYTHONPATH": str(planted)})
    assert control.returncode == 0
    assert "sitecustomize" in (planted / "trace").read_text()
    (planted / "trace").unlink()

    (planted / "link").symlink_to(clone / "agent-sandbox")
    before = tree(planted)
    for started in (clone / "agent-sandbox", clone / "agent-sandbox", planted / "link"):
        done = person.run(started, "--version", cwd=planted, env=environment)
        assert (done.returncode, done.stdout) == (0, VERSION), done.stderr
    assert tree(planted) == before
    assert len(installed(person)) == 1


def test_a_home_that_cannot_be_written_is_named(user: Person, clone: Path) -> None:
    user.home.chmod(0o555)
    if os.geteuid() == 0:
        os.chown(user.home, 0, 0)
    done = user.run(clone / "agent-sandbox", "--version")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == (
        f"agent-sandbox: cannot install: {user.user.home}/.local: Permission denied\n"
        "  The copy that runs goes to ~/.local/share/agent-sandbox.\n"
    )


def test_a_full_disk_is_named(superuser: Person, clone: Path, shared: Path) -> None:
    full = mounted_root(shared, "-t tmpfs -o size=64k tmpfs")
    done = full.run(clone / "agent-sandbox", "--version")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("agent-sandbox: cannot install: ")
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_copy_whose_python_is_gone_is_made_again_unless_the_clone_changed(user: Person, clone: Path) -> None:
    run_installed(user, clone)
    [record] = user.data.rglob(".installed")
    copy, _ = record.read_text().splitlines()
    date = record.stat().st_mtime_ns
    broken = f"{copy}\n/nowhere/python3\n"

    record.write_text(broken)
    os.utime(record, ns=(date, date))
    run_installed(user, clone)
    assert record.read_text() != broken

    record.write_text(broken)
    os.utime(record, ns=(date, date))
    (clone / "launcher/planted.py").write_text("")
    done = user.run(clone / "agent-sandbox", "--version")
    assert (done.returncode, done.stdout) == (125, "")
    assert "`make install`" in done.stderr
    assert record.read_text() == broken


def hide_pythons(cover: Path) -> list[str]:
    """The command that runs another with every Python of the system covered by `cover`."""
    real = {str(path.resolve()) for path in Path("/usr/bin").glob("python3*") if "config" not in path.name}
    return [need("bwrap"), "--dev-bind", "/", "/", *(word for path in real for word in ("--ro-bind", str(cover), path))]


def test_no_python_at_all_is_said_with_what_to_install(user: Person, clone: Path, shared: Path) -> None:
    (shared / "nothing").write_text("")
    done = user.run(*hide_pythons(shared / "nothing"), clone / "agent-sandbox", "--version")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("agent-sandbox: needs Python 3.11 or newer")
    assert "apt install python3" in done.stderr
    assert "dnf install python3.11" in done.stderr
    assert not user.data.exists()


def test_an_old_python_is_named_with_its_version(user: Person, clone: Path, shared: Path) -> None:
    shutil.copy("/usr/bin/python3", shared / "real")
    old = f'#!/bin/sh\nexec {shared}/real -I -S -c "import sys; sys.version_info = (3, 9, 2)\n$4"\n'
    (shared / "old").write_text(old)
    (shared / "old").chmod(0o755)
    done = user.run(*hide_pythons(shared / "old"), clone / "agent-sandbox", "--version")
    assert done.returncode == 125
    assert "Found: /usr/bin/python3 (3.9)" in done.stderr


def test_a_shim_on_path_leads_to_the_binary_behind_it(user: Person, clone: Path, shared: Path) -> None:
    (shared / "nothing").write_text("")
    shutil.copy("/usr/bin/python3", shared / "python3.real")
    (shared / "python3").write_text(f'#!/bin/sh\nexec "{shared}/python3.real" "$@"\n')
    (shared / "python3").chmod(0o755)
    hidden = hide_pythons(shared / "nothing")
    for _ in range(2):
        done = user.run(*hidden, clone / "agent-sandbox", "--version", env={"PATH": f"{shared}:/usr/bin:/bin"})
        assert (done.returncode, done.stdout) == (0, VERSION), done.stderr
    [record] = user.data.rglob(".installed")
    assert record.read_text().splitlines()[1] == f"{shared}/python3.real"


def test_inside_a_jail_the_copy_that_made_it_answers_and_nothing_is_installed(
    user: Person, clone: Path, shared: Path
) -> None:
    (shared / "run/agent-sandbox/bin").mkdir(parents=True)
    (shared / "run/agent-sandbox/summary.json").write_text("{}")
    inside = shared / "run/agent-sandbox/bin/agent-sandbox"
    inside.write_text('#!/bin/sh\necho inside "$@"\n')
    inside.chmod(0o755)
    jail = [need("bwrap"), "--dev-bind", "/", "/", "--bind", str(shared / "run"), "/run"]
    done = user.run(*jail, clone / "agent-sandbox", "a", "b")
    assert (done.returncode, done.stdout, done.stderr) == (0, "inside a b\n", "")
    assert not user.data.exists()


def test_what_is_not_a_clone_is_named(user: Person, clone: Path) -> None:
    shutil.rmtree(clone / "bootstrap")
    done = user.run(clone / "agent-sandbox")
    assert (done.returncode, done.stderr) == (125, f"agent-sandbox: {clone} is not a clone of agent-sandbox.\n")
