"""Tables parsed by another process: a hint by content, never a source."""

from __future__ import annotations

import marshal

import pytest

from agent_sandbox.config.ahead import Ahead
from agent_sandbox.config.errors import UserError

SAID = b'[network]\nmode = "isolated"\n'


def test_known_bytes_are_not_parsed_again() -> None:
    known = marshal.dumps({SAID: {"network": {"mode": "from elsewhere"}}})
    assert Ahead(lambda: known)(SAID, "/a.toml") == {"network": {"mode": "from elsewhere"}}


@pytest.mark.parametrize("packed", [b"", b"garbage", marshal.dumps({SAID + b" ": {}})[:-3], marshal.dumps({SAID + b" ": {}})])
def test_other_bytes_are_parsed_whatever_the_hint_says(packed: bytes) -> None:
    assert Ahead(lambda: packed)(SAID, "/a.toml") == {"network": {"mode": "isolated"}}
    with pytest.raises(UserError, match=r"/a\.toml:1"):
        Ahead(lambda: packed)(b"mode = \n", "/a.toml")


def test_nothing_is_asked_for_until_there_is_a_file() -> None:
    asked: list[int] = []

    def fetch() -> bytes:
        asked.append(1)
        return b""

    parser = Ahead(fetch)
    assert asked == []
    parser(SAID, "/a.toml")
    parser(SAID, "/a.toml")
    assert asked == [1]
