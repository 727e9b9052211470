"""Names, patterns and values of the environment filter."""

from __future__ import annotations

import pytest

from agent_sandbox.launcher.resolve.environment import Names, without_password

PATTERNS = ("SSH_*", "*_TOKEN", "*password*/i", "EXACT", "A*B", "?X", "*PASS")


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("SSH_AUTH_SOCK", "SSH_*"), ("GH_TOKEN", "*_TOKEN"), ("myPassWord1", "*password*/i"), ("EXACT", "EXACT"), ("AxxB", "A*B"),
        ("ZX", "?X"), ("MYPASS", "*PASS"), ("EXACTLY", ""), ("SSHX", ""), ("gh_token", ""), ("PATH", ""), ("XAxxB", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_name_is_matched_by_the_pattern_that_names_it(name: str, rule: str) -> None:
    assert Names(PATTERNS).match(name) == rule


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ("http://ada:secret@proxy:3128", "http://proxy:3128"),
        ("https://ghp_0123456789abcdefghij@github.com/x", "https://github.com/x"),
        ("https://ada@host/path", "https://ada@host/path"),
        ("git@host:repo", "git@host:repo"),
        ("a=http://u:p@h b=ftp://x:y@z/", "a=http://h b=ftp://z/"),
        ("mail@example.org", "mail@example.org"),
        ("postgresql+psycopg://u:p%40ss@db/x?y=1", "postgresql+psycopg://db/x?y=1"),
    ],
)
def test_a_password_in_a_url_goes_and_nothing_else_does(value: str, clean: str) -> None:
    assert without_password(value) == clean
