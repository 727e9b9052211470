"""`botadm run`: streams, terminal, signals, exit status, directory and variables are the command's; nothing of the caller's goes along."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.machines.site import BOTADM, Machine, machine

SECRETS = {"AWS_SECRET_ACCESS_KEY": "hunter2", "SSH_AUTH_SOCK": "/tmp/agent", "DISPLAY": ":0", "EDITOR": "vi", "LC_ALL": "C", "SUDO_ASKPASS": "/x"}


@pytest.fixture(scope="module")
def both(local: Path) -> Iterator[Machine]:
    """alice with two bots, the second with a strict rule."""
    with machine(local) as site:
        site.add_person("alice")
        site.must("init")
        site.must("create", "clio")
        site.must("create", "dora", "--strict")
        yield site


@pytest.fixture
def bot() -> str:
    return "clio"


def test_a_strict_bot_runs_in_jails_alone(both: Machine) -> None:
    for words in (("run", "dora", "id", "-un"), ("shell", "dora")):
        done = both.run(BOTADM, *words, user="alice")
        assert (done.returncode, "agent-sandbox --bot dora" in done.stderr) == (125, True), done.stderr
    assert both.run(BOTADM, "run", "dora", "id", "-un").stdout == "dora\n"  # root may do everything anyway


def test_only_seven_variables_are_set(both: Machine, bot: str) -> None:
    done = both.run(BOTADM, "run", bot, "/usr/bin/env", "-0", user="alice", env=SECRETS, cwd="/tmp")
    assert dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair) == {
        "HOME": f"/var/bot/{bot}", "USER": bot, "LOGNAME": bot, "PATH": f"/var/bot/{bot}/.local/bin:/usr/local/bin:/usr/bin:/bin", "TERM": "xterm",
        "PWD": "/tmp", "LANG": "C.UTF-8",
    }  # fmt: skip


def test_the_first_process_has_no_other_variables_either(both: Machine, bot: str) -> None:
    done = both.run(BOTADM, "run", bot, "cat", "/proc/self/environ", user="alice", env=SECRETS)
    assert done.returncode == 0 and "hunter2" not in done.stdout and "SUDO" not in done.stdout


@pytest.mark.parametrize(("command", "code"), [(("true",), 0), (("sh", "-c", "exit 42"), 42), (("no-such-program",), 127), (("/etc/passwd",), 126)])
def test_the_exit_status_is_the_commands(both: Machine, bot: str, command: tuple[str, ...], code: int) -> None:
    assert both.run(BOTADM, "run", bot, *command, user="alice").returncode == code


def test_words_reach_the_command_as_they_were_given(both: Machine, bot: str) -> None:
    words = ["a b", "$(id)", "`id`", "*", "'", '"', "\\", "\n", "", "-x", "--", ";id", "é\udcff"]
    script = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    done = both.run(BOTADM, "run", bot, "python3", "-c", script, *words, user="alice")
    assert done.stdout.split("\0") == words


def test_streams_pass_through(both: Machine, bot: str) -> None:
    done = both.run(BOTADM, "run", bot, "sh", "-c", "cat; echo err >&2", user="alice", input="line\n" * 50_000)
    assert (len(done.stdout), done.stderr) == (250_000, "err\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_reaches_the_command(both: Machine, bot: str, number: signal.Signals) -> None:
    """Sent by the caller, who is not root, to the process that they started."""
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 5' {name}; echo up; while :; do sleep 0.05; done"
    with both.start(BOTADM, "run", bot, "bash", "-c", script, user="alice") as process:
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        pid = both.run("/usr/bin/pgrep", "-f", f"sudo -n -u {bot} --").stdout.split()[0]
        assert both.run("/bin/kill", f"-{name}", pid, user="alice").returncode == 0
        assert process.stdout.readline() == f"got {name}\n"
        assert process.wait(10) == 5


def test_a_killed_command_is_told_as_killed(both: Machine, bot: str) -> None:
    assert both.run("/bin/bash", "-c", f"{BOTADM} run {bot} sh -c 'kill -TERM $$'; echo $?", user="alice").stdout == "143\n"


def test_a_terminal_is_one_and_ctrl_c_reaches_the_command(both: Machine, bot: str) -> None:
    script = "trap 'echo interrupted; exit 7' INT; stty size; test -t 0 && test -t 1 && echo terminal; while :; do sleep 0.05; done"
    words = both.words([BOTADM, "run", bot, "bash", "-c", script], user="alice")
    child = pexpect.spawn(words[0], words[1:], encoding="utf-8", timeout=20, dimensions=(33, 99))
    child.expect("33 99")
    child.expect("terminal")
    child.sendintr()
    child.expect("interrupted")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 7


def test_a_stopped_command_goes_on(both: Machine, bot: str) -> None:
    words = both.words(["/bin/bash", "--norc", "-i"], user="alice")
    child = pexpect.spawn(words[0], words[1:], encoding="utf-8", timeout=20)
    script = "import time; print('be' + 'gin', flush=True); time.sleep(1); print('fin' + 'ish')"  # a shell that forks just then may not stop
    child.sendline(f'PS1=\'ready$ \'; {BOTADM} run {bot} python3 -c "{script}"')
    child.expect("begin")
    child.sendcontrol("z")
    child.expect("Stopped")
    child.sendline("echo st''ill $(jobs | wc -l)")
    child.expect("still 1")
    child.sendline("fg")
    child.expect("finish")
    child.sendline("exit")
    child.expect(pexpect.EOF)


def test_the_directory_stays_if_the_bot_may_enter_it(both: Machine, bot: str) -> None:
    assert both.run(BOTADM, "run", bot, "pwd", user="alice", cwd="/usr/share").stdout == "/usr/share\n"
    done = both.run(BOTADM, "run", bot, "pwd", user="alice", cwd="/home/alice")
    assert done.stdout == f"/var/bot/{bot}\n"
    assert done.stderr == f"botadm: {bot} cannot enter /home/alice; starting in /var/bot/{bot}\n"


def test_the_bots_own_variables_are_set_as_they_stand(both: Machine, bot: str) -> None:
    text = "# no\nKEY=$(id) 'x'\n A=1\n1B=2\nC-D=3\nE\n=f\nG=\nLAST=no newline"
    both.run(BOTADM, "run", bot, "sh", "-c", "cat > ~/env", user="alice", input=text)
    done = both.run(BOTADM, "run", bot, "/usr/bin/env", user="alice")
    both.run(BOTADM, "run", bot, "sh", "-c", ": > ~/env", user="alice")
    extra = [line for line in done.stdout.splitlines() if line.split("=")[0] not in ("HOME", "USER", "LOGNAME", "PATH", "TERM", "PWD", "LANG")]
    assert sorted(extra) == ["G=", "KEY=$(id) 'x'", "LAST=no newline"]


def test_a_run_leaves_no_process(both: Machine, bot: str) -> None:
    for _ in range(3):
        both.run(BOTADM, "run", bot, "true", user="alice")
    deadline = time.monotonic() + 10
    while (left := both.run("/bin/ps", "-u", bot, "-o", "stat=,args=").stdout.strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == ""


def test_run_says_what_is_missing(both: Machine) -> None:
    assert "there is no bot «erin»" in both.run(BOTADM, "run", "erin", "id", user="alice").stderr
    assert "run what?" in both.run(BOTADM, "run", "clio", user="alice").stderr
    assert both.run(BOTADM, "run", "clio", "--", "id", "-un", user="alice").stdout == "clio\n"
    assert "absolute path" in both.run(BOTADM, "shell", "clio", "--shell", "zsh", user="alice").stderr


def test_another_shell_can_be_chosen(both: Machine, bot: str) -> None:
    done = both.run(BOTADM, "shell", bot, "--shell", "/bin/sh", user="alice", input="echo $0 $HOME\n")
    assert done.stdout == f"/bin/sh /var/bot/{bot}\n", done.stderr


def test_a_bot_has_a_terminal_of_its_own_whatever_the_sites_sudoers_say(both: Machine, bot: str) -> None:
    """On the person's it could type into the shell that started it (TIOCSTI)."""
    sudoers = both.root / "etc/sudoers"
    sudoers.write_text(sudoers.read_text().replace("use_pty", "!use_pty"))
    try:
        words = both.words(["/bin/sh", "-c", f"tty; {BOTADM} run {bot} tty; echo over"], user="alice", cwd="/tmp")
        shell = pexpect.spawn(words[0], words[1:], timeout=20, encoding="utf-8", echo=False)
        shell.expect_exact("over")
        hers, its = (shell.before or "").split()
        shell.close()
    finally:
        sudoers.write_text(sudoers.read_text().replace("!use_pty", "use_pty"))
    assert hers.startswith("/dev/pts/") and its.startswith("/dev/pts/") and hers != its
