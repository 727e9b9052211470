"""What is special to the firejail backend: how it is started and ended, what it cannot take, and the stage of ours inside it.

What every backend has in common is in the suites beside this one.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machines import users
from tests.machines.copies import PYTHON
from tests.machines.jail import Jail
from tests.machines.needs import need, need_root
from tests.process.shell import alive, until

pytestmark = pytest.mark.parametrize("backend", ["firejail"], indirect=True)

STATUS = "sed -n 's/^\\(NoNewPrivs\\|Seccomp\\|CapEff\\|CapBnd\\):\\t//p' /proc/self/status"
LEFT_BY_FIREJAIL = ("/run/firejail/sandbox", "/run/firejail/profile", "/run/firejail/name")


def test_the_command_has_our_filter_no_new_privileges_and_no_capabilities(jail: Jail) -> None:
    assert jail.outside("sh", "-c", STATUS).out.split()[2:] == ["0", "0"]
    inside = jail.run("sh", "-c", f"{STATUS}; grep -c . /proc/1/cmdline; tr '\\0' ' ' < /proc/1/cmdline")
    assert inside.out.split()[:4] == ["0" * 16, "0" * 16, "1", "2"]
    assert inside.out.split()[5].endswith("/firejail")


def test_a_call_that_only_our_own_filter_refuses_is_refused(jail: Jail) -> None:
    """firejail's own filters are about namespaces."""
    ask = "import ctypes, os; print(ctypes.CDLL(None, use_errno=True).syscall(250, 0, -3, 0, 0, 0), os.strerror(ctypes.get_errno()))"  # keyctl
    assert "not permitted" not in jail.outside(PYTHON, "-I", "-c", ask).out
    assert jail.run(PYTHON, "-I", "-c", ask).out in ("-1 Operation not permitted\n", "-1 Function not implemented\n")


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("kill -INT $$", 130)]
)
def test_the_exit_code_is_the_commands(jail: Jail, script: str, code: int) -> None:
    assert jail.run("sh", "-c", script).code == code


def test_what_the_command_leaves_running_ends_with_it(jail: Jail) -> None:
    began = time.monotonic()
    inside = jail.run("sh", "-c", "(setsid sleep 4342 &); sleep 4343 & echo started; exit 5")
    assert (inside.code, inside.out) == (5, "started\n")
    assert time.monotonic() - began < 10
    assert until(lambda: not [line for _, line in alive(jail.user.uid) if "sleep 434" in line])


def test_a_signal_reaches_the_commands_own_handler(jail: Jail) -> None:
    script = "trap 'echo caught; exit 3' TERM; echo ready; n=0; while [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done"
    with jail.start("sh", "-c", script, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert (process.stdout.readline(), process.wait(10)) == ("caught\n", 3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_to_the_whole_group_does_not_end_firejail(jail: Jail, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo caught' {name}; echo ready; n=0; while [ $n -lt 5 ]; do sleep 0.1; n=$((n+1)); done; echo went on"
    words = [jail.program, "--quiet", "--", "sh", "-c", script]
    with users.start_as(jail.user, words, cwd=jail.project, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        os.killpg(process.pid, number)
        out = process.stdout.read()
        assert out.startswith("caught\n") and out.endswith("went on\n") and process.wait(10) == 0


def test_more_and_longer_words_than_firejail_takes(jail: Jail) -> None:
    many = [str(number) for number in range(300)]
    assert jail.run("echo", *many).out.split() == many
    assert jail.run("sh", "-c", 'echo "${#1}"', "sh", "x" * 100_000).out == "100000\n"


def test_nothing_of_the_view_shows_in_a_process_list(jail: Jail) -> None:
    granted = jail.write(jail.user.home / "granted-4344" / "a").parent
    jail.configure('[filesystem]\nhidden = ["hidden-4345"]\n')
    jail.write(jail.user.home / "hidden-4345" / "a")
    with jail.start("sh", "-c", "echo ready; sleep 60", options=["--quiet", "--home", "read", "--ro", granted], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        shown = [line for pid, line in alive(jail.user.uid) if pid != process.pid]
        process.terminate()
    assert any("firejail" in line for line in shown)
    assert not [line for line in shown if "hidden-4345" in line or ("granted-4344" in line and "bin/agent-sandbox" not in line)]


@pytest.mark.parametrize("name", ["two words", "it's", "$HOME", "a`b", "~", "käse 💥", "a=b:c", "-x", "(a)|b", "a.b@c+d"])
def test_a_path_with_unusual_characters_is_granted_as_it_is(jail: Jail, name: str) -> None:
    granted = jail.write(jail.user.home / "data" / name / "a", "seen\n").parent
    jail.write(jail.user.home / "data" / "other" / "a", "other\n")
    inside = jail.run("sh", "-c", 'cat "$1/a"; ls "$2"; echo x > "$1/a"', "sh", granted, granted.parent, options=["--quiet", "--ro", granted])
    assert (inside.out, "Read-only file system" in inside.err) == (f"seen\n{name}\n", True)


@pytest.mark.parametrize("character", [*'!"#%&,;<>\\^{}*?[]', "\t", "\x01", "  ", " "])
def test_a_path_that_firejail_cannot_take_is_refused_by_name(jail: Jail, character: str) -> None:
    name = f"a{character}" if character == " " else f"a{character}b"
    granted = jail.write(jail.user.home / name / "f", "seen\n").parent
    read = ("cat", granted / "f")
    assert jail.run(*read, options=["--quiet", "--backend", "bwrap", "--ro", granted]).out == "seen\n"
    refused = jail.run(*read, options=["--quiet", "--ro", granted])
    assert (refused.code, refused.out) == (125, "")
    assert "firejail cannot take this path" in refused.err
    assert (character if character.strip() and character.isprintable() else "space" if " " in character else "control") in refused.err


def test_inside_a_user_namespace_it_is_refused_in_words(jail: Jail) -> None:
    apart = (need("unshare"), "--user", "--map-current-user")
    assert jail.outside(*apart, "echo", "works").out == "works\n"
    assert jail.run("echo", "works").out == "works\n"
    refused = jail.outside(*apart, jail.program, "--quiet", "--", "echo", "works")
    assert (refused.code, refused.out) == (125, "")
    assert "user namespace" in refused.err


@contextlib.contextmanager
def secret_in(folder: str, jail: Jail) -> Iterator[Path]:
    """A file that the user can read, in a directory of its own: `folder` may be one that only root can write."""
    need_root()
    made = not os.path.isdir(folder)
    top = Path(folder, f"agent-sandbox-test-{os.getpid()}")
    top.mkdir(parents=True)
    try:
        (top / "secret").write_text("hunter2\n")
        assert jail.outside("cat", top / "secret").out == "hunter2\n"
        yield top / "secret"
    finally:
        shutil.rmtree(folder if made else top)


@pytest.mark.parametrize("folder", ["/run", "/tmp", "/var/tmp", "/dev/shm", "/srv", "/mnt", "/media", "/var/lib", "/home", "/", "/agent-sandbox-new"])
def test_what_is_not_granted_cannot_be_read(jail: Jail, folder: str) -> None:
    with secret_in(folder, jail) as secret:
        inside = jail.run("sh", "-c", f"cat {secret}; ls {secret.parent}; echo ran")
    assert inside.out == "ran\n"


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "/run/lock", "/var/lock"])
def test_what_is_written_beside_the_project_stays_inside(jail: Jail, folder: str) -> None:
    left = Path(folder, f"agent-sandbox-test-{os.getpid()}")
    inside = jail.run("sh", "-c", f"echo x > {left}; cat {left}; echo ran")
    assert inside.out in (("x\nran\n",) if folder in ("/tmp", "/dev/shm") else ("ran\n",))
    assert not left.exists()


def test_a_home_somewhere_else_shows_nothing_beside_it(jail: Jail) -> None:
    need_root()
    with users.account() as other:
        top = Path(f"/agent-sandbox-homes-{os.getpid()}")
        home = top / "people" / "me"
        home.parent.mkdir(parents=True)
        subprocess.run(["/usr/sbin/usermod", "--move-home", "--home", home, other.name], check=True)
        try:
            (top / "beside").write_text("hunter2\n")
            moved = users.TestUser(name=other.name, uid=other.uid, gid=other.gid, home=home)
            elsewhere = Jail(copy=jail.copy, user=moved, project=home / "project")
            elsewhere.write(home / "project" / "a", "mine\n")
            elsewhere.write(home / ".ssh" / "id", "hunter2\n")
            script = f"cat project/a {top}/beside .ssh/id; ls {top}; echo x > new && cat new"
            assert elsewhere.outside("sh", "-c", script, cwd=home).out.count("hunter2") == 2
            (home / "new").unlink()
            inside = elsewhere.run("sh", "-c", f"cd ..; {script}", options=["--quiet", "--backend", "firejail"])
            assert (inside.out, (home / "new").exists()) == ("mine\npeople\nx\n", False)
        finally:
            subprocess.run(["/usr/sbin/usermod", "--move-home", "--home", other.home, other.name], check=True)
            shutil.rmtree(top)


def test_a_throw_away_home_has_the_persons_own_files_and_no_key_to_the_screen(jail: Jail) -> None:
    """firejail would put the system's .bashrc there, and copies .Xauthority."""
    for name, text in ((".bashrc", "# mine\n"), (".Xauthority", "hunter2\n"), (".asoundrc", "hunter2\n"), (".inputrc", "# keys\n")):
        jail.write(jail.user.home / name, text)
    script = "cat ~/.bashrc ~/.inputrc; cat ~/.Xauthority ~/.asoundrc; echo ran"
    assert jail.outside("sh", "-c", script).out == "# mine\n# keys\nhunter2\nhunter2\nran\n"
    assert jail.run("sh", "-c", script).out == "# mine\n# keys\nran\n"
    assert "hunter2" not in jail.run("sh", "-c", script, options=["--quiet", "--home", "restricted"]).out


PROTECTED = "cd .git && touch hooks/new; mv hooks away; echo x >> config; cd ..; mv .git away; touch .git/ok && echo ran"


def test_protected_parts_and_what_holds_them_stay_in_place(jail: Jail) -> None:
    jail.write(jail.project / ".git" / "hooks" / "pre-commit", "")
    jail.write(jail.project / ".git" / "config", "")
    inside = jail.run("sh", "-c", PROTECTED)
    assert inside.out == "ran\n"
    assert sorted(path.name for path in (jail.project / ".git").rglob("*")) == ["config", "hooks", "ok", "pre-commit"]
    assert (jail.project / ".git" / "config").read_text() == ""
    jail.outside("sh", "-c", PROTECTED)
    assert (jail.project / "away" / "away" / "new").exists()


def test_a_directory_of_somebody_elses_cannot_be_held_and_that_is_said(jail: Jail) -> None:
    need_root()
    jail.write(jail.project / ".git" / "hooks" / "pre-commit", "")
    os.chown(jail.project / ".git", 0, 0)
    (jail.project / ".git").chmod(0o777)
    inside = jail.run("sh", "-c", "touch .git/ok && echo ran")
    assert (inside.out, "weak point in project-protect" in inside.err) == ("ran\n", True)
    (jail.user.home / ".config/agent-sandbox/conf.d/backend.toml").unlink()
    jail.configure('[sandbox]\nbackend = "firejail"\nrequire = ["project-protect"]\n')
    refused = jail.run("echo", "ran")
    assert (refused.code, refused.out, "project-protect is required" in refused.err) == (125, "", True)


def test_what_cannot_be_made_writable_again_stops_the_launch(jail: Jail) -> None:
    """firejail would pass it over in silence."""
    need_root()
    jail.write(jail.user.home / "data" / "out" / "a")
    os.chown(jail.user.home / "data" / "out", 0, jail.user.gid)
    (jail.user.home / "data" / "out").chmod(0o775)
    options = ["--quiet", "--ro", jail.user.home / "data", "--rw", jail.user.home / "data" / "out"]
    assert jail.run("echo", "ran", options=["--backend", "bwrap", *options]).out == "ran\n"
    refused = jail.run("echo", "ran", options=options)
    assert (refused.code, refused.out) == (125, "")
    assert "only what belongs to you" in refused.err


def test_the_stage_inside_keeps_nothing_open_and_cannot_be_looked_into(jail: Jail) -> None:
    inside = jail.run("sh", "-c", "ls /proc/self/fd; ls /proc/$PPID/fd; tr '\\0' ' ' < /proc/$PPID/cmdline")
    assert inside.out.split()[:4] == ["0", "1", "2", "3"]
    assert "firejailed.py" in inside.out and inside.out.split()[4].endswith("python3.11")
    assert "Permission denied" in inside.err


def test_the_stage_inside_starts_nothing_where_there_is_no_jail(jail: Jail) -> None:
    """As firejail does where it believes that it is in a jail already: it starts the command as it is."""
    outside = [("pid", os.readlink("/proc/self/ns/pid"))]
    orders = jail.write(jail.project / "orders")
    orders.write_bytes(marshal.dumps({"outside": outside, "command": ("/bin/echo", "ran")}))
    stage = jail.copy / "lib" / "agent_sandbox" / "launcher" / "firejailed.py"
    done = jail.outside("sh", "-c", f"exec {PYTHON} -I -S {stage} 1 3 4 3< orders 4< /dev/null")
    assert (done.code, done.out) == (125, '{"stage-error": "firejail started without a jail (no pid namespace)"}\n')


def left_by_firejail() -> set[str]:
    return {str(path) for folder in LEFT_BY_FIREJAIL if os.path.isdir(folder) for path in Path(folder).iterdir()}


def rooms(jail: Jail) -> list[str]:
    """Directories of sessions; the number of a user is given again, so other things may seem to be theirs."""
    return [str(path) for path in Path("/tmp").glob("agent-sandbox-*") if path.exists() and path.stat().st_uid == jail.user.uid]


@pytest.mark.parametrize("number", [0, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_nothing_is_left(jail: Jail, number: int) -> None:
    need_root()
    with jail.start("sh", "-c", "(setsid sleep 4346 &); echo ready; sleep 60; true", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        assert until(lambda: any(line.startswith("sleep 60") for _, line in alive(jail.user.uid)))
        running = alive(jail.user.uid)
        own = {f"{folder}/{pid}" for pid, line in running if "/firejail " in line for folder in LEFT_BY_FIREJAIL}
        assert own & left_by_firejail() and rooms(jail)  # control: there is something to leave
        (command,) = [pid for pid, line in running if line.startswith("sleep 60")]
        os.kill(process.pid if number else command, number or signal.SIGTERM)
        process.wait(20)
    assert until(lambda: not alive(jail.user.uid)), alive(jail.user.uid)
    assert until(lambda: not own & left_by_firejail() and not rooms(jail)), (own & left_by_firejail(), rooms(jail))
