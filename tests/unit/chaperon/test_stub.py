"""The stub as a program: what comes out of it is what the real command said, and nothing of it is left on any way out."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_sandbox.chaperon import stub as module
from agent_sandbox.chaperon.limits import Limits
from agent_sandbox.chaperon.stubfile import stub_file
from agent_sandbox.chaperon.wire import Request, Script, decode_request
from tests.unit.chaperon.serving import Chaperon, chaperon, shout, wait_until

BYTES = bytes(range(256))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Chaperon]:
    with chaperon(tmp_path, Limits(tick=0.05)) as running:
        yield running


def shown(server: Chaperon, name: str, **options: object) -> Request:
    """What the chaperon understood."""
    done = server.call(name, "show", "--x=\t", b"\xff\n", "", **options)
    assert done.returncode == 0, done.stderr
    return eval(done.stdout.decode("utf-8", "surrogateescape"), {"Request": Request, "Script": Script})  # noqa: S307 – of our own handler


@pytest.mark.parametrize("name", ["squeue", "sacct"])
@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_output_and_exit_code_are_exactly_those_of_the_program(server: Chaperon, name: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(BYTES * 200)
    done = server.call(name, "sh", "-c", f"cat {tmp_path}/bytes; printf 'e\\377' >&2; exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, BYTES * 200, b"e\xff")
    assert server.left() == []


def test_words_directory_umask_and_the_variables_of_the_command_arrive(server: Chaperon, tmp_path: Path) -> None:
    variables = {"PATH": "/bin", "SECRET": "1", "SQUEUE_FORMAT": "%i", "SLURM_TIME_FORMAT": "x", "TZ": "UTC", "TZX": "y"}
    (tmp_path / "wörk").mkdir()
    asked = shown(server, "squeue", env=variables, cwd=tmp_path / "wörk", umask=0o037)
    assert asked == Request(
        command="squeue", words=("show", "--x=\t", "\udcff\n", ""), cwd=str(tmp_path / "wörk"), umask=0o037,
        environment={"SQUEUE_FORMAT": "%i", "SLURM_TIME_FORMAT": "x", "TZ": "UTC"},
    )  # fmt: skip
    given = shown(server, "sbatch", env=variables).environment
    assert {name: given.get(name) for name in variables} == variables  # all of it, for --export


@pytest.mark.parametrize("language", ["C", "C.UTF-8", "POSIX"])
def test_bytes_that_are_no_text_arrive_in_every_locale(server: Chaperon, language: str) -> None:
    assert shown(server, "squeue", env={"LC_ALL": language, "SQUEUE_X": "\udcff"}).environment == {"SQUEUE_X": "\udcff"}


def test_it_encodes_as_the_chaperon_decodes() -> None:
    said = decode_request(module.encode("sbatch", ["a", "", "ä"], (b"job", b"\0")))
    assert (said.words, said.cwd, said.script) == (("a", "", "ä"), os.getcwd(), Script(path="job", content=b"\0"))


def test_a_file_among_the_words_is_sent_at_once_and_another_when_it_is_wanted(server: Chaperon, tmp_path: Path) -> None:
    for name in ("one", "two", "-three"):
        (tmp_path / name).write_text(f"#!/bin/sh {name}")
    (tmp_path / "bin" / "on-path").write_text("#!found")
    call = {"cwd": tmp_path, "env": {"PATH": f"/none:{tmp_path}/bin"}}
    assert server.call("sbatch", "want", "one", **call).stdout == b"#!/bin/sh one"
    assert server.call("sbatch", "want", "two", "one", **call).stdout == b"#!/bin/sh two"
    assert server.call("sbatch", "want", "-three", **call).stdout == b"#!/bin/sh -three"
    assert server.call("sbatch", "want", "on-path", **call).stdout == b"#!found"
    assert server.call("sbatch", "want", str(tmp_path / "two"), **call).stdout == b"#!/bin/sh two"
    assert server.call("sbatch", "want", "", stdin=None, input=b"#!stdin" * 50_000, cwd=tmp_path).stdout == b"#!stdin" * 50_000
    assert server.left() == []


def test_a_script_that_cannot_be_read_is_said_to_be_as_sbatch_says_it(server: Chaperon, tmp_path: Path) -> None:
    done = server.call("sbatch", "want", "./none", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, b"sbatch: error: Unable to open file ./none\n")
    with (tmp_path / "long").open("wb") as file:
        file.truncate((4 << 20) + 1)
    done = server.call("sbatch", "want", "long", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, b"sbatch: error: the script has more than 4194304 bytes\n")


def test_too_much_is_refused_by_the_chaperon_with_its_number(server: Chaperon) -> None:
    done = server.call("squeue", *["x" * 50] * 30_000)
    assert (done.returncode, done.stderr) == (1, b"chaperon: error: the arguments: 1530000 bytes, 1048576 are allowed\n")


def test_garbage_that_somebody_left_without_an_end_spoils_nothing(server: Chaperon) -> None:
    shout(server.fifos, b"garbage")
    assert server.call("squeue", "say", "0", "here", "").stdout == b"here"


def test_without_a_chaperon_it_says_so_at_once(server: Chaperon) -> None:
    server.kill()
    begin = time.monotonic()
    done = server.call("squeue")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"squeue: error: the chaperon of this session has ended")
    assert (time.monotonic() - begin < 5, server.left()) == (True, [])


@pytest.mark.parametrize("remove", ["fifos", "fifos/ask"])
def test_without_a_directory_it_says_so_at_once(server: Chaperon, tmp_path: Path, remove: str) -> None:
    shutil.rmtree(tmp_path / remove) if remove == "fifos" else (tmp_path / remove).unlink()
    done = server.call("squeue")
    assert (done.returncode, done.stderr.startswith(b"squeue: error: the chaperon of this session has ended")) == (1, True)


def test_a_chaperon_that_is_killed_while_it_works_is_noticed(server: Chaperon) -> None:
    waiting = server.popen("sacct", "sleep", "1")
    wait_until(server.children)
    server.kill()
    assert (waiting.communicate(timeout=5)[1].startswith(b"sacct: error: the chaperon ended before it answered"), waiting.returncode) == (True, 1)
    assert server.left() == []


def test_a_chaperon_that_is_killed_before_it_looks_is_noticed(server: Chaperon) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    waiting = server.popen("sacct", "sleep", "1")
    wait_until(lambda: len(server.left()) == 2)
    time.sleep(0.1)
    server.kill()
    assert b"the chaperon of this session has ended" in waiting.communicate(timeout=5)[1]
    assert server.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("stopped", [False, True])
def test_a_signal_ends_it_as_it_ends_the_real_command_and_what_was_submitted_stays(server: Chaperon, number: signal.Signals, stopped: bool) -> None:
    if stopped:  # before the chaperon has seen it
        os.kill(server.pid, signal.SIGSTOP)
    waiting = server.popen("sbatch", "sh", "-c", "sleep 0.5; echo 12")
    wait_until(lambda: len(server.left()) == 2 if stopped else server.children())
    time.sleep(0.1)
    waiting.send_signal(number)
    assert waiting.wait(5) == -number
    assert server.left() == []
    os.kill(server.pid, signal.SIGCONT)
    if not stopped:
        wait_until(lambda: (server.top / "ledger").exists())
        assert (server.top / "ledger").read_text() == "12\n"


def test_a_shell_sees_130_after_an_interrupt(server: Chaperon) -> None:
    command = f"trap : INT; {server.argv('sacct')[0]!s} sleep 5; echo $?"
    shell = subprocess.Popen(["/bin/bash", "-c", command], stdout=subprocess.PIPE, start_new_session=True)
    wait_until(server.children)
    os.killpg(shell.pid, signal.SIGINT)
    assert shell.communicate(timeout=10)[0] == b"130\n"


def test_killed_it_leaves_fifos_that_the_chaperon_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent_sandbox.chaperon import gate

    monkeypatch.setattr(gate, "OLD", 0.3)
    with chaperon(tmp_path, Limits(tick=0.05, sweep=0.2)) as server:
        os.kill(server.pid, signal.SIGSTOP)
        waiting = server.popen("sacct", "sleep", "1")
        wait_until(lambda: len(server.left()) == 2)
        waiting.kill()
        waiting.wait()
        assert len(server.left()) == 2
        os.kill(server.pid, signal.SIGCONT)
        wait_until(lambda: server.left() == [])


def test_a_reader_that_goes_away_ends_it_by_sigpipe(server: Chaperon) -> None:
    waiting = server.popen("squeue", "yes")
    assert waiting.stdout
    waiting.stdout.read(10)
    waiting.stdout.close()
    assert waiting.wait(5) == -signal.SIGPIPE
    wait_until(lambda: not server.children())


def test_closed_standard_files_are_no_problem(server: Chaperon) -> None:
    command = f"{server.argv('squeue')[0]!s} sh -c 'echo x; echo y >&2; exit 4' <&- >&- 2>&-; echo $? > {server.top}/code"
    subprocess.run(["/bin/sh", "-c", command], timeout=20, check=True)
    assert (server.top / "code").read_text() == "4\n"


def test_output_that_nobody_reads_yet_does_not_hold_the_chaperon_up(server: Chaperon, tmp_path: Path) -> None:
    waiting = server.popen("squeue", "sh", "-c", 'head -c 3000000 /dev/zero; : > "$0"', str(tmp_path / "said"))
    wait_until((tmp_path / "said").exists)  # while nobody reads our output
    assert len(waiting.communicate(timeout=10)[0]) == 3_000_000


def test_variables_for_python_do_not_reach_it(server: Chaperon, tmp_path: Path) -> None:
    (tmp_path / "evil").mkdir()
    for name in ("marshal", "posix", "select", "sitecustomize", "errno", "encodings"):
        (tmp_path / "evil" / f"{name}.py").write_text("import os; os._exit(99)")
    variables = {"PYTHONPATH": f"{tmp_path}/evil", "PYTHONSTARTUP": f"{tmp_path}/evil/posix.py", "PYTHONHOME": f"{tmp_path}/evil"}
    control = subprocess.run([sys.executable, "-c", ""], env={"PYTHONPATH": f"{tmp_path}/evil"})
    assert control.returncode == 99
    assert server.call("squeue", "say", "5", "", "", env=variables, cwd=tmp_path / "evil").returncode == 5


def test_it_imports_nothing_of_ours_and_little_else() -> None:
    tree = ast.parse(Path(module.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names == {"errno", "posix", "select", "sys", "signal", "_signal"}


def test_an_interpreter_with_a_space_in_its_path_runs_it(server: Chaperon, tmp_path: Path) -> None:
    link = tmp_path / "a python"
    link.symlink_to(sys.executable)
    (tmp_path / "bin" / "stub").write_bytes(stub_file(str(link), str(tmp_path / "bin" / "code"), str(tmp_path / "fifos")))
    assert server.call("squeue", "say", "6", "out", "").stdout == b"out"


def test_a_file_that_is_only_guessed_to_be_the_script_may_be_long_or_unreadable(tmp_path: Path) -> None:
    script, long = tmp_path / "job.sh", tmp_path / "old.out"
    script.write_text("#!/bin/sh\n")
    with long.open("wb") as file:
        file.truncate(module.MOST_SCRIPT + 1)
    assert module.guess([str(script)]) == (bytes(script), b"#!/bin/sh\n")
    assert module.guess(["-o", str(long), str(script)]) is None  # the chaperon says which one it is
