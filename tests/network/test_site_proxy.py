"""A host without a way out of its own, and the site's proxy (a real one): the jail's proxy goes through it, and judges as before."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machines.authority import need_parser
from tests.machines.internet.machine import Internet, internet
from tests.machines.internet.places import ROUTER, WEB, WEB6
from tests.machines.jail import Jail
from tests.machines.needs import need
from tests.network.driving import SOON, Did, inside, outside

PORT = 8888
SETTINGS = f"Port {PORT}\nAllow 203.0.113.0/24\nLogLevel Connect\nMaxClients 50\nTimeout 60\n"
UPSTREAM = f'[network]\nupstream_proxy = "{ROUTER}:{PORT}"\nno_proxy = ["{ROUTER}"]\n'
LINES = {
    "https": "curl -sS https://www.example.org/",
    "http": "curl -sS http://www.example.org/",
    "git": "git clone -q https://git.example.org/git/repository.git it && cat it/README",
    "beside it": f"curl -sS http://{ROUTER}/",
    "a private address": "curl -sS http://10.20.30.40/",
    "a private address by name": "curl -sS http://inside.example.net/",
    "blocked": "curl -sS http://pastebin.com/",
    "mail": "curl -sS http://mail.example.org:25/",
}


@dataclass(frozen=True, slots=True)
class Site:
    net: Internet
    log: Path

    def asked(self) -> set[str]:
        """For what the site's proxy was asked since the last question."""
        found = set(re.findall(r"Request \(file descriptor \d+\): CONNECT (\S+) ", self.log.read_text()))
        self.log.write_text("")
        return found


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Its only way is the cable's other end: no address beyond has a route."""
    need("tinyproxy")
    with internet() as net:
        for family in ("-4", "-6"):
            net.host.run("ip", family, "route", "del", "default")
        settings, log = net.directory / "tinyproxy.conf", net.directory / "tinyproxy.log"
        settings.write_text(f'{SETTINGS}LogFile "{log}"\n')
        log.touch()
        with subprocess.Popen(net.far.argv(["tinyproxy", "-d", "-c", settings]), stdout=subprocess.DEVNULL) as process:
            wait_for(net)
            yield Site(net, log)
            process.terminate()


def wait_for(net: Internet) -> None:
    deadline = time.monotonic() + 20
    while subprocess.run(net.host.argv(["nc", "-z", ROUTER, str(PORT)]), capture_output=True).returncode:
        assert time.monotonic() < deadline, "no proxy"
        time.sleep(0.05)


@pytest.fixture
def node(site: Site, jail: Jail) -> Jail:
    need_parser()
    site.net.trust(jail)
    jail.configure(UPSTREAM, "conf.d/upstream.toml")
    site.net.ask_for_names(ROUTER)
    site.asked()
    return jail


def reached(did: dict[str, Did]) -> dict[str, str]:
    """What each came to: a page, the rule of a refusal, or nothing; late ones are told."""
    return {name: (verdict(one.out) or one.err) + ("" if one.seconds < SOON else " late") for name, one in did.items()}


def verdict(out: str) -> str:
    rule = re.search(r"^rule: (\S+ \S+)", out, re.MULTILINE)
    return rule[1] if rule else "yes" if "hello from" in out else ""


REFUSED = {"blocked": "network.block pastebin.com", "a private address": "floor private", "mail": "floor mail"}
WORK = dict.fromkeys(("https", "http", "git", "beside it"), "yes")


@pytest.mark.parametrize("backend", ("bwrap", "firejail", "landlock"), indirect=True)
def test_everything_goes_through_it_to_addresses_that_were_judged(site: Site, node: Jail, backend: str) -> None:
    without = outside(site.net, node, {"https": LINES["https"], "beside it": LINES["beside it"]})
    assert (without["https"].code, without["beside it"].code) == (7, 0)  # the control: there is no other way
    assert reached(inside(site.net, node, "proxied", LINES)) == {**WORK, **REFUSED, "a private address by name": "floor private"}
    asked = site.asked()
    assert asked <= {f"{host}:{port}" for host in (WEB, f"[{WEB6}]") for port in (80, 443)} and len(asked) >= 2, asked


@pytest.mark.parametrize("backend", ("bwrap", "landlock"), indirect=True)
def test_where_no_name_can_be_looked_up_it_gets_names_and_only_rules_about_names_hold(site: Site, node: Jail, backend: str) -> None:
    site.net.ask_for_names()
    assert outside(site.net, node, {"https": LINES["https"]})["https"].code == 6  # no such name
    found = reached(inside(site.net, node, "proxied", LINES, told="weak point in network: no name can be looked up here"))
    assert found == {**WORK, **REFUSED, "a private address by name": "yes"}
    assert site.asked() == {"www.example.org:443", "www.example.org:80", "git.example.org:443", "inside.example.net:80"}
