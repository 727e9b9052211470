"""The pure parts, by themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_sandbox.config.record import replace
from agent_sandbox.launcher.audit import Log
from agent_sandbox.launcher.proxy.budget import PLENTY, Budget
from agent_sandbox.launcher.proxy.chunks import Chunks
from agent_sandbox.launcher.proxy.dial import Way, interleaved
from agent_sandbox.launcher.proxy.judge import Verdict
from agent_sandbox.launcher.proxy.limits import Limits, fitted
from agent_sandbox.launcher.proxy.main import limits_of
from agent_sandbox.launcher.proxy.orders import Orders
from agent_sandbox.launcher.proxy.target import Malformed, Target, check_host, parse_authority, target_of
from agent_sandbox.launcher.proxy.words import refusal


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.data())
def test_chunks_come_out_the_same_however_they_come_in(parts: list[bytes], data: st.DataObject) -> None:
    raw = b"".join(b"%X ;a=b\r\n%s\r\n" % (len(part), part) for part in parts) + b"00\r\nTrailer: x\r\n\r\nNEXT"
    expected = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    for bare, whole in ((False, expected), (True, b"".join(parts))):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
        chunks, out, rest = Chunks(bare=bare), b"", b""
        for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
            if chunks.done:
                rest += raw[begin:end]
            elif begin < end:
                out += chunks.feed(raw[begin:end])
                rest += chunks.rest
        assert (out, chunks.done, rest) == (whole, True, b"NEXT")


@pytest.mark.parametrize("bad", [b"x" * 2000, b"0\r\n" + b"a: b\r\n" * 70, b"5\r\nabc", b"3\r\nabcd\r\n"])
def test_what_is_no_chunk_never_becomes_whole(bad: bytes) -> None:
    chunks = Chunks()
    try:
        chunks.feed(bad)
    except Malformed:
        return
    assert (chunks.done, bad) == (False, b"5\r\nabc")


HOSTS = {
    "Example.COM": ("example.com", False), "example.com.": ("example.com", False), "localhost": ("localhost", False), "a_b.test": ("a_b.test", False),
    "1.2.3.4": ("1.2.3.4", True), "::1": ("::1", True), "0:0:0:0:0:0:0:1": ("::1", True), "::FFFF:1.2.3.4": ("1.2.3.4", True),
    "3com.test": ("3com.test", False), "xn--bcher-kva.test": ("xn--bcher-kva.test", False),
}  # fmt: skip


def test_a_host_has_one_spelling() -> None:
    assert {text: check_host(text) for text in HOSTS} == HOSTS
    assert parse_authority("[::1]:443") == Target(host="::1", port=443, numeric=True)
    assert parse_authority("[::ffff:127.0.0.1]", default_port=80) == parse_authority("127.0.0.1:80")
    assert (target_of("a.test", 80).field, target_of("::1", 8080).field, target_of("a.test", 8080).field) == ("a.test", "[::1]:8080", "a.test:8080")


def test_the_families_take_turns_in_the_order_the_resolver_gave() -> None:
    def ways(*addresses: str) -> list[Way]:
        return [Way(address=one, port=1, ask=b"", reaches=one) for one in addresses]

    assert interleaved(ways("::1", "::2", "::3", "1.1.1.1", "2.2.2.2")) == ways("::1", "1.1.1.1", "::2", "2.2.2.2", "::3")
    assert interleaved(ways("1.1.1.1", "::1", "2.2.2.2", "3.3.3.3")) == ways("1.1.1.1", "::1", "2.2.2.2", "3.3.3.3")
    assert interleaved([]) == []


def test_a_budget_is_a_total_and_a_rate() -> None:
    assert Budget(None, None, 0).room(5) == PLENTY
    total = Budget(100, None, 0)
    total.take(60)
    assert (total.room(1), total.spent) == (40, False)
    total.take(60)
    assert (total.room(1), total.spent) == (0, True)
    rate = Budget(None, 100, 0)
    assert rate.room(50) == 100  # what was not used does not pile up
    rate.take(150)
    assert (rate.room(50), rate.room(50.5), rate.room(51)) == (0, 0, 50)


def test_there_are_never_more_places_than_descriptors() -> None:
    for descriptors in (64, 256, 1024, 4096, 1 << 20):
        limits = fitted(Limits(), descriptors)
        assert limits.connections == 4 or 2 * limits.connections + 2 * limits.pipes < descriptors
    assert fitted(Limits(), 1 << 20) == Limits()


MOST = Limits().connections


@pytest.mark.parametrize(("said", "places", "total"), [(None, MOST, 7), (0, 1, 0), (1, 1, 7), (3, 3, 7), (1 << 30, MOST, 7)])
def test_a_smaller_number_of_connections_never_gives_more_places(said: int | None, places: int, total: int) -> None:
    orders = Orders(
        session="s", said=(), default="allow", default_origin="default", presets=None, upstream="", direct=(), judges_upstream=False,
        connections=said, total_bytes=7, rate=None, log=Log(directory="", host="", enabled=False, keep_days=None, max_size=None),
    )  # fmt: skip
    limits = fitted(limits_of(orders), 1 << 20)
    assert (limits.connections, limits.total_bytes) == (places, total)
    stopped = limits_of(replace(orders, rate=0))  # refused at once: whoever waits for a rate of nothing waits for ever
    assert (stopped.total_bytes, stopped.rate) == (0, None)


def test_a_rule_cannot_write_into_the_head_of_its_refusal() -> None:
    answer = refusal(target_of("a.test", 1), Verdict(allowed=False, rule="x\r\nSet-Cookie: a=b\r\n\r\nü", why="a\0b"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nSet-Cookie" not in answer
    assert f"Content-Length: {len(body)}".encode() in head
