"""Whatever our readers take, other readers must read in the same way: h11 and the standard library for heads and bodies, the C library for hosts.

They may take more than we do, and we less than they: what two of them could read differently is what smuggling is made of.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import h11
import pytest
from hypothesis import example, find, given, settings
from hypothesis import strategies as st

from agent_sandbox.launcher.proxy.chunks import Chunks
from agent_sandbox.launcher.proxy.head import Request, Response, parse_request, parse_response
from agent_sandbox.launcher.proxy.rewrite import request_head
from agent_sandbox.launcher.proxy.socks import Asked, parse_asked, parse_greeting
from agent_sandbox.launcher.proxy.target import Malformed, parse_authority
from agent_sandbox.launcher.proxy.wanted import plain_target

EXAMPLES = 20_000 if os.environ.get("SANDBOX_SOAK") else 600
LONG = settings(max_examples=5000, derandomize=True, deadline=None)
TAIL = b"3\r\nabc\r\n0\r\n\r\n" + b"y" * 40  # what comes after a head: chunks, or so many bytes
LINES = (
    b"Host: a.test", b"Host: b.test", b"Content-Length: 3", b"Content-Length: 7", b"content-length:3", b"Content-Length: 3, 3", b"Content-Length : 3",
    b"Transfer-Encoding: chunked", b"transfer-encoding:\tCHUNKED ", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: identity",
    b"X-A: 1", b"X-B:", b" folded: 1", b"\tfolded", b"Connection: close", b"Connection: keep-alive, X-A", b"Expect: 100-continue", b"X: caf\xc3\xa9",
)  # fmt: skip
ENDS = st.sampled_from((b"\r\n",) * 12 + (b"\n", b"\r", b"\r\r\n", b"\n\r\n", b"\0\r\n"))
STARTS = (b"GET http://a.test/ HTTP/1.1", b"POST http://a.test/x?y HTTP/1.1", b"PUT http://a.test/ HTTP/1.0", b"GET  / HTTP/1.1", b"HEAD / HTTP/1.1 ")
ANSWERS = (b"HTTP/1.1 200 OK", b"HTTP/1.0 404 No", b"HTTP/1.1 206", b"HTTP/1.1 500 ", b"HTTP/1.1  200 OK", b"HTTP/1.10 200 OK")
INSTEAD = (b"", b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"\0", b",", b"\x0b", b"\x85")
MUTATIONS = st.lists(st.tuples(st.integers(0, 400), st.sampled_from(INSTEAD)), max_size=2)


def mutate(raw: bytes, mutations: list[tuple[int, bytes]]) -> bytes:
    """Something put in the place of one byte."""
    for at, piece in mutations:
        at %= max(1, len(raw))
        raw = raw[:at] + piece + raw[at + 1 :]
    return raw


@st.composite
def heads(draw: st.DrawFn, starts: tuple[bytes, ...]) -> bytes:
    lines = [draw(st.sampled_from(starts)), *draw(st.lists(st.sampled_from(LINES), max_size=6))]
    if draw(st.integers(0, 3)):
        lines.insert(1, draw(st.sampled_from(LINES[:2])))
    return mutate(b"".join(line + draw(ENDS) for line in lines), draw(MUTATIONS)) + b"\r\n" + TAIL


def body_of(head: Request | Response, rest: bytes) -> bytes:
    """As the pumps move it."""
    if head.chunked:
        return Chunks(bare=True).feed(rest)
    return rest[: head.length] if head.length is not None else b"" if isinstance(head, Request) else rest


def read_by_h11(connection: h11.Connection, stream: bytes) -> tuple[h11.Request | h11.Response, bytes] | None:
    """The head and the body; None = refused, or not understood as one message."""
    connection.receive_data(stream)
    connection.receive_data(b"")
    body = b""
    try:
        head = connection.next_event()
        if not isinstance(head, h11.Request | h11.Response):
            return None
        while isinstance(event := connection.next_event(), h11.Data):
            body += bytes(event.data)
    except h11.RemoteProtocolError:
        return None
    return (head, body) if isinstance(event, h11.EndOfMessage) else None


def fields_of(head: Request | Response) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, _, value in head.fields]


def same_fields(ours: Request | Response, theirs: h11.Request | h11.Response) -> bool:
    """h11 gives the coding in lower case. Of two lengths it takes one, and others take the other: there is one at most."""
    fields = fields_of(ours)
    lengths = [name for name, _ in fields if name in (b"content-length", b"transfer-encoding")]
    lowered = [(name, value.lower() if name == b"transfer-encoding" else value) for name, value in fields]
    return len(lengths) <= 1 and lowered == list(theirs.headers)


@settings(max_examples=EXAMPLES, deadline=None)
@given(heads(STARTS))
@example(STARTS[0] + b"\r\nHost: a.test\r\n\r\n" + TAIL)
@example(STARTS[1] + b"\r\nHost: a.test\r\nContent-Length: 3\r\n\r\n" + TAIL)
@example(STARTS[1] + b"\r\nHost: a.test\r\nTransfer-Encoding: Chunked\r\n\r\n" + TAIL)
@example(STARTS[1] + b"\r\nHost: a.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + TAIL)
def test_a_request_that_we_take_means_the_same_to_another_reader(stream: bytes) -> None:
    raw, _, rest = stream.partition(b"\r\n\r\n")
    try:
        request = parse_request(raw, 200)
        target, _ = plain_target(request)
        body = body_of(request, rest)
    except Malformed:
        return
    theirs = read_by_h11(h11.Connection(h11.SERVER), stream)
    assert theirs, stream
    head, seen = theirs
    assert isinstance(head, h11.Request)
    assert (head.method, head.target, seen) == (request.method, request.target, body)
    assert same_fields(request, head)
    hosts = [value.decode("latin-1") for name, value in head.headers if name == b"host"]
    assert {parse_authority(host, default_port=80) for host in hosts} <= {target}


@settings(max_examples=EXAMPLES, deadline=None)
@given(heads(STARTS))
@example(STARTS[1] + b"\r\nHost: a.test\r\nConnection: X-A\r\nX-A: 1\r\nContent-Length: 3\r\n\r\n" + TAIL)
def test_what_goes_on_says_what_was_judged(stream: bytes) -> None:
    """The head that a server gets names the host that was asked about, once, and frames the same body."""
    raw, _, rest = stream.partition(b"\r\n\r\n")
    try:
        request = parse_request(raw, 200)
        target, path = plain_target(request)
        body = body_of(request, rest)
    except Malformed:
        return
    sent = request_head(request, target, path)
    framed = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if request.chunked and body else b"0\r\n\r\n" if request.chunked else body
    theirs = read_by_h11(h11.Connection(h11.SERVER), sent + framed)
    assert theirs, sent
    head, seen = theirs
    assert isinstance(head, h11.Request)
    assert [value for name, value in head.headers if name == b"host"] == [target.field.encode()]
    assert (head.target, seen) == (path, body)


@settings(max_examples=EXAMPLES, deadline=None)
@given(heads(ANSWERS))
@example(ANSWERS[0] + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + TAIL)
@example(ANSWERS[0] + b"\r\nX: 1\r\n\r\n" + TAIL)
def test_an_answer_that_we_take_means_the_same_to_another_reader(stream: bytes) -> None:
    raw, _, rest = stream.partition(b"\r\n\r\n")
    try:
        response = parse_response(raw, 200)
        body = body_of(response, rest)
    except Malformed:
        return
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "a.test")]))
    client.send(h11.EndOfMessage())
    theirs = read_by_h11(client, stream)
    assert theirs, stream
    head, seen = theirs
    assert isinstance(head, h11.Response)
    assert (head.status_code, head.reason, seen) == (response.status, response.reason, body)
    assert same_fields(response, head)


CHUNKS = st.lists(st.sampled_from((
    b"3\r\nabc\r\n", b"1;x=y\r\na\r\n", b"0A\r\n0123456789\r\n", b"0\r\n\r\n", b"0;a\r\nT: 1\r\n\r\n", b"3\nabc\n",
    b"2\r\nabc\r\n", b"-1\r\n", b"3 \r\nabc\r\n", b"00\r\n\r\n",
)), min_size=1, max_size=5)  # fmt: skip


@settings(max_examples=EXAMPLES, deadline=None)
@given(CHUNKS, MUTATIONS, st.integers(1, 50))
@example([b"3\r\nabc\r\n", b"0\r\n\r\n"], [], 4)
def test_chunks_that_we_take_hold_the_same_for_another_reader(parts: list[bytes], mutations: list[tuple[int, bytes]], step: int) -> None:
    raw = mutate(b"".join(parts), mutations)
    chunks, out, at = Chunks(), b"", 0
    with contextlib.suppress(Malformed):
        while at < len(raw) and not chunks.done:
            out += chunks.feed(raw[at : at + step])
            at += step
    if not chunks.done:
        return
    whole = len(raw) - len(chunks.rest + raw[at:])
    head = b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
    before, after = (read_by_h11(h11.Connection(h11.SERVER), head + said) for said in (raw[:whole], out))
    assert before and after, raw
    assert before[1] == after[1] == Chunks(bare=True).feed(raw)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=300), st.integers(1, 40))
@example(b"\5\1\0\3\7a.test.\0\x50", 3)
@example(b"\5\1\0\4" + bytes(15) + b"\1\0\x50", 3)
def test_a_wish_in_socks_is_read_once_whole_and_never_otherwise(raw: bytes, step: int) -> None:
    """However it comes, and only by its own bytes: what follows is the destination's."""

    def read(some: bytes) -> Asked | str | None:
        try:
            return parse_asked(some)
        except Malformed as problem:
            return str(problem)

    wish = read(raw)
    found = next((seen for end in (*range(0, len(raw), step), len(raw)) if (seen := read(raw[:end])) is not None), None)
    assert found == wish
    if isinstance(wish, Asked):
        kind, port = raw[3], int.from_bytes(raw[wish.size - 2 : wish.size], "big")
        said = raw[5 : wish.size - 2] if kind == 3 else raw[4 : wish.size - 2]
        text = said.decode() if kind == 3 else socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, said)
        assert parse_authority(f"[{text}]" if ":" in text else text, default_port=port) == wish.target
    greeting = parse_greeting(raw)
    assert greeting is None or greeting[0] == 2 + raw[1] <= len(raw)


PIECES = st.sampled_from((
    "a", "test", "example", "com", "evil", ".", "..", "-", "_", ":", "::", "[", "]", "@", "/", "\\", "%", "%00", "\0", "\r\n", " ", "\t",
    "0", "1", "127", "0x7f", "0177", "255", "256", "2130706433", "ffff", "xn--", "é", "１", "。", "ß",
    "80", "443", "99999", "?", "#", ",", "*", "+1", "1e3",
))  # fmt: skip


@settings(max_examples=3 * EXAMPLES, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=9).map("".join), st.text(max_size=20)))
@example("127.0.0.1:80")
@example("[::ffff:127.0.0.1]:80")
@example("Example.com.:443")
def test_a_destination_that_we_take_is_the_same_for_other_readers(text: str) -> None:
    try:
        target = parse_authority(text)
    except Malformed:
        return
    url = urlsplit(f"http://{text}/")
    assert (url.port, url.username, url.path) == (target.port, None, "/")
    assert url.hostname
    if target.numeric:
        assert as_ip(url.hostname) == ipaddress.ip_address(target.host)
        socket.getaddrinfo(target.host, None, flags=socket.AI_NUMERICHOST)
    else:
        assert url.hostname.lower().removesuffix(".") == target.host
        with pytest.raises(OSError):  # not even the C library takes it for a number
            socket.inet_aton(target.host)
        with pytest.raises(socket.gaierror):
            socket.getaddrinfo(target.host, None, flags=socket.AI_NUMERICHOST)
    assert parse_authority(target.text) == target


def as_ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    found = ipaddress.ip_address(text)
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def test_the_fuzzers_make_what_is_taken_and_what_is_not() -> None:
    """They would prove nothing if all that they made were refused."""
    for starts, parse in ((STARTS, parse_request), (ANSWERS, parse_response)):
        for chunked in (True, False):
            find(heads(starts), lambda stream, parse=parse, chunked=chunked: is_taken(stream, parse, chunked), settings=LONG)
        find(heads(starts), lambda stream, parse=parse: not is_taken(stream, parse, False), settings=LONG)


def is_taken(stream: bytes, parse: Callable[[bytes, int], Request | Response], chunked: bool) -> bool:
    raw, _, rest = stream.partition(b"\r\n\r\n")
    try:
        head = parse(raw, 200)
        return head.chunked == chunked and len(head.fields) > 1 and bool(body_of(head, rest))
    except Malformed:
        return False
