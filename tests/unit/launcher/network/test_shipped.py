"""The shipped lists are entries that mean what they say, and do not speak against one another."""

from __future__ import annotations

import pytest

from agent_sandbox.config.defaults import read_lists
from agent_sandbox.config.destinations import is_within, parse_destination
from agent_sandbox.config.keys import KEYS, PRESETS
from agent_sandbox.config.kinds import check
from agent_sandbox.config.shipped import FLOOR, load_floor, load_preset, read_files


def test_every_preset_has_its_file_and_every_file_its_preset() -> None:
    assert set(read_files()) == {*PRESETS, FLOOR}


@pytest.mark.parametrize("name", PRESETS)
def test_the_entries_of_a_preset_are_read_as_they_are_written_and_stand_once(name: str) -> None:
    entries = load_preset(name)
    assert len(entries) > 10
    assert [parse_destination(entry).text() for entry in entries] == list(dict.fromkeys(entries))
    assert all(parse_destination(entry).labels for entry in entries), "hosts alone"


def test_the_shipped_block_list_is_read_as_it_is_written_and_no_preset_speaks_against_it() -> None:
    blocked = read_lists()["network.block"]
    assert list(check(KEYS["network.block"], blocked) or ()) == list(dict.fromkeys(blocked))
    clash = [
        (allow, block) for name in PRESETS for allow in load_preset(name) for block in blocked
        if is_within(parse_destination(allow), parse_destination(block)) or is_within(parse_destination(block), parse_destination(allow))
    ]  # fmt: skip
    assert clash == []


def test_the_floor_is_networks_and_ports() -> None:
    floor = load_floor()
    assert all(parse_destination(text).network for texts in floor["addresses"].values() for text in texts)
    assert all(parse_destination(text).names_port for texts in floor["ports"].values() for text in texts)
    assert not set(floor["addresses"]) & set(floor["ports"])


@pytest.mark.parametrize("entry", ["private", "own", "mail", "10.0.0.0/8", "25", "mirror.example.org", "login1:22", "[fd00::1]:443"])
def test_the_floor_is_opened_by_naming_what_to_open(entry: str) -> None:
    assert check(KEYS["network.floor_open"], [entry]) == (entry,)


@pytest.mark.parametrize("entry", ["*", "*:1-65535", "privat", "login1", "mails", "everything"])
def test_a_word_that_is_no_part_of_the_floor_opens_nothing_and_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="part of the floor"):
        check(KEYS["network.floor_open"], [entry])
