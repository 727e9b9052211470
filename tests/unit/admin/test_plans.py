"""Pure parts of botadm: texts, plans, records and reports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from agent_sandbox.admin.accountlines import Line
from agent_sandbox.admin.bots.facts import Facts, from_text, to_text
from agent_sandbox.admin.bots.session import environment, sudo_words
from agent_sandbox.admin.bots.texts import LOAD, rule
from agent_sandbox.admin.plaindata import KINDS, from_act, to_act
from agent_sandbox.admin.share.rules import warning
from agent_sandbox.admin.steps import (
    Act,
    Delete,
    Drop,
    End,
    Grant,
    Lines,
    Make,
    Part,
    Put,
    Set,
    ShareTree,
    Step,
    Sweep,
    Tool,
    Unmake,
    UnshareTree,
    steps_of,
)
from agent_sandbox.config.errors import UserError

CLIO = Facts(name="clio", owner="alice")
ACTS: tuple[Act, ...] = (
    Tool(argv=("/a", "b"), names=("clio",), present=("passwd:clio",), fine=(0, 6)),
    Lines(lines=(Line(file="passwd", name="a", text="a:x", after="b"),)),
    Put(path="/a", content="é\n", mode=0o440, visudo="/v"), Drop(path="/a"), Make(path="/a"), Unmake(path="/a"),
    Set(path="/a", owner="o", group="g", mode=0),
    Grant(path="/a", person="p"), End(uid=5, name="n"), Sweep(uid=5, name="n"), Delete(path="/a"),
    ShareTree(path="/a", owner="o", recursive=True),
    UnshareTree(path="/a", owner="o", group="g", recursive=False),
)  # fmt: skip


@pytest.mark.parametrize("act", ACTS, ids=lambda act: type(act).__name__)
def test_an_act_survives_the_journal(act: Act) -> None:
    assert to_act(json.loads(json.dumps(from_act(act)))) == act


def test_every_kind_of_act_is_tried_above() -> None:
    assert {type(act).__name__ for act in ACTS} == set(KINDS)


def test_what_cannot_be_taken_back_comes_last() -> None:
    parts = tuple(Part(what=str(number), should="a", found="b", steps=(Step(does=str(number), why="", act=act),)) for number, act in enumerate(ACTS))
    order = [step.reversible for step in steps_of(parts)]
    assert order == sorted(order, reverse=True) and order.count(False) == 4


def test_a_part_that_is_right_needs_no_step() -> None:
    assert steps_of((Part(what="x", should="a", found="a", steps=(Step(does="x", why="", act=Drop(path="/a")),)),)) == ()


@pytest.mark.parametrize(("owner", "person"), [
    ("alice", "alice"), ("a.b-c_9", "a.b-c_9"), ("alice@corp", "#1000"), ("DOM\\alice", "#1000"), ("a b", "#1000"), ("%wheel", "#1000"),
])  # fmt: skip
def test_a_rule_names_one_person_whatever_they_are_called(owner: str, person: str) -> None:
    assert rule(Facts(name="clio", owner=owner), 1000).splitlines()[-1] == f"{person} ALL=(clio) NOPASSWD: NOSETENV: ALL"


@pytest.mark.parametrize("entry", ["/opt/a b/x", "/opt/a,b", "/opt/*", "relative", "/opt/a\nALL", "", "/opt/a:b", "/opt/x=y"])
def test_a_strict_rule_takes_plain_paths_alone(entry: str) -> None:
    with pytest.raises(UserError, match="cannot be named"):
        rule(Facts(name="clio", owner="alice", strict=True, entry=entry), 1000)


@pytest.mark.parametrize(("text", "read"), [
    ("A=1\nB=x y\n", {"A": "1", "B": "x y"}), ("A", {}), ("=x\n", {}), ("1A=x\n", {}), ("A-B=x\n", {}), ("A=$(id)\n", {"A": "$(id)"}),
    ('A="q"\n', {"A": '"q"'}), ("A=1=2\n", {"A": "1=2"}), (" A=1\n", {}), ("#A=1\n", {}), ("A=\n", {"A": ""}), ("A=tail", {"A": "tail"}),
])  # fmt: skip
def test_the_shell_reads_variables_as_they_stand(text: str, read: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "env").write_text(text)
    home = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", f"{LOAD}exec /usr/bin/env"], env=home, capture_output=True, text=True)
    shell = dict(pair.split("=", 1) for pair in done.stdout.splitlines() if pair.split("=")[0] not in ("HOME", "PATH", "PWD"))
    assert shell == read


def test_only_words_that_look_like_it_are_taken_from_the_caller() -> None:
    caller = {"TERM": "x'; id", "LANG": "de_DE.UTF-8@euro", "PATH": "/evil", "HOME": "/evil", "LD_PRELOAD": "/evil"}
    assert environment(CLIO, caller, "/x") == {
        "HOME": "/var/bot/clio", "USER": "clio", "LOGNAME": "clio", "PATH": "/var/bot/clio/.local/bin:/usr/local/bin:/usr/bin:/bin",
        "TERM": "dumb", "PWD": "/x", "LANG": "de_DE.UTF-8@euro",
    }  # fmt: skip


def test_the_command_comes_after_all_words_of_ours() -> None:
    words = sudo_words(CLIO, "/usr/bin/sudo", {"PWD": "/x", "TERM": "t", "LANG": "l"}, ("-u", "root"))
    assert words[:5] == ("/usr/bin/sudo", "-n", "-u", "clio", "--") and words[-3:] == ("/x", "-u", "root")


def test_facts_survive_and_damage_is_named() -> None:
    assert from_text(to_text(CLIO), "x") == CLIO
    for text in ("{", "[]", '{"name": "clio"}', '{"name": "clio", "owner": "a", "more": 1}'):
        with pytest.raises(UserError, match="is damaged"):
            from_text(text, "/var/lib/botadm/bots/clio.json")


def test_names_that_deserve_a_warning() -> None:
    assert all(warning(name) for name in (".git", ".env", ".env.local", ".ssh", ".aws", "server.pem", "id_rsa", "tls.key", ".netrc"))
    assert not any(warning(name) for name in ("main.py", "environment.yml", "README", "keys.txt", "git"))
