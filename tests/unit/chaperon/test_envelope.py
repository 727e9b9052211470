"""The envelope as text and as data: what sbatch reads of it, and what comes out on the node."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent_sandbox.chaperon import envelope
from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.envelope import Job, Launcher, forced_options, make_script, pack_variables, read_data, unpack_variables
from agent_sandbox.chaperon.outputs import Files
from agent_sandbox.chaperon.submit import submit
from agent_sandbox.chaperon.wire import Request, Script
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace
from tests.unit.chaperon.serving import orders_for

LAUNCHER = Launcher(python="/usr/bin/python3", library="/opt/it's here/lib", entry="/opt/bin/agent-sandbox")
JOB = Job(
    name="tried", script=b"#!/bin/sh\n#SBATCH -o /etc/x\n#PBS -e /etc/y\necho \xff\n", arguments=("one", "t w\udcffo"), cwd="/p/sub",
    submit_directory="/p", export="ALL,BASH_ENV=/p/x", files=Files(input="", output="%j", error=""), open_mode="append", umask=0o027,
    project="/p", session="s", settings={"filesystem.hidden": [["/p/secret", 2]], "limits.memory": None, "sandbox.quiet": True},
    variables="/state/x.env",
)  # fmt: skip
# Text and bytes as they come through the wire: anything but NUL.
WORDS = some.text(some.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


def data_of(script: bytes) -> str:
    return script.decode().splitlines()[-1].removeprefix('main("').removesuffix('")')


def test_what_goes_in_comes_out() -> None:
    assert read_data(data_of(make_script(JOB, LAUNCHER))) == (JOB, LAUNCHER.entry)


@given(script=some.binary(max_size=200), arguments=some.lists(WORDS, max_size=4), name=WORDS, export=some.none() | WORDS)
def test_nothing_of_the_agents_is_outside_the_data(script: bytes, arguments: list[str], name: str, export: str | None) -> None:
    made = make_script(replace(JOB, script=script, arguments=tuple(arguments), name=name, export=export), LAUNCHER)
    lines, usual = made.decode().splitlines(), make_script(JOB, LAUNCHER).decode().splitlines()
    assert lines[:-1] == usual[:-1]
    assert set(data_of(made)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")
    assert read_data(data_of(made))[0].script == script


def test_sbatch_finds_no_option_in_it() -> None:
    """It reads options up to the first line that is neither empty nor a comment."""
    lines = make_script(JOB, LAUNCHER).decode().splitlines()
    assert lines[0] == "#!/usr/bin/python3 -IS"
    assert lines[1] == "import sys"
    assert not any(line.startswith("#") for line in lines[1:])


@pytest.mark.parametrize("directory", ["it's \"quoted\" $HOME", "x" * 150, "plain"])
def test_the_interpreter_may_be_anywhere(tmp_path: Path, directory: str) -> None:
    python = tmp_path / directory / "python3"
    python.parent.mkdir()
    python.symlink_to("/usr/bin/python3")
    script = tmp_path / "script"
    script.write_bytes(make_script(JOB, replace(LAUNCHER, python=str(python), library=str(tmp_path / "a\"b'c"))))
    script.chmod(0o700)
    ran = subprocess.run([script], capture_output=True, text=True, env={"BASH_ENV": "/nonexistent"})
    assert (ran.returncode, ran.stdout) == (125, "")
    assert f"no usable launcher at {tmp_path}/a\"b'c on this node" in ran.stderr


def test_a_job_that_slurm_would_not_take_is_refused_with_its_size() -> None:
    noise = random.Random(1).randbytes(4 << 20)
    with pytest.raises(UserError, match=rf"too large: \d+ bytes.*script \({len(noise)} bytes\).*takes {4 << 20}"):
        make_script(replace(JOB, script=noise), LAUNCHER)
    assert len(make_script(replace(JOB, script=b"echo a line of a script\n" * 170_000), LAUNCHER)) < 100_000


def test_another_format_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope, "FORMAT", 2)
    newer = data_of(make_script(JOB, LAUNCHER))
    monkeypatch.undo()
    with pytest.raises(UserError, match="another version of agent-sandbox"):
        read_data(newer)


@pytest.mark.parametrize("data", ["", "AAAA", "not base64!", "eJwLAAAAAA==", "eJxrYmRgYGBiAAAAIAAE"])
def test_damaged_data_is_told(data: str) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_data(data)


def test_a_field_too_many_or_too_few_is_told() -> None:
    import binascii
    import marshal
    import zlib

    def packed(job: dict[str, Any]) -> str:
        return binascii.b2a_base64(zlib.compress(marshal.dumps({"format": 1, "entry": "", "job": job}))).decode()

    fields = {**JOB.__dict__, "files": dict(JOB.files.__dict__)}
    for wrong in ({**fields, "more": 1}, {name: value for name, value in fields.items() if name != "umask"}):
        with pytest.raises(UserError, match="cannot be read"):
            read_data(packed(wrong))


@given(some.dictionaries(WORDS.filter(lambda name: name and "=" not in name), WORDS, max_size=5))
def test_variables_come_out_as_they_went_in(variables: dict[str, str]) -> None:
    assert unpack_variables(pack_variables(variables)) == variables


def test_the_log_is_named_by_slurm_alone() -> None:
    forced = forced_options("/home/100%j/state")
    assert forced == {
        "output": "/home/100%%j/state/%j.log", "error": "/home/100%%j/state/%j.log", "input": "/dev/null", "open-mode": "append",
        "export": "ALL",
    }  # fmt: skip
    with pytest.raises(UserError, match="backslash"):
        forced_options("/home/a\\b")


def test_a_script_with_a_strange_name_gives_a_job_with_a_printable_one(tmp_path: Path) -> None:
    request = Request(
        command="sbatch", words=("a\x1b[2J\tb.sh",), cwd=str(tmp_path), environment={}, script=Script(path="a\x1b[2J\tb.sh", content=b"#!/bin/sh\n")
    )
    step = submit(request, orders_for(tmp_path))
    assert isinstance(step, Command)
    assert "--job-name=a?[2J?b.sh" in step.words
