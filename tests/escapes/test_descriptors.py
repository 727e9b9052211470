"""Open files reach around every mount: none but the three standard ones come along, and those lead nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.escapes.backends import only
from tests.machines import users
from tests.machines.jail import Jail

LIST = "ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> /\\1 /p'"


def run(jail: Jail, line: str, *options: str | Path) -> users.subprocess.CompletedProcess[str]:
    """A line of bash outside, in which $JAIL starts the jail."""
    words = " ".join(f"'{word}'" for word in (jail.program, "--quiet", *options, "--"))
    return users.run_as(jail.user, ["bash", "-c", line.replace("$JAIL", words)], cwd=jail.project)


def test_an_inherited_directory_leads_nowhere(jail: Jail, secret: Path) -> None:
    ways = "/proc/self/fd/3/id_ed25519 /proc/self/fd/7 /proc/self/fd/33/../.ssh/id_ed25519"
    line = f"exec 3<{secret.parent} 7<{secret} 33<{secret.parent}; START sh -c 'cat {ways} <&-; echo ran'"
    assert run(jail, line.replace("START", "")).stdout == "hunter2\nhunter2\nhunter2\nran\n"
    assert run(jail, line.replace("START", "$JAIL")).stdout == "ran\n"


@pytest.mark.parametrize("number", [3, 9, 10, 11, 12, 13, 20, 255])
def test_no_descriptor_but_the_standard_ones_comes_along(jail: Jail, number: int) -> None:
    """Also not on the numbers that the launcher uses itself."""
    open_it = f"exec {number}</etc/hostname; START {LIST}"
    assert f"{number} /etc/hostname" in run(jail, open_it.replace("START", "")).stdout
    inside = run(jail, open_it.replace("START", "$JAIL sh -c").replace(LIST, f'"{LIST}"'))
    shown = {int(entry.split()[0]): entry.split()[1] for entry in inside.stdout.splitlines()}
    assert inside.returncode == 0 and set(shown) <= {0, 1, 2, 3}
    assert shown.get(3, "/proc/").startswith("/proc/")  # of `ls` itself


@only("bwrap")
def test_the_jails_first_process_holds_no_file_of_the_hosts(jail: Jail) -> None:
    inside = jail.run("sh", "-c", LIST.replace("self", "1"))
    shown = dict(line.split(" ", 1) for line in inside.out.splitlines())
    assert {number: target for number, target in shown.items() if int(number) > 2 and "eventfd" not in target} == {}
    assert jail.run("readlink", "/proc/1/cwd", "/proc/1/root").out == f"{jail.project}\n/\n"


@only("landlock")
def test_the_files_of_the_supervisor_are_out_of_reach(jail: Jail) -> None:
    """It is the parent of the command, and not confined to the jail's files."""
    look = "p=$PPID; cat /proc/$p/fdinfo/0 /proc/$p/environ /proc/$p/maps; readlink /proc/$p/cwd /proc/$p/fd/*; ls /proc/$p/root/; echo ran"
    own = jail.run("sh", "-c", look.replace("$PPID", "$$"))
    assert all(word in own.out for word in ("pos:", "HOME=", "/bin/", f"{jail.project}\n", "/dev/null\n"))  # control: its own can be seen
    assert jail.run("sh", "-c", look).out == "ran\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_with_closed_standard_files_nothing_of_the_hosts_takes_their_place(jail: Jail, closed: str) -> None:
    """bwrap opens the host's /proc first: on number 0 if that is free, and keeps it in the jail's first process."""
    look = f"for p in self 1; do ls -l /proc/$p/fd; ls -d /proc/$p/fd/*/{os.getpid()}; done"
    script = f"({look}) > seen 2>/dev/null; echo ran >> seen"
    run(jail, f"$JAIL sh -c '{script}' {closed}")
    seen = (jail.project / "seen").read_text()
    assert "ran" in seen
    assert f"/{os.getpid()}" not in seen  # a process outside, listed by the host's /proc
    assert [line for line in seen.splitlines() if line.endswith("-> /proc")] == []


def test_with_closed_standard_files_our_own_files_do_not_take_their_place(jail: Jail, home: Path) -> None:
    """What the command writes to its closed output must not end in the audit log, nor may our words."""
    result = run(jail, "$JAIL sh -c 'echo into-stdout; echo into-stderr >&2; touch ran' >&- 2>&-")
    assert (jail.project / "ran").exists() and result.returncode == 0
    for path in (home / ".local/state/agent-sandbox").rglob("*.jsonl"):
        assert all(line.startswith("{") for line in path.read_text().splitlines())


@pytest.mark.parametrize("number", [0, 2])
def test_a_directory_as_standard_file_is_refused_or_leads_nowhere(jail: Jail, secret: Path, number: int) -> None:
    line = f"START sh -c 'cat /proc/$$/fd/{number}/id_ed25519 > got; :' {number}< {secret.parent}"
    run(jail, line.replace("START", ""))
    assert (jail.project / "got").read_text() == "hunter2\n"
    (jail.project / "got").unlink()
    run(jail, line.replace("START", "$JAIL"))
    assert not (jail.project / "got").exists() or (jail.project / "got").read_text() == ""
