"""`--allow` and `--block`: the lists of one session, for real connections; and what they do not lift."""

from __future__ import annotations

from tests.machines.internet.machine import Internet
from tests.machines.jail import Jail
from tests.network.reaching import read, words

ACTS = [("plain", "pastebin.com", "80"), ("plain", "www.example.org", "80")]
ADMIN = {"config.toml": '[network]\nmode = "proxied"\nblock = ["pastebin.com"]\n'}


def test_a_host_is_allowed_or_blocked_for_one_session(net: Internet, jail: Jail) -> None:
    assert read(net.outside(jail, *words([("named", host, port) for _, host, port in ACTS])).out) == ["yes", "yes"]  # control
    assert read(net.inside(jail, *words(ACTS)).out) == ["403 network.block pastebin.com", "200"]
    options = ("--quiet", "--allow", "pastebin.com", "--block", "*.example.org")
    assert read(net.inside(jail, *words(ACTS), options=options).out) == ["200", "403 network.block *.example.org"]


def test_no_option_lifts_what_an_admin_or_the_project_blocks_or_the_floor_closes(net: Internet, jail: Jail) -> None:
    acts = [*ACTS, ("plain", "10.20.30.40", "80")]
    assert read(net.outside(jail, *words([("named", host, port) for _, host, port in acts])).out) == ["yes", "yes", "yes"]  # control
    jail.write(jail.project / ".agent-sandbox.toml", "network.block = ['www.example.org']\n")
    options = ("--quiet", *(word for _, host, _ in acts for word in ("--allow", host)))
    found = read(net.inside(jail, *words(acts), options=options, admin=ADMIN).out)
    assert found == ["403 network.block pastebin.com", "403 network.block www.example.org", "403 floor private"]
