"""`explain` inside a jail: from the page that the launch left, and no oracle for what is hidden."""

from __future__ import annotations

import json

import pytest

from tests.machines.jail import Jail
from tests.machines.needs import need_root


def inside(jail: Jail, *words: str, options: tuple[str, ...] = (), env: dict[str, str] | None = None) -> dict[str, object]:
    asked = jail.run("env", "agent-sandbox", "explain", "--json", *words, options=["--quiet", *options], env=env)
    assert asked.code == 0, asked.err
    found = json.loads(asked.out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("mode", ["restricted", "tmpwrite", "read", "write"])
def test_a_hidden_path_is_answered_as_a_missing_one(jail: Jail, mode: str) -> None:
    need_root()
    home, project = jail.user.home, jail.project
    pairs = [(home / ".ssh/id", home / ".ssx/id"), (home / ".netrc", home / ".netrd"), (project / "secret", project / "nothing"),
             (project / "dir/key", project / "dir/kez"), (home / ".config/agent-sandbox", home / ".config/agent-sandbax")]  # fmt: skip
    for hidden, missing in pairs:
        jail.write(hidden / "config.toml" if "agent" in hidden.name else hidden, "" if "agent" in hidden.name else "private\n")
        assert hidden.exists() and not missing.exists()
    script = 'for path; do agent-sandbox explain path "$path"; echo ---; done; agent-sandbox explain --json path "$1"'
    options = ["--quiet", "--home", mode, "--hide", "secret", "--hide", "dir/key"]
    for hidden, missing in pairs:
        told = [jail.run("sh", "-c", script, "sh", path, options=options) for path in (hidden, missing)]
        assert [one.code for one in told] == [0, 0], told
        assert told[0].out.replace(str(hidden), "PATH") == told[1].out.replace(str(missing), "PATH")
        assert told[0].out.startswith(f"path {hidden}: ")
        assert "hidden" not in told[0].out


def test_what_is_granted_is_told(jail: Jail) -> None:
    need_root()
    jail.outside("git", "init", "-q", ".")
    assert inside(jail, "path", "new")["verdict"] == "write"
    assert inside(jail, "path", ".git/hooks/x")["verdict"] == "read"
    assert inside(jail, "path", "/usr/bin/env")["verdict"] == "read"
    assert inside(jail, "path", "/srv/x")["verdict"] == "not there"


def test_variables_are_answered(jail: Jail) -> None:
    env = {"MY_TOKEN": "hunter2", "MY_URL": "https://me:hunter2@host", "MY_NOTE": "x"}
    told = {name: inside(jail, "env", name, env=env) for name in (*env, "HOME", "NEVER")}
    assert {name: one["verdict"] for name, one in told.items()} == {
        "MY_TOKEN": "removed", "MY_URL": "kept, cleaned", "MY_NOTE": "kept", "HOME": "set", "NEVER": "not set",
    }  # fmt: skip
    assert told["MY_TOKEN"]["rule"] == "environment.block *_TOKEN"
    assert "hunter2" not in str(told)


def test_hosts_are_answered_as_outside(jail: Jail) -> None:
    jail.configure("[network]\nblock = ['*.example.org']\nallow = ['www.example.org', 'pastebin.com']\ndefault = 'deny'\n")
    for host in ("a.example.org", "www.example.org", "pastebin.com", "file.io", "pypi.org", "example.com", "10.0.0.1"):
        told = inside(jail, "host", host)
        asked = jail.ask("explain", "--json", "host", host)
        outside = json.loads(asked.out)
        assert {**told, "origin": ""} == {**outside, "origin": ""}, host
    assert inside(jail, "host", "a.example.org")["origin"] == "person"


def test_keys_and_calls_are_answered(jail: Jail) -> None:
    home = inside(jail, "filesystem.home", options=("--home", "restricted"))
    assert (home["verdict"], home["origin"]) == ("restricted", "person")
    assert inside(jail, "filesystem.home")["origin"] == "default"
    assert inside(jail, "filesystem.hidden")["verdict"] == "not told inside"
    assert inside(jail, "syscall", "mount")["verdict"] == "refused (EPERM)"


@pytest.mark.parametrize("words", [["filesystem.hme"], ["path"], ["syscall", "mountt"]], ids=" ".join)
def test_a_wrong_question_is_refused_as_outside(jail: Jail, words: list[str]) -> None:
    outside = jail.ask("explain", *words)
    asked = jail.run("env", "agent-sandbox", "explain", *words)
    assert (asked.code, asked.out, asked.err) == (125, "", outside.err)


@pytest.mark.parametrize("word", ["doctor", "config", "audit", "ps"])
def test_other_words_say_that_they_answer_outside(jail: Jail, word: str) -> None:
    asked = jail.run("env", "agent-sandbox", word)
    assert (asked.code, "outside the jail only" in asked.err) == (125, True)
