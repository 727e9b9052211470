"""Command lines driven in a jail of the made internet, or outside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.machines.copies import PYTHON
from tests.machines.internet.machine import Internet
from tests.machines.jail import Jail, Result
from tests.network import driver

SOON = 12.0  # seconds: a program that is refused and says so, on a machine with much else to do; a time-out of any of them is longer


@dataclass(frozen=True, slots=True)
class Did:
    code: int | str
    out: str
    err: str
    seconds: float

    @property
    def said(self) -> str:
        return self.out + self.err


def inside(
    net: Internet, jail: Jail, mode: str, lines: Mapping[str, str], env: Mapping[str, str] | None = None, told: str = ""
) -> dict[str, Did]:
    """`told`: what the launcher itself says, which is nothing."""
    return _read(net.inside(jail, *_words(lines), options=("--quiet", "--network", mode), env=env), told)


def outside(net: Internet, jail: Jail, lines: Mapping[str, str], env: Mapping[str, str] | None = None) -> dict[str, Did]:
    return _read(net.outside(jail, *_words(lines), env=env))


def _words(lines: Mapping[str, str]) -> list[str]:
    return [PYTHON, "-I", "-c", Path(driver.__file__).read_text(), json.dumps(dict(lines))]


def _read(result: Result, told: str = "") -> dict[str, Did]:
    assert result.code == 0 and (told in result.err if told else result.err == ""), result
    return {name: Did(*found) for name, found in json.loads(result.out).items()}
