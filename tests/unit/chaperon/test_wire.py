"""What a stub may say, and that nothing else is a request."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_sandbox.chaperon import wire
from agent_sandbox.chaperon.orders import pack, unpack
from agent_sandbox.chaperon.wire import Incoming, Request, Script, WireError, decode_request, encode_request, frame
from tests.unit.chaperon.serving import orders_for

PLAIN = Request(command="sbatch", words=("-n", "4", "", "job.sh"), cwd="/p", environment={"A": "b=c"}, umask=0o027)
WITH_SCRIPT = Request(**{**PLAIN.__dict__, "script": Script(path="job.sh", content=b"#!/bin/sh\n\0\xff")})

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]) | st.integers(0xDC80, 0xDCFF).map(chr), max_size=20).filter(
    lambda text: text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == text
)
requests = st.builds(
    Request, command=st.sampled_from(["sbatch", "squeue"]), words=st.lists(texts, max_size=6).map(tuple), cwd=texts.map(lambda text: f"/{text}"),
    environment=st.dictionaries(texts.filter(lambda text: text and "=" not in text), texts, max_size=4), umask=st.integers(0, 0o777),
    script=st.none() | st.builds(Script, path=texts, content=st.binary(max_size=50)),
)  # fmt: skip


@given(requests, st.integers(1, 40))
def test_what_is_said_is_what_is_heard_in_pieces_of_any_size(request: Request, size: int) -> None:
    data, incoming = encode_request(request), Incoming()
    heard = [incoming.feed(data[at : at + size]) for at in range(0, len(data), size)]
    assert heard == [None] * (len(heard) - 1) + [request]


@given(st.binary(max_size=200))
@settings(max_examples=3000)
def test_arbitrary_bytes_are_refused_in_words(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_request(data)


def mended(data: bytes) -> bytes:
    """With a first frame that agrees with the length, so that what follows is looked at."""
    rest = data[wire.OPENING :]
    return frame(b"V", b"\0\1" + len(rest).to_bytes(4)) + rest


def request_of(*frames: bytes) -> bytes:
    return mended(bytes(wire.OPENING) + b"".join(frames))


GOOD = {kind: frame(kind, content) for kind, content in {
    wire.NAME: b"sbatch", wire.WORDS: b"a\0", wire.DIRECTORY: b"/", wire.VARIABLES: b"", wire.UMASK: b"\0\22", wire.END: b"",
}.items()}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        (wire.NAME, b"s" * 33, "33 bytes, 32 are allowed"), (wire.NAME, b"../sh", "cannot be read"), (wire.NAME, b"", "cannot be read"),
        (wire.WORDS, b"a" * (1 << 20) + b"\0", "1048577 bytes, 1048576 are allowed"), (wire.WORDS, b"\0" * 20_000, "20000 of them, 16384 are"),
        (wire.WORDS, b"a" * (1 << 17) + b"\0", "131072 bytes, 131071 are allowed"), (wire.WORDS, b"a", "no end"),
        (wire.DIRECTORY, b"here", "no absolute path"), (wire.DIRECTORY, b"/\0", "no absolute path"), (wire.DIRECTORY, b"/" * 4097, "4096 are"),
        (wire.VARIABLES, b"A=" + b"b" * (1 << 17) + b"\0", "131071 are allowed"), (wire.UMASK, b"\2\0", "umask"), (wire.UMASK, b"", "umask"),
        (wire.END, b"x", "0 are allowed"),
    ],
)  # fmt: skip
def test_a_field_that_is_too_long_or_wrong_is_refused_with_its_number(kind: bytes, content: bytes, said: str) -> None:
    assert decode_request(request_of(*GOOD.values())).command == "sbatch"
    with pytest.raises(WireError, match=said):
        decode_request(request_of(*{**GOOD, kind: frame(kind, content)}.values()))


@pytest.mark.parametrize("kind", [*GOOD])
def test_each_field_is_there_once_and_in_its_place(kind: bytes) -> None:
    rest = [content for other, content in GOOD.items() if other != kind]
    for frames in (rest, [*GOOD.values(), GOOD[kind]], [*rest, GOOD[kind]] if kind != wire.END else [GOOD[kind], *rest]):
        with pytest.raises(WireError):
            decode_request(request_of(*frames))


@pytest.mark.parametrize("kind", [*wire.RESERVED, b"O", b"\0", b"\xff"])
def test_kinds_that_are_unknown_or_for_later_are_refused(kind: bytes) -> None:
    with pytest.raises(WireError, match="unknown"):
        decode_request(request_of(*list(GOOD.values())[:-1], frame(kind, b""), GOOD[wire.END]))


def test_what_is_too_long_is_refused_before_it_comes() -> None:
    with pytest.raises(WireError, match="4294967295 bytes"):
        Incoming().feed(frame(b"V", b"\0\1\xff\xff\xff\xff"))


def test_another_version_is_refused_in_words() -> None:
    with pytest.raises(WireError, match=r"version 2 .* version 1"):
        Incoming().feed(frame(b"V", b"\0\2\0\0\0\0"))


def test_the_first_variable_of_a_name_counts_as_it_does_for_programs() -> None:
    data = request_of(*{**GOOD, wire.VARIABLES: frame(wire.VARIABLES, b"A=1\0A=2\0=x\0nothing\0")}.values())
    assert decode_request(data).environment == {"A": "1"}


def test_orders_are_what_was_ordered(tmp_path: Path) -> None:
    orders = orders_for(tmp_path)
    assert unpack(pack(orders)) == orders
