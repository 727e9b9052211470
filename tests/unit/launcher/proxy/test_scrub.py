"""A secret that a host says back is blanked wherever it lies and however the answer is cut; everything else stays as it is."""

from __future__ import annotations

import html
import json
import os
from itertools import pairwise
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_sandbox.launcher.proxy.chunks import Chunks
from agent_sandbox.launcher.proxy.credential import credential_of
from agent_sandbox.launcher.proxy.head import parse_request
from agent_sandbox.launcher.proxy.local import asked_of, unquoted
from agent_sandbox.launcher.proxy.scrub import Scrub, Scrubbed, blank
from agent_sandbox.launcher.proxy.target import Malformed

SECRET = b"aab/aabaab+c"
PARTS = st.lists(st.sampled_from((SECRET, b"aab", b"a", b"aab/aab", b"/", b"text", b"+c", SECRET[:-1], SECRET[1:], b"*")), max_size=8).map(b"".join)
CUTS = st.lists(st.integers(0, 100), max_size=6)


def cut(text: bytes, at: list[int]) -> list[bytes]:
    places = sorted({min(place, len(text)) for place in at} | {0, len(text)})
    return [text[begin:end] for begin, end in pairwise(places)]


@given(PARTS, CUTS)
@example(b"x" + SECRET + b"y", [5])
@example(b"aab/" + SECRET, [4, 8, 12])
def test_what_comes_out_is_the_whole_without_the_secret(text: bytes, at: list[int]) -> None:
    scrub = Scrub(SECRET)
    out = b"".join([scrub.feed(piece) for piece in cut(text, at)]) + scrub.end()
    assert SECRET not in out and len(out) == len(text)
    assert all(mine in (theirs, ord("*")) for mine, theirs in zip(out, text, strict=True))
    if SECRET not in text:
        assert out == text


@given(PARTS, CUTS, st.sampled_from(("length", "chunks", "bare", "end")))
def test_every_frame_holds_the_same(text: bytes, at: list[int], kind: str) -> None:
    raw, rest = text, b"" if kind == "end" else b"NEXT"
    if kind in ("chunks", "bare"):
        raw = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in cut(text, at)) + b"0\r\n\r\n"
    scrubbed = Scrubbed(SECRET, length=len(text) if kind == "length" else None, chunked=kind in ("chunks", "bare"), framed=kind == "chunks")
    if kind == "length" and not text:
        return
    out = b""
    for piece in [*cut(raw + rest, at), *([b""] if kind == "end" else [])]:
        if not scrubbed.done:
            out += scrubbed.feed(piece)
    found = Chunks(bare=True).feed(out) if kind == "chunks" else out
    assert scrubbed.done and len(found) == len(text) and SECRET not in found


def test_other_ways_to_write_it_are_blanked_too() -> None:
    secret = 'p/q+r "s\\t%'
    written = [
        secret, quote(secret, safe=""), quote_plus(secret), quote(secret, safe="").lower(), secret.replace("\\", "\\\\").replace('"', '\\"'),
        quote(secret), quote_plus(secret, safe="/"), json.dumps(secret)[1:-1], json.dumps(secret).replace("/", "\\/")[1:-1], html.escape(secret),
        "p/q\\u002Br \\u0022s\\\\t%",  # as .NET does
        "p\\/q\\u002br \\u0022s\\\\t%",
        "".join(sign if sign.isalnum() else f"\\u{ord(sign):04x}" for sign in secret),
    ]  # fmt: skip
    for text in written:
        assert blank(f"<{text}>".encode(), secret.encode()) == b"<" + b"*" * len(text) + b">", text


def test_the_end_of_a_line_is_not_held_back() -> None:
    scrub = Scrub(SECRET)
    assert [scrub.feed(b"data: 1\n\n"), scrub.feed(b"data: a"), scrub.feed(b"\n"), scrub.end()] == [b"data: 1\n\n", b"", b"data: a\n", b""]


@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "utf-16-be"])
@given(CUTS)
def test_two_bytes_to_a_character_hide_nothing(code: str, at: list[int]) -> None:
    """A client may ask for it: Accept: text/plain; charset=utf-16."""
    scrub, text = Scrub(SECRET), f"<{SECRET.decode()}>".encode(code)
    out = b"".join([scrub.feed(piece) for piece in cut(text, at)]) + scrub.end()
    assert len(out) == len(text) and b"*" * 2 * len(SECRET) in out and b"\0" * 3 not in out


@given(st.binary(max_size=40), CUTS)
def test_what_is_held_back_tells_nothing_of_the_secret(text: bytes, at: list[int]) -> None:
    """Two secrets of one length: who chooses the text sees the same pieces come, at the same moments."""

    def pieces(secret: bytes) -> list[int]:
        scrub = Scrub(secret)
        return [len(scrub.feed(piece)) for piece in cut(SECRET[:5] + text + SECRET[:7], at)]

    assert pieces(SECRET) == pieces(b"zyx/wvutsr+q")


API = credential_of(("api", "localhost", 443, "/v1", "x-api-key", "", "", SECRET.decode(), ""))
TARGETS = st.lists(st.sampled_from(("/", "api", "..", "%2e", "%2f", "%25", "?", ";", "\\", "%", "a", "//", "@", ":1", "%00", "API", "#")), max_size=8)


@given(st.tuples(st.sampled_from(("/", "/api", "/api/")), TARGETS.map("".join)).map("".join), st.sampled_from(("GET", "POST", "TRACE", "X")))
@example("/api/../x", "GET")
@example("/api/%252e%2e", "POST")
@example("/apix/..", "GET")
def test_whatever_is_asked_for_lies_below_the_credentials_path(target: str, method: str) -> None:
    request = parse_request(f"{method} {target} HTTP/1.1\r\nHost: x".encode(), 10)
    try:
        asked = asked_of(request, {"api": API})
    except Malformed:
        return
    assert method in ("GET", "POST") and asked.path.startswith(b"/v1")
    path = unquote(unquote(asked.path.partition(b"?")[0].decode()))
    assert os.path.normpath(path).startswith("/v1") and asked.path[3:4] in (b"", b"/", b"?")


@given(st.text(max_size=20))
def test_a_path_is_read_as_a_server_reads_it(text: str) -> None:
    assert unquoted(quote(text, safe="").encode()) == text.encode()
