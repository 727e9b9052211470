"""sbatch's --export, as sbatch 22.05.8 reads it."""

from __future__ import annotations

import pytest

from agent_sandbox.chaperon.export import Chosen, choose, is_unbalanced, tokens, without_the_other_jail

GIVEN = {"AA": "1", "BB": "2", "SLURM_FOO": "f"}
ALWAYS = {"SLURM_FOO": "f"}


@pytest.mark.parametrize("export", [None, "ALL", "all"])
def test_everything_goes_along_without_a_list(export: str | None) -> None:
    assert choose(export, GIVEN) == Chosen(values=GIVEN, login=False)


@pytest.mark.parametrize("export", ["NONE", "none", "NIL", "nil"])
def test_with_none_only_slurms_variables_do(export: str) -> None:
    assert choose(export, GIVEN) == Chosen(values=ALWAYS, login=True)


@pytest.mark.parametrize(
    ("export", "values"),
    [
        ("AA", {"AA": "1"}),
        ("AA=9", {"AA": "9"}),
        ("AA=", {"AA": ""}),
        ("A", {}),
        ("CC", {}),
        ("=x", {}),
        ("AA=5,AA=6", {"AA": "6"}),
        (",AA", {"AA": "1"}),
        ("AA,,BB", {"AA": "1", "BB": "2"}),
        ("AA='x,y',BB", {"AA": "'x,y'", "BB": "2"}),
        ("'AA=x,y'", {"AA": "x,y"}),
        ('"AA=x y",BB', {"AA": "x y", "BB": "2"}),
        ("AA=x'y", {"AA": "x'y"}),
        ("BB,AA=x'y,z", {"BB": "2", "AA": "x'y,z"}),
        ("NONE,AA=3", {"AA": "3"}),
        ("NIL,AA", {"AA": "1"}),
    ],
)
def test_a_list_names_what_goes_along(export: str, values: dict[str, str]) -> None:
    assert choose(export, GIVEN) == Chosen(values={**values, **ALWAYS}, login=True)


@pytest.mark.parametrize(("export", "value"), [("ALL,AA=9", "9"), ("AA=9,ALL", "1"), ("all,AA=9,NONE", "9")])
def test_in_a_list_with_all_the_last_word_counts(export: str, value: str) -> None:
    assert choose(export, GIVEN) == Chosen(values={**GIVEN, "AA": value}, login=False)


def test_a_quote_that_does_not_end_is_told() -> None:
    assert is_unbalanced("AA=x'y")
    assert not is_unbalanced("AA='x',BB=\"y\"")
    assert list(tokens("a,'b,c")) == ["a", "'b,c"]


def test_what_was_true_of_the_other_jail_alone_is_left_behind() -> None:
    given = {
        "HOME": "/tmp/agent-sandbox-1/home", "TMPDIR": "/tmp/agent-sandbox-1/tmp", "PWD": "/p", "AGENT_SANDBOX": "1",
        "AGENT_SANDBOX_OWN": "/tmp/agent-sandbox-1/own", "EDITOR": "vi",
        "SSL_CERT_FILE": "/tmp/agent-sandbox-1/own/ca-bundle.pem", "PIP_CERT": "/p/own.pem",
        "PATH": "/tmp/agent-sandbox-1/own/stubs:/p/bin:/usr/bin:/run/agent-sandbox/bin:/run/agent-sandbox2:/tmp/agent-sandbox-1/own/bin",
    }  # fmt: skip
    assert without_the_other_jail(given) == {"EDITOR": "vi", "PIP_CERT": "/p/own.pem", "PATH": "/p/bin:/usr/bin:/run/agent-sandbox2"}
