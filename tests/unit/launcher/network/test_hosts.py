"""One host has one spelling: tricks with names and numbers are refused, or become the address that they mean."""

from __future__ import annotations

import ipaddress
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_sandbox.config.destinations import is_within, matches_host, parse_destination
from agent_sandbox.launcher.network.hosts import Address, Name, parse_host, parse_port, parse_target, target_text

READ = {
    "example.org": "example.org", "Example.ORG": "example.org", "example.org.": "example.org", "localhost": "localhost",
    "a_b.example.org": "a_b.example.org", "_dmarc.example.org": "_dmarc.example.org", "1.example.org": "1.example.org",
    "3com.com": "3com.com", "r3---sn.example.org": "r3---sn.example.org", "xn--bcher-kva.example": "xn--bcher-kva.example",
    "bücher.example": "xn--bcher-kva.example", "BÜCHER.example.": "xn--bcher-kva.example", "faß.example": "xn--fa-hia.example",
    "bücher。example": "xn--bcher-kva.example", "ｅxample.org": "example.org", f"{'a' * 63}.org": f"{'a' * 63}.org",
    "0xg.example": "0xg.example", "a.0xg": "a.0xg",
}  # fmt: skip
ADDRESSES = {
    "127.0.0.1": "127.0.0.1", "::1": "::1", "[::1]": "::1", "0:0:0:0:0:0:0:1": "::1", "::ffff:127.0.0.1": "127.0.0.1",
    "::FFFF:7f00:1": "127.0.0.1", "[::ffff:10.0.0.1]": "10.0.0.1", "2001:DB8::1": "2001:db8::1",
}  # fmt: skip
REFUSED = (
    "", ".", "..", "a..b", ".example.org", "example.org..", "-a.org", "a-.org", f"{'a' * 64}.org", ("a" * 49 + ".") * 6 + "org", "a" * 5000,
    "allowed.org\0.evil.org", "allowed.org\r\nHost: evil.org", "allowed.org\n", "allowed.org\t", " allowed.org", "allowed.org ", "a b.org",
    "user@allowed.org", "user:pass@allowed.org", "allowed.org@evil.org", "allowed.org/", "allowed.org?x", "allowed.org#x", "allowed.org\\.evil.org",
    "allowed%2eorg", "%61llowed.org", "allowed.org:443", "*.allowed.org", "a,b", "a.b_", "{a}", "http://allowed.org", "\x7f.org", "a\x1b[0m.org",
    "0x7f.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "127.0.0.1.", "1.2.3.4.5", "1.2.3.256",
    "127.0.0.01", "127.0.0.0x1", "a.1", "example.0x7f", "0x", "1", "00.0.0.0", "+1.2.3.4",
    "１２７.0.0.1", "127。0。0。1", "①27.0.0.1", "١٢٧.٠.٠.١", "0ｘ7f.1", "\u200ballowed.org\u200b\u2028", "allowed.org／evil", "a℀b.org", "．org",
    "fe80::1%eth0", "[::1", "::1]", "[127.0.0.1]", ":::", "1::2::3", "::ffff:127.0.0.01", "::ffff:0x7f.1", "[]", "12345::", "::１",
)  # fmt: skip


@pytest.mark.parametrize(("text", "name"), READ.items())
def test_a_name_is_read_in_its_one_spelling(text: str, name: str) -> None:
    assert parse_host(text) == Name(text=name)
    assert parse_host(name) == Name(text=name)


@pytest.mark.parametrize(("text", "address"), ADDRESSES.items())
def test_an_address_is_read_as_the_address_that_it_is(text: str, address: str) -> None:
    assert parse_host(text) == Address(ip=ipaddress.ip_address(address))


@pytest.mark.parametrize("text", REFUSED)
def test_a_trick_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_host(text)
    assert str(error.value).isprintable()


@given(st.text(max_size=300))
def test_whatever_is_read_is_plain_and_reads_the_same_again(text: str) -> None:
    try:
        host = parse_host(text)
    except ValueError:
        return
    assert parse_host(host.text) == host
    if isinstance(host, Name):
        assert host.text.isascii() and host.text == host.text.lower() and len(host.text) <= 253
        assert not host.text.rpartition(".")[2].isdecimal()


def test_without_the_library_a_name_beyond_ascii_is_refused_and_its_ascii_form_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "idna", None)
    with pytest.raises(ValueError, match="xn--"):
        parse_host("bücher.example")
    assert parse_host("xn--bcher-kva.example") == Name(text="xn--bcher-kva.example")


@pytest.mark.parametrize(("text", "forms"), [
    ("93.184.216.34", ("93.184.216.34",)), ("64:ff9b::7f00:1", ("64:ff9b::7f00:1", "127.0.0.1")), ("2002:a00:1::9", ("2002:a00:1::9", "10.0.0.1")),
    ("::127.0.0.1", ("::7f00:1", "127.0.0.1")), ("::ffff:0:a00:1", ("::ffff:0:a00:1", "10.0.0.1")), ("::1", ("::1",)), ("::", ("::",)),
    ("2001:db8::1", ("2001:db8::1",)),
])  # fmt: skip
def test_an_address_that_leads_to_another_one_counts_as_both(text: str, forms: tuple[str, ...]) -> None:
    address = parse_host(text)
    assert isinstance(address, Address)
    assert address.forms() == tuple(ipaddress.ip_address(form) for form in forms)
    # An address that a resolver gave is not read from text: it may still be a mapped one.
    assert Address(ip=ipaddress.ip_address("::ffff:10.0.0.1")).forms()[-1] == ipaddress.ip_address("10.0.0.1")


@pytest.mark.parametrize(("text", "host", "port"), [
    ("example.org", "example.org", None), ("example.org:443", "example.org", 443), ("[::1]:80", "::1", 80), ("::1", "::1", None),
    ("[2001:db8::1]", "2001:db8::1", None), ("10.0.0.1:65535", "10.0.0.1", 65535),
])  # fmt: skip
def test_a_target_is_host_and_port(text: str, host: str, port: int | None) -> None:
    found, number = parse_target(text)
    assert (found.text, number) == (host, port)
    assert parse_target(target_text(found, 80)) == (found, 80)


@pytest.mark.parametrize("text", [
    "example.org:", "example.org:0", "example.org:65536", "example.org:080", "example.org:-1", "example.org:+1", "example.org: 80",
    "example.org:８０",    "example.org:80:80", "[::1]80", "[::1]:", "[example.org]:80", "[127.0.0.1]:80", ":80",
    "example.org:80\r\n", "[[::1]]:80", "example.org:4_4",
])  # fmt: skip
def test_a_target_that_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_target(text)


def test_ports_are_plain_numbers() -> None:
    assert [parse_port(text) for text in ("1", "443", "65535")] == [1, 443, 65535]


@pytest.mark.parametrize(("written", "canonical"), [
    ("Example.ORG.", "example.org"), ("*.Example.org:443", "*.example.org:443"), ("*:443", "443"), ("443-443", "443"), ("1-65535", "*"),
    ("10.0.0.1/32", "10.0.0.1"), ("[2001:DB8::/32]:80-90", "[2001:db8::/32]:80-90"), ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
    ("*.bücher.example", "*.xn--bcher-kva.example"), ("a.*.example", "a.*.example"), ("::ffff:10.0.0.1", "10.0.0.1"),
])  # fmt: skip
def test_an_entry_has_one_spelling(written: str, canonical: str) -> None:
    assert parse_destination(written).text() == canonical
    assert parse_destination(canonical) == parse_destination(written)


@pytest.mark.parametrize("text", [
    "", " ", "*.", "*.*", "**", "*a.org", "a*.org", "a.**.org", "1.2.3.*", "*.1", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/", "10/8",
    "/8",    "10.0.0.0/255.0.0.0", "0", "65536", "90-80", "80-", "-80", "1-2-3", "example.org:http", "example.org:80,443", "https://example.org",
    "example.org/path",    "[example.org]:80", "2001:db8::/32:80", "*.foo。org", "a.org\0", "２５", "!example.org",
    "~example.org", "127.1", "0x7f.1/8", "fe80::1%lo",
])  # fmt: skip
def test_an_entry_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_destination(text)


@pytest.mark.parametrize(("inner", "outer"), [
    ("example.org", "*"), ("www.example.org", "*.example.org"), ("*.www.example.org", "*.example.org"), ("a.b.org", "a.*.org"), ("a.*.org", "*.org"),
    ("*.*.org", "*.org"), ("10.1.0.0/16", "10.0.0.0/8"), ("10.0.0.1:80", "10.0.0.0/8"), ("80", "80-90"), ("example.org:80", "80"),
    ("example.org:80", "*"),
])  # fmt: skip
def test_an_entry_within_another_is_more_specific(inner: str, outer: str) -> None:
    one, other = parse_destination(inner), parse_destination(outer)
    assert (is_within(one, other), is_within(other, one)) == (True, False)


@pytest.mark.parametrize(("one", "other"), [
    ("example.org", "*.example.org"), ("example.org", "80"), ("a.*.org", "*.b.org"), ("example.org", "10.0.0.0/8"), ("80-90", "85-95"),
    ("*.example.org:80", "www.example.org"), ("*.org", "*.com"), ("0.0.0.0/0", "::/0"), ("a.*.org", "*.*.com"),
])  # fmt: skip
def test_neither_of_two_entries_is_more_specific(one: str, other: str) -> None:
    first, second = parse_destination(one), parse_destination(other)
    assert (is_within(first, second), is_within(second, first)) == (False, False)


labels = st.sampled_from(("a", "b", "*"))
patterns = st.lists(labels, min_size=1, max_size=4).map(lambda parts: ".".join([*parts, "c"]))
names = st.lists(st.sampled_from(("a", "b", "x")), min_size=0, max_size=5).map(lambda parts: ".".join([*parts, "c"]))


@given(patterns, patterns, names)
def test_what_lies_within_matches_no_more(inner: str, outer: str, name: str) -> None:
    one, other, host = parse_destination(inner), parse_destination(outer), parse_host(name)
    if is_within(one, other) and matches_host(one, host, ()):
        assert matches_host(other, host, ())
