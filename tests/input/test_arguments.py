"""Words that make no sense get one paragraph, a hint and exit 125; what belongs to the command reaches it untouched."""

from __future__ import annotations

import resource
import subprocess

import pytest

from tests.machines import users
from tests.machines.jail import Jail, Result


def check_refusal(done: Result, *words: str, code: int = 125) -> None:
    assert (done.code, done.out) == (code, ""), done.err
    assert done.err.startswith("agent-sandbox: ")
    assert "Traceback" not in done.err
    assert len(done.err.splitlines()) <= 3, done.err
    assert [word for word in words if word not in done.err] == [], done.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--projct-dir", "x", "true"], "did you mean --project-dir?"),
        (["--nonsense", "true"], "there is no option --nonsense"),
        (["-x", "true"], "there is no option -x"),
        (["-", "true"], "there is no option -"),
        (["--home"], "--home needs a value"),
        (["--quiet=yes", "true"], "--quiet takes no value"),
        (["--set-env", "novalue", "true"], "expected NAME=VALUE"),
        (["--limit", "memory", "true"], "expected KEY=VALUE"),
        (["--limit", "nonsense=1", "true"], "nonsense"),
        (["--limit", "memory=lots", "true"], "limits.memory"),
        (["--home", "sideways", "true"], "sideways"),
        (["--backend", "nonsense", "true"], "nonsense"),
        (["--network", "nonsense", "true"], "nonsense"),
        (["--ro", "", "true"], "empty"),
        (["--ro", "/no/such/path", "true"], "/no/such/path"),
        (["--rw", "/no/such/path", "true"], "/no/such/path"),
        (["\x1b[31m--red", "true"], ""),
        (["--\x1b[31mred", "true"], "there is no option"),
        (["--not-\udcff-utf8", "true"], "there is no option"),
    ],
)
def test_a_malformed_argument_is_refused_in_words(jail: Jail, words: list[str], expected: str) -> None:
    done = jail.ask(*words)
    code = 127 if words[0].startswith("\x1b") else 125
    check_refusal(done, expected, code=code)
    assert "\x1b" not in done.err


def test_an_empty_command_is_127(jail: Jail) -> None:
    check_refusal(jail.ask("--quiet", ""), "empty", code=127)
    check_refusal(jail.ask("--quiet", "--", ""), "empty", code=127)
    assert jail.outside("bash", "-c", "''").code == 127


def test_options_after_the_command_are_the_commands(jail: Jail) -> None:
    done = jail.ask("--quiet", "echo", "--quiet", "--nonsense", "--", "-n")
    assert (done.code, done.out) == (0, "--quiet --nonsense -- -n\n")


def test_two_dashes_end_our_options_once(jail: Jail) -> None:
    assert jail.ask("--quiet", "--", "echo", "--", "x").out == "-- x\n"


def test_our_own_words_give_way_after_two_dashes(jail: Jail) -> None:
    done = jail.ask("--quiet", "--", "ps", "-o", "comm=")
    assert (done.code, "ps" in done.out.split()) == (0, True)


@pytest.mark.parametrize("word", ["", " ", "a b", "$HOME", "`id`", "'", '"', "\\", "*", "\n", "tab\t", "é", "日本", "\udcff\udcfe", "-", "--", "="])
def test_every_argument_arrives_as_it_is(jail: Jail, word: str) -> None:
    done = jail.run("printf", "<%s>", word)
    assert (done.code, done.out) == (0, f"<{word}>")


def test_one_argument_that_is_too_long_is_named(jail: Jail) -> None:
    """The kernel refuses it to whoever starts us, too: so it comes by way of a limit of our own."""
    done = jail.outside("sh", "-c", f"'{jail.program}' --quiet -- true \"$(head -c 131000 /dev/zero | tr '\\0' x)\"; echo $?")
    assert done.out == "0\n"
    done = jail.outside("sh", "-c", f"'{jail.program}' --quiet -- true \"$(head -c 200000 /dev/zero | tr '\\0' x)\"")
    assert done.code == 126  # the shell's own: nobody can pass that on
    assert "Argument list too long" in done.err


def run_with_stack(jail: Jail, stack: int, words: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """The kernel takes a quarter of the stack limit for arguments and variables."""

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        users.become(jail.user)()

    return subprocess.run(
        [str(jail.program), "--quiet", "--", *words], preexec_fn=prepare, cwd=jail.project, capture_output=True, timeout=60,
        env={**jail.user.environment, **(env or {})}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_arguments_that_are_too_long_together_are_named(jail: Jail) -> None:
    done = run_with_stack(jail, 64 << 20, ["true", *(["x" * 100_000] * 30)])
    check_refusal(Result(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode()), "bytes")


def test_arguments_just_below_what_the_stack_allows_are_named_or_work(jail: Jail) -> None:
    done = run_with_stack(jail, 1 << 20, ["true", *(["x" * 1000] * 225)])
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0 or (done.returncode == 125 and b"rgument" in done.stderr), done.stderr


def test_a_variable_that_is_too_long_is_named(jail: Jail) -> None:
    done = jail.ask("--quiet", "--set-env", "LONG=" + "x" * 130_000, "true")
    assert done.code in (0, 125)
    assert "Traceback" not in done.err
