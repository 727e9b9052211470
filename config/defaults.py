"""The shipped defaults → the first layer. Reads one file of the package.

An installed copy carries the lists ready to load (freeze.py writes them beside defaults.toml when it is installed);
a source tree has none and reads the TOML.
"""

from __future__ import annotations

import marshal
import os

from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.patterns import within
from agent_sandbox.config.settings import DEFAULT_LAYER, Entry, Layer, Rank, Value

HERE = os.path.dirname(__file__)
TOML = os.path.join(HERE, "defaults.toml")
FROZEN = os.path.join(HERE, "defaults.marshal")


def load_defaults(home: str) -> Layer:
    lists, home = load_lists(), home.rstrip("/")
    values = {name: _listed(name, entries, home) for name, entries in lists.items()}
    for key in KEYS.values():
        if key.default is not None:
            values[key.name] = Value(rank=Rank.DEFAULT, layer=DEFAULT_LAYER, scalar=key.default)
    return Layer(name=DEFAULT_LAYER, rank=Rank.DEFAULT, values=values)


def load_lists() -> dict[str, list[str]]:
    try:
        with open(FROZEN, "rb") as file:
            lists: dict[str, list[str]] = marshal.load(file)
            return lists
    except FileNotFoundError:
        return read_lists()


def read_lists() -> dict[str, list[str]]:
    import tomllib

    with open(TOML, "rb") as file:
        sections = tomllib.load(file)
    return {f"{section}.{name}": entries for section, body in sections.items() for name, entries in body.items()}


def _listed(name: str, written: list[str], home: str) -> Value:
    key = KEYS[name]
    texts = [text if text[0] == "/" else f"{home}/{text}" for text in written] if key.paths else written
    if key.real:
        texts = [os.path.realpath(text) for text in texts]
    if name == "filesystem.hidden":
        texts = [text for text in texts if not within(home, text)]  # /root is there for root
    entries = [Entry(value=text, rank=Rank.DEFAULT, layer=DEFAULT_LAYER, key=name) for text in texts]
    return Value(rank=Rank.DEFAULT, layer=DEFAULT_LAYER, entries=tuple(entries))
