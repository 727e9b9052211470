"""Lines of account files, taken out and put back: byte by byte, whatever others did to other lines meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_sandbox.admin.accountlines import Conflict, Line, find_lines, put_back

GROUP = "root:x:0:\nbot:x:995:alice\nusers:x:100:\n"


def line(name: str, text: str, after: str = "", file: str = "group") -> Line:
    return Line(file=file, name=name, text=text, after=after)


def test_a_line_is_found_with_its_place() -> None:
    assert find_lines("group", GROUP, ("bot", "clio")) == (line("bot", "bot:x:995:alice", "root"), line("clio", ""))


def test_a_name_is_whole() -> None:
    assert find_lines("group", "robot:x:1:\nbotany:x:2:\n", ("bot",))[0].text == ""


@pytest.mark.parametrize(("before", "now", "result"), [
    (line("bot", "bot:x:995:alice", "root"), "root:x:0:\nusers:x:100:\n", GROUP),
    (line("users", "users:x:100:", "bot"), "root:x:0:\nbot:x:995:alice\n", GROUP),
    (line("root", "root:x:0:"), "bot:x:995:alice\nusers:x:100:\n", GROUP),
    (line("clio", ""), f"{GROUP}clio:x:994:\n", GROUP),
    (line("bot", "bot:x:995:alice", "root"), "root:x:0:\nbot:x:995:alice,clio\nusers:x:100:\n", GROUP),
    (line("bot", "bot:x:995:", "gone"), "root:x:0:", "root:x:0:\nbot:x:995:\n"),
])  # fmt: skip
def test_a_line_goes_back_where_it_was(before: Line, now: str, result: str) -> None:
    assert put_back(now, before) == result


def test_of_a_groups_members_only_our_change_is_taken_back() -> None:
    before, left = line("bot", "bot:x:995:alice,eve", "root"), line("bot", "bot:x:995:alice,clio", "root")
    assert put_back("bot:x:995:alice,clio,bob\n", before, left) == "bot:x:995:alice,bob,eve\n"


def test_another_line_that_somebody_changed_is_a_conflict() -> None:
    before, left = line("clio", "clio:!:1:", file="shadow"), line("clio", "clio:!!:1:", file="shadow")
    with pytest.raises(Conflict, match="changed by somebody else"):
        put_back("clio:secret:1:\n", before, left)


def test_a_number_that_became_somebody_elses_is_not_given_twice() -> None:
    with pytest.raises(Conflict, match="somebody else's now"):
        put_back("root:x:0:0::/:/x\neve:x:995:1::/:/x\n", line("clio", "clio:x:995:994::/:/x", "root", file="passwd"))


names = st.lists(st.from_regex(r"[a-z]{1,6}", fullmatch=True), unique=True, min_size=1, max_size=8)


@given(names, st.data())
def test_removing_and_putting_back_changes_no_byte(people: list[str], data: st.DataObject) -> None:
    content = "".join(f"{name}:x:{number}:\n" for number, name in enumerate(people))
    one = data.draw(st.sampled_from(people))
    saved = find_lines("group", content, (one,))[0]
    without = put_back(content, line(one, ""))
    assert one not in [text.split(":")[0] for text in without.splitlines()]
    assert put_back(without, saved) == content
