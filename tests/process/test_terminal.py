"""The terminal itself passes through: full screens, sizes, other terminals around it, and none at all."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.jail import Jail
from tests.machines.needs import need
from tests.process.shell import Shell, shell, until


@pytest.fixture
def outer(jail: Jail) -> Iterator[Shell]:
    with shell(jail) as opened:
        yield opened


def test_a_full_screen_editor_draws_takes_keys_and_writes(outer: Shell, jail: Jail) -> None:
    need("vim.tiny")
    outer.type("a vim.tiny -u NONE -i NONE -n note")
    assert until(lambda: '"note" [New' in "\n".join(outer.rows()))
    outer.child.send("ione\rtwo\x1b")
    assert until(lambda: outer.rows()[:3] == ["one", "two", "~"])
    outer.child.send(":wq\r")
    outer.prompt()
    assert (outer.code, (jail.project / "note").read_text()) == (0, "one\ntwo\n")


def test_a_new_window_size_reaches_the_command(outer: Shell) -> None:
    # With a trap for Ctrl-C too: else bash goes on where the key meets a `sleep` that has just ended by itself, without a jail as well.
    outer.type("""a bash -c 'trap "stty size" WINCH; trap "exit 130" INT; stty size; echo running; while :; do sleep 0.05; done'""")
    outer.see("24 80\r\nrunning\r\n")
    outer.resize(40, 132)
    outer.see("40 132\r\n")
    outer.key("c")
    outer.prompt()


def test_a_new_window_size_reaches_a_shell_inside_and_its_programs(outer: Shell) -> None:
    outer.type("a bash --norc --noprofile --noediting -i")
    outer.see(r"bash-.*\$ ")
    outer.resize(50, 100)
    outer.type("stty size")
    outer.see("50 100\r\n")
    outer.type("exit")
    outer.prompt()


def test_a_program_killed_in_raw_mode_leaves_a_usable_terminal(outer: Shell) -> None:
    outer.type("a sh -c 'stty raw -echo; kill -KILL $$'")
    outer.prompt()
    assert outer.code == 137
    assert outer.run("echo usable") == "echo usable\nusable\n"


def test_a_process_left_in_the_background_by_a_shell_inside_is_gone_with_it(outer: Shell, jail: Jail) -> None:
    outer.type("a bash --norc --noprofile --noediting -i")
    outer.see(r"bash-.*\$ ")
    outer.type("(setsid sleep 4321 &) ; exit")
    outer.prompt()
    assert not re.search("sleep 4321", jail.outside("ps", "-eo", "args").out)


def test_closing_the_terminal_ends_the_jail(jail: Jail) -> None:
    with shell(jail) as outer:
        outer.type("a sleep 4322")
        assert until(lambda: is_running("sleep 4322"))
    assert until(lambda: not is_running("sleep 4322"))


def test_nohup_survives_the_terminal_and_keeps_hangups_ignored_inside(jail: Jail) -> None:
    out = jail.project / "out"
    with shell(jail) as outer:
        outer.run(f"nohup {jail.program} --quiet -- sh -c 'grep SigIgn /proc/self/status; echo running; sleep 1; echo survived' >out 2>&1 &")
        assert until(lambda: out.exists() and "running" in out.read_text())
    assert until(lambda: "survived" in out.read_text())
    ignored = int(out.read_text().partition("SigIgn:")[2].split()[0], 16)
    assert ignored & 1


def test_it_runs_inside_tmux(jail: Jail) -> None:
    tmux = [need("tmux"), "-S", str(jail.user.home / "tmux.sock"), "-f", "/dev/null"]
    inside = f"'{jail.program}' --quiet -- sh -c 'echo size; stty size; read line; echo got $line' >out 2>&1; echo code=$? >>out; stty size >>out"

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        return users.run_as(jail.user, [*tmux, *words], cwd=jail.project, env={"TERM": "linux"})

    assert ask("new-session", "-d", "-x", "90", "-y", "30", inside).returncode == 0
    try:
        out = jail.project / "out"
        assert until(lambda: out.exists() and "size" in out.read_text())
        ask("send-keys", "hello", "Enter")
        assert until(lambda: "code=" in out.read_text())
        assert until(lambda: len(out.read_text().splitlines()) == 5)
        lines = out.read_text().splitlines()
        assert (lines[2:4], lines[1]) == (["got hello", "code=0"], lines[4])
    finally:
        ask("kill-server")


def test_it_runs_without_a_terminal(jail: Jail) -> None:
    done = jail.run("sh", "-c", "tty; echo out; exit 4")
    assert (done.code, done.out.splitlines()[-1]) == (4, "out")


def test_a_session_without_a_shell_around_it_ignores_ctrl_z_as_any_command_does(jail: Jail) -> None:
    """As `ssh -t host COMMAND` starts it: nobody is there to continue what stops."""
    with shell(jail, str(jail.program), "--quiet", "--", "cat", wait_for_prompt=False) as outer:
        outer.type("one")
        outer.see("one\r\none\r\n")
        outer.key("z")
        outer.type("two")
        outer.see("two\r\ntwo\r\n")
        outer.key("d")
        outer.child.wait()
        assert outer.child.exitstatus == 0


def is_running(command: str) -> bool:
    wanted = command.replace(" ", "\0").encode() + b"\0"
    return any(_command_line(pid) == wanted for pid in users.processes() if users.state(pid) != "Z")


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
