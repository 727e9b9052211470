"""`agent-sandbox --bot clio …`: the whole jail runs as the bot, under the person's settings and the admin's."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from tests.machines.needs import need
from tests.machines.site import CLONE, LAUNCHER, Machine, machine

BACKENDS = ("bwrap", "landlock")
PROJECT = "/home/alice/work"
ADMIN = "/app/lib/agent-sandbox"
SECRETS = f"""
chmod 700 . && mkdir -m 700 .ssh .aws && echo hunter2 | tee .ssh/id_ed25519 .aws/credentials .netrc >/dev/null && chmod 644 .netrc
mkdir {PROJECT} && echo mine >{PROJECT}/hers
"""


def prepare(one: Machine) -> Machine:
    """alice's home is hers alone; the project below it is shared, which lets bots pass through to names that they know, such as .netrc."""
    one.shell(SECRETS, user="alice", cwd="/home/alice")
    one.must("share", "-r", PROJECT)
    return one


@pytest.fixture
def shared(bots: Machine) -> Machine:
    return prepare(bots)




def inside(one: Machine, *command: str, options: tuple[str, ...] = (), **more: object) -> subprocess.CompletedProcess[str]:
    given = {"user": "alice", "cwd": PROJECT, **more}
    return one.run(LAUNCHER, "--bot", "clio", "--quiet", *options, "--", *command, **given)  # type: ignore[arg-type]


def test_firejail_says_why_it_cannot_be_a_bots(local: Path) -> None:
    """It mounts a throw-away home only over a directory of the user's own, and a bot's namespace is its owner's."""
    need("firejail")
    with machine(local, own_processes=False) as one:
        one.add_person("alice")
        one.must("init")
        one.must("create", "clio")
        prepare(one)
        done = inside(one, "true", options=("--backend", "firejail"))
        assert (done.returncode, "/var/bot/clio, which belongs to another user" in done.stderr) == (125, True), done.stderr
        own = one.run(LAUNCHER, "--quiet", "--backend", "firejail", "--", "id", "-un", user="alice", cwd=PROJECT)
        assert own.stdout == "alice\n", own.stderr


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def processes_of(uid: int) -> list[int]:
    """That live: a zombie is over."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            status = Path(f"/proc/{name}/status").read_text()
        except OSError:
            continue
        if re.search(rf"^Uid:\t{uid}\t", status, re.MULTILINE) and not re.search(r"^State:\tZ", status, re.MULTILINE):
            found.append(int(name))
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_jail_runs_as_the_bot_and_what_it_makes_is_the_persons_too(shared: Machine, backend: str) -> None:
    script = "id -un; cat hers; umask; echo more >>hers; echo new >made; mkdir -p deep/er; echo new >deep/er/made; exit 7"
    done = inside(shared, "bash", "-c", script, options=("--backend", backend))
    assert (done.returncode, done.stdout) == (7, "clio\nmine\n0007\n"), done.stderr
    seen = shared.shell("cat hers made deep/er/made; echo changed >>made; rm deep/er/made; stat -c '%U %G' made", user="alice", cwd=PROJECT)
    assert seen == "mine\nmore\nnew\nnew\nclio bot\n"


def test_variables_pass_the_persons_filter_and_files_of_the_bot_decide_nothing(shared: Machine) -> None:
    shared.shell("mkdir -p ~/.config/agent-sandbox && echo 'environment.block = [\"BLOCKED\"]' >~/.config/agent-sandbox/config.toml", user="alice")
    shared.shell(
        "mkdir -p /var/bot/clio/.config/agent-sandbox && echo 'filesystem.home = \"write\"' >/var/bot/clio/.config/agent-sandbox/config.toml && "
        "chown -R clio /var/bot/clio/.config"
    )
    env = {"MY_TOKEN": "hunter2", "BLOCKED": "hunter2", "HARMLESS": "seen", "HOME": "/nonexistent", "PYTHONPATH": PROJECT, "LD_PRELOAD": "/x.so"}
    done = inside(shared, "bash", "-c", "env; touch ~/mark; ls -A ~", env=env)
    assert "HARMLESS=seen\n" in done.stdout and "HOME=/var/bot/clio\n" in done.stdout and "USER=clio\n" in done.stdout, done.stderr
    assert "hunter2" not in done.stdout
    assert "mark" in done.stdout and not (shared.root / "var/bot/clio/mark").exists()  # a throw-away home, as the person's settings have it


def test_no_variable_is_on_a_command_line_or_in_a_file(shared: Machine) -> None:
    session = shared.start(LAUNCHER, "--bot", "clio", "--quiet", "--set-env", "PASSES=hunter2", "--", "sleep", "60", user="alice", cwd=PROJECT)
    wait_for(lambda: "sleep" in lines_of(shared.uid("clio")), "a session")
    shown = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes_of(shared.uid("clio")))
    assert b"agent-sandbox-bot" in shown and b"hunter2" not in shown
    session.terminate()
    session.wait(20)


def lines_of(uid: int) -> set[str]:
    found = set()
    for pid in processes_of(uid):
        try:
            found.add(Path(f"/proc/{pid}/comm").read_text().strip())
        except OSError:
            pass
    return found


def test_an_admin_can_name_a_bot_and_is_asked_on_both_sides(shared: Machine) -> None:
    shared.shell(f"mkdir -p {ADMIN} && printf 'filesystem.home = \"restricted\"\\n[match]\\nbot = [\"clio\"]\\n' >{ADMIN}/config.toml")
    try:
        assert inside(shared, "bash", "-c", "touch ~/mark").returncode == 1
        plain = shared.run(LAUNCHER, "--quiet", "--", "bash", "-c", "touch ~/mark", user="alice", cwd=PROJECT)
        assert plain.returncode == 0, plain.stderr
        forged = '{"command":["bash","-c","touch ~/mark || echo clamped"]'
        assert "clamped" in hand_over(shared, forged), "the bot's side believes nobody"
    finally:
        shared.shell(f"rm -r {ADMIN}")


def test_the_file_for_bots_of_the_page_for_sites_counts_for_bots_alone(shared: Machine) -> None:
    page = (CLONE / "docs/site-network.md").read_text()
    text = page.split("conf.d/60-bots.toml\n")[1].split("```")[0]
    shared.shell(f"mkdir -p {ADMIN}/conf.d && cat >{ADMIN}/conf.d/60-bots.toml <<'END'\n{text}END\n")
    try:
        asked = ("agent-sandbox", "explain", "network.mode")
        assert inside(shared, *asked).stdout.startswith("network.mode: isolated\n")
        assert shared.run(LAUNCHER, "--quiet", "--", *asked, user="alice", cwd=PROJECT).stdout.startswith("network.mode: filtered\n")
    finally:
        shared.shell(f"rm -r {ADMIN}")


FORGER = r"""
import json, os, socket, subprocess, sys
listener = socket.socket(socket.AF_UNIX)
name = f"forged-{os.getpid()}"; listener.bind("\0" + name); listener.listen()
entry = os.path.realpath("/usr/local/bin/agent-sandbox").rpartition("/")[0] + "/agent-sandbox-bot"
words = ["/usr/bin/sudo", "-n", "-u", "clio", "--", entry, "session", name]
child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
end, _ = listener.accept()
here = os.getcwd()
handed = {"asked": here, "project": here, "cwd": here, "shell": "/bin/bash", "environment": {"PATH": "/usr/bin:/bin"},
          "settings": {"filesystem.home": "write", "sandbox.quiet": True}, **json.loads(sys.argv[1])}
content = json.dumps(handed).encode()
try:
    end.sendall(len(content).to_bytes(8, "big") + content)
except OSError:
    pass
print(child.communicate(timeout=50)[0])
"""


def hand_over(one: Machine, handed: str) -> str:
    """What a person could send who writes the other end themselves."""
    done = one.run("/usr/bin/python3", "-c", FORGER, handed + "}", user="alice", cwd=PROJECT)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "handed",
    ['{"command": "bash"', '{"command": ["a\\u0000b"]', '{"command": [], "more": 1', '{"command": [], "settings": {"no.such": 1}',
     '{"command": [], "project": "relative"', '{"command": [], "environment": {"A=B": "c"}', '{"command": [], "project": "/etc"'],
)  # fmt: skip
def test_what_is_handed_over_is_read_strictly(shared: Machine, handed: str) -> None:
    said = hand_over(shared, handed)
    assert "agent-sandbox: " in said and "Traceback" not in said, said


def test_nobody_else_can_say_what_a_bot_runs(shared: Machine) -> None:
    """mallory listens where the owner would; and connects to where the owner listens."""
    shared.add_person("mallory")
    listener = "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0theirs-NUMBER'); s.listen(); print(flush=True); time.sleep(30)"
    name = f"theirs-{os.getpid()}"
    theirs = shared.start("/usr/bin/python3", "-c", listener.replace("theirs-NUMBER", name), user="mallory")
    assert theirs.stdout and theirs.stdout.readline() == "\n"
    entry = shared.shell("dirname $(realpath /usr/local/bin/agent-sandbox)").strip() + "/agent-sandbox-bot"
    done = shared.run("/usr/bin/sudo", "-n", "-u", "clio", "--", entry, "session", name, user="alice", cwd=PROJECT)
    theirs.kill()
    assert (done.returncode, "said by alice alone" in done.stderr) == (125, True), done.stderr
    refused = shared.run(LAUNCHER, "--bot", "clio", "--", "true", user="mallory", cwd="/tmp")
    assert (refused.returncode, "alice's bot" in refused.stderr) == (125, True), refused.stderr


def test_a_project_that_is_not_shared_is_refused_with_the_way_forward(shared: Machine) -> None:
    shared.shell("mkdir private", user="alice", cwd="/home/alice")
    done = inside(shared, "true", cwd="/home/alice/private")
    assert (done.returncode, "sudo botadm share -r /home/alice/private" in done.stderr) == (125, True), done.stderr


def test_an_unknown_and_a_disabled_bot_are_named(shared: Machine) -> None:
    unknown = shared.run(LAUNCHER, "--bot", "nobody-s", "--", "true", user="alice", cwd=PROJECT)
    assert (unknown.returncode, "there is no bot" in unknown.stderr) == (125, True), unknown.stderr
    shared.must("disable", "clio")
    disabled = inside(shared, "true")
    assert (disabled.returncode, "clio is disabled" in disabled.stderr) == (125, True), disabled.stderr


def test_a_group_that_was_joined_after_the_log_in_is_named(shared: Machine) -> None:
    old = ["/usr/bin/setpriv", "--reuid", "alice", "--regid", "alice", "--clear-groups", "--", LAUNCHER]
    done = shared.run(*old, "--bot", "clio", "--quiet", "--", "true", cwd=PROJECT)
    assert (done.returncode, "log in again" in done.stderr) == (0, True), done.stderr
    assert "log in again" not in inside(shared, "true").stderr


def test_the_start_line_and_both_logs_name_the_bot(shared: Machine) -> None:
    done = shared.run(LAUNCHER, "--bot", "clio", "--", "true", user="alice", cwd=PROJECT)
    assert " · bot clio · project /home/alice/work · " in done.stderr
    hers, its = (
        [json.loads(line) for line in shared.shell(f"cat {home}/.local/state/agent-sandbox/audit/*").splitlines()]
        for home in ("/home/alice", "/var/bot/clio")
    )
    assert [(one["user"], one["bot"]) for one in hers if one["event"] == "bot"] == [("alice", "clio")]
    assert [(one["user"], one["asked_by"]) for one in its if one["event"] == "start"] == [("clio", "alice")]


def test_dry_run_shows_the_switch_and_starts_nothing(shared: Machine) -> None:
    done = inside(shared, "true", options=("--dry-run",))
    assert done.returncode == 0 and done.stdout.startswith("/usr/bin/sudo -n -u clio -- /usr/local/lib/agent-sandbox/"), done
    assert processes_of(shared.uid("clio")) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_the_persons_process_reaches_the_command(shared: Machine, number: signal.Signals) -> None:
    script = "trap 'echo heard; exit 9' TERM USR1; echo ready; while :; do sleep 0.1; done"
    session = shared.start(LAUNCHER, "--bot", "clio", "--quiet", "--", "bash", "-c", script, user="alice", cwd=PROJECT)
    assert session.stdout and session.stdout.readline() == "ready\n"
    os.kill(launcher_of(shared), number)
    assert (session.wait(20), session.stdout.read()) == (9, "heard\n")
    wait_for(lambda: processes_of(shared.uid("clio")) == [], "the end of everything")


def test_a_person_who_is_killed_leaves_nothing_of_the_session(shared: Machine) -> None:
    session = shared.start(LAUNCHER, "--bot", "clio", "--quiet", "--", "bash", "-c", "echo ready; setsid sleep 100", user="alice", cwd=PROJECT)
    assert session.stdout and session.stdout.readline() == "ready\n"
    os.kill(launcher_of(shared), signal.SIGKILL)
    wait_for(lambda: processes_of(shared.uid("clio")) == [], "the end of everything")
    wait_for(lambda: not [*(shared.root / "tmp").glob("agent-sandbox-*/*")], "an empty runtime directory")


def launcher_of(one: Machine) -> int:
    """The person's own process of ours."""
    words = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes_of(one.uid("alice"))}
    return next(pid for pid, line in words.items() if b"--bot\0clio" in line)


def test_a_terminal_works_with_ctrl_c_ctrl_z_and_exit_codes(shared: Machine) -> None:
    words = shared.words(["/bin/bash", "--norc", "--noediting", "-i"], user="alice", cwd=PROJECT, env={"PS1": "> "})
    shell = pexpect.spawn(words[0], words[1:], timeout=20, encoding="utf-8", echo=False)
    shell.expect_exact("> ")
    shell.sendline(f"{LAUNCHER} --bot clio --quiet -- bash -c 'tty; stty size; echo ready; sleep 50'; echo code=$?")
    shell.expect("/dev/.*24 80.*ready")
    shell.sendcontrol("z")
    shell.expect("Stopped")
    shell.sendline("fg")
    shell.expect("--bot clio")
    time.sleep(0.5)
    shell.sendcontrol("c")
    shell.expect_exact("> ")
    shell.sendline(f"{LAUNCHER} --bot clio --quiet -- bash -c 'read -p name: x; echo hello $x; exit 3'; echo code=$?")
    shell.expect_exact("name:")
    shell.sendline("alice")
    shell.expect_exact("hello alice")
    shell.expect_exact("code=3")
    shell.sendline("exit")
    shell.expect(pexpect.EOF)
    shell.close()


THIEF = """
import os, socket, sys, time
seen = {line.split()[-1] for line in open("/proc/net/unix")}
print("ready", flush=True)
until = time.monotonic() + 20
while time.monotonic() < until:
    for line in open("/proc/net/unix"):
        name = line.split()[-1]
        if name.startswith("@agent-sandbox-") and name not in seen:
            seen.add(name)
            for _ in range(3):
                end = socket.socket(socket.AF_UNIX)
                end.settimeout(5)
                try:
                    end.connect(chr(0) + name[1:])
                    print("got", len(end.recv(100)), flush=True)
                except OSError:  # a session of another test's that is over
                    pass
"""


def test_another_process_of_the_bot_is_not_told_what_a_session_is_about(shared: Machine) -> None:
    """It could be in a jail of the same bot for another project, and what is handed over holds variables for this one."""
    thief = shared.start("/usr/bin/python3", "-c", THIEF, user="clio")
    assert thief.stdout and thief.stdout.readline() == "ready\n"
    try:
        done = inside(shared, "sh", "-c", "echo $OWN", env={"OWN": "of this session"})
    finally:
        thief.kill()
    assert (done.returncode, done.stdout) == (0, "of this session\n"), done.stderr
    got = thief.stdout.read().splitlines()
    assert (set(got), len(got) >= 3, thief.stderr and thief.stderr.read()) == ({"got 0"}, True, "")


def test_a_session_starts_where_proc_hides_other_users_processes(shared: Machine) -> None:
    shared.shell("mount -o remount,hidepid=2 /proc")
    assert shared.run("/bin/sh", "-c", "test -e /proc/1", user="alice").returncode == 1  # control: root's is hidden
    done = inside(shared, "id", "-un")
    assert (done.returncode, done.stdout) == (0, "clio\n"), done.stderr


def test_a_caller_that_ignores_the_end_of_children_gets_the_exit_status(shared: Machine) -> None:
    """As some daemons and job runners do: ignored it stays through exec, and nobody would ever tell of sudo's end."""
    words = ("/usr/bin/timeout", "--kill-after=1", "20", "/usr/bin/env", "--ignore-signal=CHLD", LAUNCHER, "--bot", "clio", "--quiet")
    done = shared.run(*words, "--", "sh", "-c", "id -un; exit 5", user="alice", cwd=PROJECT)
    assert (done.returncode, done.stdout) == (5, "clio\n"), done.stderr


def test_no_process_to_be_had_is_said_in_words(shared: Machine) -> None:
    words = ("/usr/bin/prlimit", "--nproc=1:1", LAUNCHER, "--bot", "clio", "--quiet", "--", "true")
    done = shared.run(*words, user="alice", cwd=PROJECT)
    assert (done.returncode, "no process can be started" in done.stderr, "Traceback" in done.stderr) == (125, True, False), done.stderr
