"""Seeded cases for the fuzzers: how many, from which seed, with a watchdog over each, and what is done to bytes and text.

    SANDBOX_FUZZ_SEED=7 SANDBOX_FUZZ_CASES=1000 pytest tests/unit/chaperon/fuzz      another seed, another number for each test

Whatever fails says the seed, the number of the case and the case itself.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

SEED = int(os.environ.get("SANDBOX_FUZZ_SEED", "4"))
SECONDS = 3.0  # of this process's own time, for one case: a slow machine does not count
# How many cases each fuzzer has. The whole is what CI is to see of it.
SHARES = {
    "frames": 80_000, "announcements": 20_000, "lines": 60_000, "scripts": 40_000, "getopt": 40_000, "values": 30_000, "patterns": 15_000,
    "documents": 8_000, "rows": 8_000, "envelopes": 4_000, "variables": 8_000, "ledgers": 4_000,
    "worst": 150, "changed": 300, "getopt over real tables": 3_000, "sbatch": 150,
}  # fmt: skip
ODD = " \t\f\v\r\"'\\#:=,-_[]*%+@/.~$`;|&()\0\n\x1b\u00a0\u0663aN1bj9éx\udc80"
LENGTHS = (b"\0\0\0\0", b"\0\0\0\1", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\x10\0\0", b"\0\x60\0\0")


def number_of(share: str) -> int:
    given = os.environ.get("SANDBOX_FUZZ_CASES")
    return int(given) if given else SHARES[share] * (10 if os.environ.get("SANDBOX_SOAK") else 1)


@contextlib.contextmanager
def watchdog() -> Iterator[None]:
    """A case that takes too long fails where it is."""

    def bark(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s for one case")

    before = signal.signal(signal.SIGVTALRM, bark)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)


def each(share: str, make: Callable[[random.Random], T], check: Callable[[T], None], part: int = 0, parts: int = 1) -> None:
    """Make and check one case after the other; of one that fails, say how to have it again."""
    chance = random.Random(f"{SEED} {share} {part}")
    with watchdog():
        for number in range(number_of(share) // parts):
            case = make(chance)
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                check(case)
            except BaseException as error:
                error.add_note(f"SANDBOX_FUZZ_SEED={SEED}, {share} part {part}, case {number}: {repr(case)[:4000]}")
                raise
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def odd_text(chance: random.Random, most: int = 12) -> str:
    return "".join(chance.choices(ODD, k=chance.randrange(most)))


def changed_text(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    match chance.randrange(5):
        case 0:
            return text[:at] + chance.choice(ODD) + text[at:]
        case 1:
            return text[:at] + text[at + 1 :]
        case 2:
            return text[:at] + chance.choice(ODD) + text[at + 1 :]
        case 3:
            return text[:at]
        case _:
            return text + text[at:]


def changed_bytes(chance: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Flipped, cut, spliced with another, with a length that is a lie."""
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(7):
            case 0:
                changed[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del changed[at : at + chance.randrange(1, 9)]
            case 2:
                changed[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 3:
                changed[at : at + 4] = chance.choice(LENGTHS)
            case 4:
                other = chance.choice(others)
                cut = chance.randrange(len(other) + 1)
                changed[at:] = other[cut:]
            case 5:
                del changed[at:]
            case _:
                changed[at : at + 1] = bytes([changed[at] ^ (1 << chance.randrange(8))]) if at < len(changed) else b""
    return bytes(changed)
