"""A git configuration enters the jail without what logs in."""

from __future__ import annotations

from agent_sandbox.launcher.resolve.seeds import without_secrets

WHOLE = """\
[user]
\tname = Ada
\temail = ada@example.org
[credential]
\thelper = store
[credential "https://github.com"]
\thelper = !gh auth git-credential
[http "https://host"]
\textraHeader = Authorization: Basic c2VjcmV0
[url "https://x-token:abc@host/"]
\tinsteadOf = https://host/
[url "git@host:"]
\tinsteadOf = https://other/
[include]
\tpath = ~/.gitconfig-secrets
[remote "up"]
\turl = https://user:pass@host/repo
\tfetch = +refs/heads/*:refs/remotes/up/*
[mine]
\tapiToken = \\
hidden-on-the-next-line
\tcolour = blue
"""
CLEAN = """\
[user]
\tname = Ada
\temail = ada@example.org
[url "git@host:"]
\tinsteadOf = https://other/
[remote "up"]
\tfetch = +refs/heads/*:refs/remotes/up/*
[mine]
\tcolour = blue
"""


def test_log_ins_go_and_the_rest_stays() -> None:
    assert without_secrets(WHOLE) == CLEAN


def test_nothing_becomes_nothing() -> None:
    assert without_secrets("") == ""
