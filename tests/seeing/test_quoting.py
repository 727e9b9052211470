"""Any word comes back from bash as it was."""

from __future__ import annotations

import os
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_sandbox.launcher.seeing.quoting import quote, quote_inside, reference
from tests.machines.needs import need

words = st.binary(max_size=30).filter(lambda data: b"\0" not in data).map(os.fsdecode) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30
)


def said_by_bash(source: str) -> str:
    done = subprocess.run([need("bash"), "-s"], input=f"printf %s {source}\n".encode(), capture_output=True, check=True)
    return os.fsdecode(done.stdout)


@settings(max_examples=60, deadline=None)
@given(words)
def test_a_quoted_word_is_one_word_again(word: str) -> None:
    assert said_by_bash(quote(word)) == word


@settings(max_examples=60, deadline=None)
@given(words)
def test_a_word_inside_a_quoted_script_is_one_word_again(word: str) -> None:
    assert said_by_bash(f'"$(bash -c {quote(f"printf %s {quote_inside(word)}; printf x")})"') == word + "x"


@given(words)
def test_nothing_quoted_moves_a_terminal(word: str) -> None:
    assert all(char.isprintable() or char == "\n" for char in quote(word))


def test_a_variable_is_named_and_not_copied() -> None:
    assert reference("LANG") == '"$LANG"'
    assert reference("BASH_FUNC_module%%") == '"$(printenv BASH_FUNC_module%%)"'
    assert reference("a'b") == '"$(printenv \'a\'\\\'\'b\')"'
