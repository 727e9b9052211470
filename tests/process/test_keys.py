"""Ctrl-C, Ctrl-\\ and Ctrl-Z do what they do without a jail: typed at a real terminal, to an interactive shell."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.machines.jail import Jail
from tests.machines.needs import need
from tests.process.shell import Shell, alive, shell, until


@pytest.fixture
def outer(jail: Jail) -> Iterator[Shell]:
    with shell(jail) as opened:
        yield opened


def settle() -> None:
    """A shell that is just about to start a program may lose a key, without a jail too."""
    time.sleep(0.2)


def test_ctrl_c_interrupts_the_command(outer: Shell) -> None:
    outer.type("a sh -c 'echo running; sleep 100'")
    outer.see("running\r\n")
    settle()
    outer.key("c")
    outer.prompt()
    assert outer.code == 130


def test_ctrl_c_ends_a_loop_around_the_jail(outer: Shell) -> None:
    outer.type("for i in 1 2 3; do a sh -c 'echo turn $0; sleep 100' $i; done")
    outer.see("turn 1\r\n")
    settle()
    outer.key("c")
    assert "turn 2" not in outer.prompt()
    assert outer.code == 130


def test_ctrl_c_runs_the_commands_own_trap_and_its_exit_code_counts(outer: Shell) -> None:
    outer.type("""a bash -c 'trap "echo trapped; exit 7" INT; echo running; while :; do sleep 0.1; done'""")
    outer.see("running\r\n")
    outer.key("c")
    assert "trapped" in outer.prompt()
    assert outer.code == 7


def test_ctrl_c_reaches_the_command_once(outer: Shell) -> None:
    outer.type("""a bash -c 'n=0; trap "n=\\$((n+1))" INT; sleep 1.2; echo running; sleep 1; sleep 0.3; echo count=$n'""")
    outer.see("running\r\n")
    outer.key("c")
    assert "count=1" in outer.prompt()


def test_an_interpreter_survives_ctrl_c(outer: Shell) -> None:
    outer.type("a /usr/bin/python3 -q")
    outer.see(">>> ")
    settle()
    outer.key("c")
    outer.see("KeyboardInterrupt")
    outer.see(">>> ")
    outer.type("print(6 * 7)")
    outer.see("42")
    outer.type("exit(5)")
    outer.prompt()
    assert outer.code == 5


def test_ctrl_c_while_the_jail_is_being_built_ends_it_without_a_traceback(outer: Shell, jail: Jail) -> None:
    for milliseconds in (10, 15, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 40, 50):
        outer.type("a sleep 100")
        outer.see("a sleep 100\r\n")
        time.sleep(milliseconds / 1000)
        outer.key("c")
        written = outer.prompt()
        in_pythons_own_start = "KeyboardInterrupt" in written and "agent_sandbox" not in written  # before a line of ours runs
        assert (outer.code == 130 or in_pythons_own_start) and "launch.py" not in written, (milliseconds, written)


def test_ctrl_backslash_ends_the_command(outer: Shell) -> None:
    outer.type("ulimit -c 0; a sh -c 'echo running; sleep 100'")
    outer.see("running\r\n")
    settle()
    outer.key("\\")
    outer.prompt()
    assert outer.code == 131


def test_ctrl_z_stops_and_fg_goes_on(outer: Shell) -> None:
    outer.type("a cat")
    outer.type("one")
    outer.see("one\r\none\r\n")
    outer.key("z")
    assert "Stopped" in outer.prompt()
    assert outer.code == 148
    assert outer.run("echo usable") == "echo usable\nusable\n"
    outer.type("fg")
    outer.see("-- cat\r\n")
    outer.type("two")
    outer.see("two\r\ntwo\r\n")
    outer.key("d")
    outer.prompt()
    assert outer.code == 0


def test_a_stopped_job_goes_on_in_the_background_and_leaves_the_terminal_alone(outer: Shell, jail: Jail) -> None:
    outer.type("a sh -c 'echo running; sleep 1; echo finished'")
    outer.see("running\r\n")
    settle()
    outer.key("z")
    outer.prompt()
    outer.run("bg")
    outer.see("finished")
    assert until(lambda: not [one for one in alive(jail.user.uid) if "bin/agent-sandbox" in one[1]])
    assert os.tcgetpgrp(outer.child.child_fd) == outer.child.pid  # before the shell has had a reason to take it
    outer.run("wait")
    assert outer.run("jobs") == "jobs\n"
    assert outer.run("stty -a >/dev/null; echo usable") == "stty -a >/dev/null; echo usable\nusable\n"
    assert outer.code == 0


def test_a_background_command_that_reads_the_terminal_stops_until_fg(outer: Shell) -> None:
    outer.run("a cat &")
    assert until(lambda: "Stopped" in outer.run("jobs"), 5)
    outer.type("fg")
    outer.see("-- cat\r\n")
    outer.type("hello")
    outer.see("hello\r\nhello\r\n")
    outer.key("d")
    outer.prompt()
    assert outer.code == 0


def test_a_command_that_stops_itself_gives_the_shell_back(outer: Shell) -> None:
    outer.type("a sh -c 'echo before; kill -STOP $$; echo after'")
    outer.see("before\r\n")
    assert "Stopped" in outer.prompt()
    outer.type("fg")
    outer.see("after")
    outer.prompt()
    assert outer.code == 0


def test_a_stopped_job_that_is_killed_ends(outer: Shell, jail: Jail) -> None:
    outer.type("a cat")
    outer.type("x")
    outer.see("x\r\nx\r\n")
    outer.key("z")
    outer.prompt()
    outer.run("kill %1")
    assert "143" in outer.run("wait %1; echo $?") or outer.code == 0
    assert until(lambda: not [one for one in alive(jail.user.uid) if "bwrap" in one[1]])


def test_a_shell_inside_has_job_control_of_its_own(outer: Shell) -> None:
    outer.type("a bash --norc --noprofile --noediting -i")
    outer.see(r"bash-.*\$ ")
    outer.type("sleep 100")
    settle()
    outer.key("z")
    outer.see("Stopped")
    outer.see(r"bash-.*\$ ")
    outer.type("fg")
    outer.see("sleep 100")
    settle()
    outer.key("c")
    outer.see(r"bash-.*\$ ")
    outer.type("echo inner=$?")
    outer.see("inner=130")
    outer.type("exit 9")
    outer.prompt()
    assert outer.code == 9
    assert outer.run("echo usable") == "echo usable\nusable\n"
    outer.type("cat")
    outer.type("read from the terminal")
    outer.see("read from the terminal\r\nread from the terminal\r\n")
    outer.key("d")
    outer.prompt()


def test_a_script_reads_the_terminal_after_a_shell_inside(jail: Jail) -> None:
    script = jail.write(
        jail.project / "outer.sh", f"{jail.program} --quiet -- bash --norc --noprofile --noediting -i\nread line\necho \"got $line\"\nexit 3\n"
    )
    with shell(jail, "/bin/sh", str(script), wait_for_prompt=False) as outer:
        outer.see(r"bash-.*\$ ")
        outer.type("exit")
        outer.type("hello")
        outer.see("got hello")
        outer.child.wait()
        assert outer.child.exitstatus == 3


def test_a_full_screen_program_is_suspended_and_resumed(outer: Shell, jail: Jail) -> None:
    need("vim.tiny")
    outer.type("a vim.tiny -u NONE -i NONE -n note")
    assert until(lambda: '"note" [New' in "\n".join(outer.rows()))
    outer.child.send("ihello\x1b")
    outer.key("z")
    outer.see("Stopped")
    outer.prompt()
    assert outer.run("echo usable").endswith("usable\n")
    outer.type("fg")
    assert until(lambda: "hello" in outer.rows()[0])
    outer.child.send(":wq\r")
    outer.prompt()
    assert (outer.code, (jail.project / "note").read_text()) == (0, "hello\n")
