"""The shipped network files: allow lists by preset, and the floor. Reads files of the package, when a question needs them.

An installed copy carries them ready to load, as it does the defaults; a source tree reads the TOML.
"""

from __future__ import annotations

import functools
import marshal
import os

HERE = os.path.join(os.path.dirname(__file__), "presets")
FROZEN = os.path.join(HERE, "presets.marshal")
FLOOR, ADDRESSES, PORTS = "floor", "addresses", "ports"
OWN = "own"  # the part of the floor that only a machine knows: its own addresses


def load_preset(name: str) -> tuple[str, ...]:
    return tuple(load_files()[name]["allow"])


def load_floor() -> dict[str, dict[str, list[str]]]:
    """`addresses` and `ports`: the name of each part → its networks or ports."""
    return load_files()[FLOOR]


def floor_parts() -> tuple[str, ...]:
    return (*[name for parts in load_floor().values() for name in parts], OWN)


def read_files() -> dict[str, dict[str, dict[str, list[str]]]]:
    import tomllib

    found = {}
    for file in sorted(name for name in os.listdir(HERE) if name.endswith(".toml")):
        with open(os.path.join(HERE, file), "rb") as opened:
            found[file.removesuffix(".toml")] = tomllib.load(opened)
    return found


@functools.cache
def load_files() -> dict[str, dict[str, dict[str, list[str]]]]:
    try:
        with open(FROZEN, "rb") as file:
            found: dict[str, dict[str, dict[str, list[str]]]] = marshal.load(file)
            return found
    except FileNotFoundError:
        return read_files()
