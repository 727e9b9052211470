"""Standard input, output and error are the caller's own, whatever they are – also when they are closed."""

from __future__ import annotations

import time

import pytest

from tests.machines.jail import Jail

LOOK = """
import os
found = {n: os.readlink(f"/proc/self/fd/{n}") for n in range(64) if os.path.lexists(f"/proc/self/fd/{n}")}
open("result", "w").write("".join(f"{n} {path}\\n" for n, path in found.items()))
"""


def test_input_reaches_the_command_whole(jail: Jail) -> None:
    text = "".join(f"line {number}\n" for number in range(20000))
    done = jail.run("wc", "-c", input=text)
    assert (done.code, int(done.out)) == (0, len(text))


def test_a_reader_that_ends_early_leaves_the_writer_to_its_broken_pipe(jail: Jail) -> None:
    began = time.monotonic()
    done = jail.outside("bash", "-c", f"yes | '{jail.program}' --quiet -- head -1")
    assert (done.code, done.out, time.monotonic() - began < 10) == (0, "y\n", True)


def test_input_that_was_not_read_is_left_for_the_next(jail: Jail) -> None:
    script = f"'{jail.program}' --quiet -- sh -c 'read line; echo got $line'; read line; echo then $line"
    done = jail.outside("sh", "-c", f"printf 'one\\ntwo\\n' >lines; exec <lines; {script}")
    assert done.out == "got one\nthen two\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_an_empty_one_inside_and_nothing_else_takes_its_place(jail: Jail, closed: str) -> None:
    """Left closed it would be taken by the next file that somebody opens on the way: by one of the host's."""
    done = jail.outside("bash", "-c", f"'{jail.program}' --quiet -- /usr/bin/python3 -c \"$1\" {closed}", "bash", LOOK)
    assert done.code == 0, done.err
    found = dict(line.split(" ", 1) for line in (jail.project / "result").read_text().splitlines())
    was_closed = [number for number, word in {"0": "<&-", "1": ">&-", "2": "2>&-"}.items() if word in closed.split()]
    assert sorted(found) == ["0", "1", "2"]
    assert [found[number] for number in was_closed] == ["/dev/null"] * len(was_closed)


def test_a_refusal_with_a_closed_stderr_still_has_its_code(jail: Jail) -> None:
    done = jail.outside("bash", "-c", f"'{jail.program}' --quiet -- no-such-command 2>&-; echo $?")
    assert done.out == "127\n"


def test_nothing_but_the_three_streams_is_open_inside(jail: Jail) -> None:
    script = f"exec 5</etc/passwd 7>/dev/null 23</etc/group; '{jail.program}' --quiet -- ls /proc/self/fd"
    inside = jail.outside("bash", "-c", script)
    assert inside.out.split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads
    plain = jail.outside("bash", "-c", "exec 5</etc/passwd 7>/dev/null 23</etc/group; ls /proc/self/fd")
    assert "23" in plain.out.split()


def test_the_first_process_of_the_jail_holds_no_pipe_to_the_launcher(jail: Jail) -> None:
    """What could be written to it would be believed: which process to signal, which code to report."""
    inside = jail.run("bash", "-c", 'for f in /proc/1/fd/*; do readlink "$f"; done; echo looked')
    assert inside.out.endswith("looked\n")
    assert "pipe:" not in "".join(jail.run("bash", "-c", "ls -l /proc/1/fd 2>&1 | tail -n +2 | awk '$9 > 2'").out)
