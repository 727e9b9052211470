"""How a name becomes an address: the name that was judged is looked up, and no other that the machine would make of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.machines.internet.machine import Internet
from tests.machines.jail import Jail
from tests.network.reaching import read, words

ADMIN = {"config.toml": '[network]\nmode = "proxied"\nblock = ["www.example.org"]\n'}


@pytest.fixture
def searching(net: Internet) -> Iterator[Internet]:
    """The host takes a name without dots for one of its own domain's, as those of a site do."""
    file = net.directory / "resolv.conf"
    before = file.read_text()
    file.write_text(f"{before}search example.org\n")
    yield net
    file.write_text(before)


def test_a_short_name_is_no_way_around_what_is_said_of_the_whole_one(searching: Internet, jail: Jail) -> None:
    acts = [("named", "www", "80"), ("named", "www.example.org", "80"), ("named", "vault.example.org", "80")]
    assert read(searching.outside(jail, *words(acts)).out) == ["yes", "yes", "yes"]  # control: outside it is the same host
    acts = [(protocol, name, "80") for name in ("www", "www.example.org", "vault.example.org") for protocol in ("connect", "plain", "socks")]
    inside = searching.inside(jail, *words(acts), admin=ADMIN)
    refused = "403 network.block www.example.org"
    assert read(inside.out) == ["502", "502", "socks 4", refused, refused, "socks 2", "200", "200", "200"], inside


def test_a_name_in_the_file_of_hosts_is_looked_up_there(searching: Internet, jail: Jail) -> None:
    """It has no dot at its end, and leads to this machine itself."""
    acts = [(protocol, "localhost", "8080") for protocol in ("connect", "socks")]
    assert read(searching.outside(jail, *words([("named", "localhost", "8080")])).out) == ["yes"]
    assert read(searching.inside(jail, *words(acts), admin=ADMIN).out) == ["403 floor loopback", "socks 2"]
