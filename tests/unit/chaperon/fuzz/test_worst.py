"""The largest that a stub can send: whatever it is made of, it takes little more memory than it has itself, and little time."""

from __future__ import annotations

import random
import tracemalloc

from agent_sandbox.chaperon.validate import script_of, validate
from agent_sandbox.chaperon.wire import FIELDS, MOST_WORD, SCRIPT, Incoming, Request, Script, WireError, encode_request
from agent_sandbox.chaperon.words import Request as Asked
from tests.unit.chaperon.asking import FREE
from tests.unit.chaperon.fuzz.cases import SHARES, changed_bytes, each
from tests.unit.chaperon.fuzz.lines import WITH_TABLES

MOST_MEMORY = 64 << 20  # bytes at any moment: request, decoded request, text, and what is made of it
PIECES = [
    "\n", "#\n", "#SBATCH -H\n", "#SBATCH\n", "#SBATCH a ", "#PBS\n", "#PBS -l x=y,\n", "#BSUB -n 1\n", "#BB\n", " ", "\t\n", "true\n", '"', "\\",
    "#SBATCH '", "-l nodes=1+", "é", "a b ", "\v\f", "#SBATCH -J\n", "#SBATCH hetjob\n", "\0", "\r", "\r\n",
]  # fmt: skip
WORDS = ["-H", "-v", "--", "-", "-Jx", "--hold", "--no-such", "--n", "-n", "1,", "1_[1-3],", "n[1-9],", "a100:1,", ":", "--mail-type=ALL", "é", ""]


def huge(chance: random.Random) -> Request:
    """Long words, many words, long scripts, many variables: each at its limit."""
    piece = chance.choice(WORDS)
    if chance.randrange(2):
        words = ["-" + "".join(chance.choices("HvQsOkhLaw", k=chance.choice([1, 3]))) * (MOST_WORD // 4)] * chance.randrange(1, 4)
    else:
        words = [piece * (chance.choice([1, 1, 60_000]) // max(len(piece), 1) or 1)] * chance.choice([1, 15, 4000, 16_000])
    words = words[: (FIELDS[b"A"] - 100) // (len(words[0].encode()) + 1)]
    size = chance.choice([0, 10_000, FIELDS[SCRIPT] - 100])
    part = "".join(chance.choices(PIECES, k=chance.choice([1, 1, 2, 5]))).encode()
    script = Script(path="j", content=b"#!/bin/sh\n" + part * (size // len(part))) if chance.randrange(3) else None
    environment = {f"SBATCH_{number}": "x" for number in range(chance.choice([0, 0, 16_000]))}
    command = "sbatch" if script or chance.randrange(2) else chance.choice(WITH_TABLES)
    return Request(command=command, words=(*words, "j"), cwd="/", environment=environment, script=script)


def answer(data: bytes) -> None:
    """From bytes to a verdict."""
    try:
        request = Incoming().feed(data)
    except WireError:
        return
    if request is None:
        return
    script_of(request.words)
    text = request.script.content.decode("utf-8", "surrogateescape") if request.script else None
    validate(Asked(command=request.command, words=request.words, environment=request.environment, cwd=request.cwd, script=text), FREE)


def test_the_largest_requests_take_little_memory_and_time() -> None:
    def check(request: Request) -> None:
        data = encode_request(request)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        answer(data)
        assert tracemalloc.get_traced_memory()[1] - before < MOST_MEMORY

    tracemalloc.start(1)
    try:
        each("worst", huge, check)
    finally:
        tracemalloc.stop()


def test_bytes_that_were_changed_in_transit_get_a_verdict_too() -> None:
    chance = random.Random(1)
    seeds = [encode_request(huge(chance)) for _ in range(6)]
    each("changed", lambda chance: changed_bytes(chance, chance.choice(seeds), seeds), answer)


def test_there_are_as_many_cases_as_were_promised() -> None:
    assert sum(SHARES.values()) >= 200_000
