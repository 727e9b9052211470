"""Single values: what may be written for a kind, what stands for which name, and how it is shown again."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_sandbox.config import kinds, paths, patterns
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.typed import read_typed

SIGNS = st.text(alphabet="ab.-!]*?[", max_size=8)


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("limits.processes", 0, 0),
        ("limits.processes", "unlimited", None),
        ("limits.memory", 4096, 4096),
        ("limits.memory", "512M", 512 << 20),
        ("limits.memory", "4G", 4 << 30),
        ("limits.memory", "4GiB", 4 << 30),
        ("limits.memory", "1K", 1024),
        ("limits.memory", "2T", 2 << 40),
        ("limits.wall_time", 90, 90),
        ("limits.wall_time", "90s", 90),
        ("limits.wall_time", "15m", 900),
        ("limits.wall_time", "2h", 7200),
        ("limits.wall_time", "3d", 259200),
        ("limits.wall_time", "01:30:05", 5405),
        ("limits.wall_time", "1-12:00:00", 129600),
        ("limits.wall_time", "1-12", 129600),
        ("limits.wall_time", "1-12:30", 131400),
    ],
)
def test_amounts_become_plain_numbers(key: str, written: object, value: int | None) -> None:
    assert kinds.check(KEYS[key], written) == value


@pytest.mark.parametrize("written", ["", "G", "4g", "4.5G", "-1G", "４G", "1e3", "4 G", "9" * 30, 2**63, None, 1.0, True])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be bytes"):
        kinds.check(KEYS["limits.memory"], written)


@pytest.mark.parametrize("written", ["", "s", "2w", "1:2", "90", "1-", "-1", "1-1:1:1:1", "1-1-1", "٣s", "2h30m"])
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be seconds"):
        kinds.check(KEYS["limits.wall_time"], written)


@given(st.integers(min_value=0, max_value=2**63 - 1), st.sampled_from(["limits.memory", "limits.wall_time"]))
def test_an_amount_that_is_shown_can_be_written_again(number: int, key: str) -> None:
    shown = kinds.shown(KEYS[key], number)
    assert kinds.check(KEYS[key], read_typed(KEYS[key], shown)) == number


@given(SIGNS, SIGNS)
def test_a_pattern_matches_what_the_shells_would_match(pattern: str, name: str) -> None:
    try:
        patterns.check_glob(pattern)
    except ValueError:
        return
    assert patterns.glob_matches(pattern, name) is (fnmatch.fnmatchcase(name, pattern) or pattern == name)


@given(st.text(alphabet="AB_*?", max_size=8), st.text(alphabet="ABab_[", max_size=8))
def test_a_pattern_for_variables_matches_the_whole_name(pattern: str, name: str) -> None:
    assert patterns.names_variable(pattern, name) is fnmatch.fnmatchcase(name, pattern)
    assert patterns.names_variable(f"{pattern}/i", name) is fnmatch.fnmatchcase(name.lower(), pattern.lower())


def test_a_pattern_of_many_stars_takes_no_exponential_time() -> None:
    assert not patterns.names_variable("*A" * 400 + "B", "A" * 1000)


@pytest.mark.parametrize(
    ("path", "top", "inside"),
    [
        ("/a", "/a", True),
        ("/a/b/c", "/a", True),
        ("/ab", "/a", False),
        ("/a", "/a/b", False),
        ("/a", "/", True),
        ("/a/x/c", "/a/*", True),
        ("/a", "/a/*", False),
        ("/a/.x", "/a/*", True),
        ("/a/b/c", "/*/c", False),
        ("/dev/nvidia0", "/dev/nvidia[0-9]", True),
    ],
)
def test_a_path_stands_for_all_below_it_and_stars_stay_within_a_component(path: str, top: str, inside: bool) -> None:
    assert patterns.within(path, top) is inside


@given(st.text(alphabet="ab/.~", min_size=1, max_size=12))
def test_an_absolute_path_is_plain_whatever_was_written(written: str) -> None:
    try:
        path = paths.absolute(written, base="/base", home="/home/u")
    except ValueError:
        return
    assert path.startswith("/")
    assert not {"", ".", ".."} & set(path[1:].split("/")) or path == "/"
    assert paths.absolute(path, base="/other", home="/other") == path


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("sandbox.quiet", "true", True),
        ("sandbox.quiet", "yes", "yes"),
        ("limits.processes", "12", 12),
        ("limits.memory", "4G", "4G"),
        ("network.mode", "open", "open"),
        ("filesystem.hidden", "a, b", ["a", "b"]),
        ("filesystem.hidden", '["a,b", "c"]', ["a,b", "c"]),
        ("filesystem.hidden", "", []),
        ("environment.set", "A=1,B=x=y", {"A": "1", "B": "x=y"}),
        ("environment.set", '{A = "1,2"}', {"A": "1,2"}),
        ("network.inject", '[{host = "h"}]', [{"host": "h"}]),
    ],
)
def test_what_is_typed_becomes_what_toml_would_hold(key: str, text: str, value: object) -> None:
    assert read_typed(KEYS[key], text) == value
