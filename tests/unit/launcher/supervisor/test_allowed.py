"""Real paths: what lies in a place and what only looks like it."""

from __future__ import annotations

import pytest

from agent_sandbox.launcher.supervisor.allowed import Places
from agent_sandbox.launcher.supervisor.connect import packed


@pytest.mark.parametrize(
    ("path", "held"),
    [
        (b"/a/b", True), (b"/a/b/c", True), (b"/a/b/c (deleted)", True), (b"/a/b ", False), (b"/a/bc", False), (b"/a", False), (b"/", False),
        (b"/memfd:/a/b", False), (b"pipe:[1]", False), (b"/caf\xe9/x", True), (b"", False),
    ],
)  # fmt: skip
def test_a_place_holds_itself_and_what_lies_below(path: bytes, held: bool) -> None:
    assert Places(("/a/b", "/caf\udce9/")).hold(path) is held


def test_the_root_holds_every_path_and_nothing_without_one() -> None:
    root = Places(("/",))
    assert [root.hold(path) for path in (b"/", b"/x", b"/x/y", b"socket:[1]", b"")] == [True, True, True, False, False]


def test_no_places_hold_nothing() -> None:
    assert not Places(()).hold(b"/")


def test_an_old_address_is_the_same_as_its_mapped_one() -> None:
    assert packed("127.0.0.1") == packed("::ffff:127.0.0.1") != packed("::1")
