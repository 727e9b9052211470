"""Bytes of any kind in the FIFOs: a request or a refusal in words, the same however they come in pieces."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from pathlib import Path

from agent_sandbox.chaperon import wire
from agent_sandbox.chaperon.gate import ANNOUNCEMENT, AT_ONCE, GREETING, Gate
from agent_sandbox.chaperon.wire import Incoming, Request, Script, WireError, encode_request, frame
from tests.unit.chaperon.fuzz.cases import LENGTHS, changed_bytes, each

CORPUS = [
    encode_request(request) for request in (
        Request(command="sbatch", words=("-n", "4", "", "job.sh"), cwd="/p", environment={"A": "b=c", "SBATCH_QOS": "high"}, umask=0o027),
        Request(command="sbatch", words=("--wrap=true",), cwd="/p/q", environment={"PATH": "/bin:/usr/bin", "HOME": "/h", "X": "\udcff"}),
        Request(command="sbatch", words=("job.sh", "é"), cwd="/", environment={}, script=Script(path="job.sh", content=b"#!/bin/sh\n\0\xff")),
        Request(command="sbatch", words=(), cwd="/", environment={}, script=Script(path="", content=b"#!/bin/sh\n#SBATCH -n 3\ntrue\n" * 3)),
        Request(command="squeue", words=("-j", "1,2_[3-4]", "--format=%i %j"), cwd="/p", environment={"SQUEUE_SORT": "i"}),
        Request(command="scontrol", words=("update", "JobId=5", "TimeLimit=5"), cwd="/p", environment={}),
    )
]  # fmt: skip


def frames_of(data: bytes) -> list[bytes]:
    """The frames after the first, as they are."""
    found, at = [], wire.OPENING
    while at < len(data):
        end = at + wire.HEAD + int.from_bytes(data[at + 1 : at + wire.HEAD])
        found.append(data[at:end])
        at = end
    return found


def mended(data: bytes) -> bytes:
    """With a first frame that agrees with the length, so that what follows is looked at."""
    return frame(b"V", b"\0\1" + len(data[wire.OPENING :]).to_bytes(4)) + data[wire.OPENING :]


def restructured(chance: random.Random, data: bytes) -> bytes:
    """Frames repeated, dropped, exchanged, of another request, of an unknown kind, with other content, or with a length that is a lie."""
    frames = frames_of(data)
    at = chance.randrange(len(frames))
    match chance.randrange(9):
        case 0:
            frames[at:at] = [frames[at]] * chance.choice([1, 1, 2, 50])
        case 1:
            del frames[at]
        case 2:
            chance.shuffle(frames)
        case 3:
            frames[at] = chance.choice(frames_of(chance.choice(CORPUS)))
        case 4:
            frames[at] = frame(bytes([chance.randrange(256)]), frames[at][wire.HEAD :])
        case 5 | 6 | 7:
            content = frames[at][wire.HEAD :]
            frames[at] = frame(frames[at][:1], changed_bytes(chance, content, [content, b"\0" * 40, b"\xff=\0" * 9]))
        case _:
            frames[at] = frames[at][:1] + chance.choice(LENGTHS) + frames[at][wire.HEAD :]
    return mended(bytes(wire.OPENING) + b"".join(frames))


def said(chance: random.Random) -> tuple[bytes, list[int]]:
    """What a stub says, and where it is cut into pieces."""
    data = chance.choice(CORPUS)
    if chance.randrange(3):
        data = restructured(chance, data)
    if chance.randrange(3) == 0:
        data = changed_bytes(chance, data, CORPUS)
        data = mended(data) if chance.randrange(4) else data
    if chance.randrange(20) == 0:
        return data, list(range(len(data)))
    return data, sorted(chance.choices(range(len(data) + 1), k=chance.randrange(4)))


def heard(pieces: list[bytes]) -> Request | str | None:
    incoming = Incoming()
    try:
        return next((request for piece in pieces if (request := incoming.feed(piece))), None)
    except WireError as error:
        return str(error)


def test_bytes_are_a_request_or_refused_in_words_however_they_come() -> None:
    seen = Counter[str]()

    def check(case: tuple[bytes, list[int]]) -> None:
        data, cuts = case
        whole = heard([data])
        pieces = heard([data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)])
        follows = whole == "something follows the end of the request"
        assert pieces == whole or (follows and pieces == heard([data[: wire.OPENING + wire.size_of_rest(data[: wire.OPENING])]]))
        if isinstance(whole, Request):
            assert heard([encode_request(whole)]) == whole
            assert whole.cwd.startswith("/") and whole.command.isalpha() and 0 <= whole.umask <= 0o777
        seen[" ".join(whole.split()[:3]) if isinstance(whole, str) else type(whole).__name__] += 1

    each("frames", said, check)
    assert {"Request", "NoneType", "something follows the", "a frame of", "a frame is", "the umask cannot", "this is not"} <= set(seen)
    assert seen["Request"] > seen.total() / 20


def shouted(chance: random.Random) -> list[bytes]:
    """What stands in `ask`, in the pieces in which it comes."""
    parts = []
    for _ in range(chance.randrange(1, 6)):
        good = b"\n%s%s\n" % (GREETING, chance.randbytes(16).hex().encode())
        match chance.randrange(6):
            case 0 | 1:
                parts.append(good)
            case 2:
                parts.append(chance.randbytes(chance.choice([1, 5, 60, 300, 5000])))
            case 3:
                parts.append(changed_bytes(chance, good, [good, b"\n" * 50, GREETING]))
            case 4:
                parts.append(good.strip())
            case _:
                parts.append(good.upper() if chance.randrange(2) else good.replace(b"chaperon/1", b"chaperon/2"))
    return parts


def test_announcements_are_those_lines_that_are_whole_whatever_stands_between(tmp_path: Path) -> None:
    (tmp_path / "fifos").mkdir()
    gate = Gate(str(tmp_path / "fifos"))
    stream = b""
    seen = Counter[bool]()

    def check(pieces: list[bytes]) -> None:
        nonlocal stream
        found: list[str] = []
        for piece in pieces:
            os.write(gate.ask, piece)
            for _ in range(len(piece) // AT_ONCE + 1):
                found += gate.announced()
        *lines, stream = (stream + b"".join(pieces)).split(b"\n")
        assert found == [match[1].decode() for line in lines if (match := re.fullmatch(b"chaperon/1 ([0-9a-f]{32})", line))]
        assert len(gate._rest) <= ANNOUNCEMENT
        seen[bool(found)] += 1

    each("announcements", shouted, check)
    gate.close()
    assert min(seen[True], seen[False]) > seen.total() / 20
