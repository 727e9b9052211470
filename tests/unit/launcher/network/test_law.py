"""Over generated lists of every rank: nobody below opens what the admin or the floor closed, and nothing is won by hardening."""

from __future__ import annotations

import fnmatch
import ipaddress
import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from agent_sandbox.config.keys import PRESETS
from agent_sandbox.config.record import replace
from agent_sandbox.launcher.network import floor, policy
from agent_sandbox.launcher.network.hosts import Address, Host, Name, parse_host
from agent_sandbox.launcher.network.policy import Rules, judge_address, judge_name
from agent_sandbox.launcher.network.rules import read_rules
from tests.unit.config.cases import Case, Said

EXAMPLES = 5000 if os.environ.get("SANDBOX_SOAK") else 400
QUICK = settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])

# Few, so that they meet: names below one another, networks within one another, and the floor's own.
NAMES = ("a.org", "b.a.org", "c.b.a.org", "a.com", "pypi.org", "pastebin.com")
PATTERNS = ("*.a.org", "*.org", "b.*.org", "*.b.a.org")
ADDRESSES = ("93.184.216.34", "93.184.216.99", "10.1.2.3", "127.0.0.1", "169.254.169.254", "::1", "2001:db8::1", "64:ff9b::a01:203", "2002:7f00:1::")
NETWORKS = ("93.184.0.0/16", "93.184.216.0/24", "10.0.0.0/8", "127.0.0.0/8", "0.0.0.0/0", "::/0", "2001:db8::/32", *ADDRESSES)
CLOSED = {  # the floor's among them, and the IPv4 address that one leads to
    "10.1.2.3": "", "127.0.0.1": "", "169.254.169.254": "", "::1": "", "93.184.216.99": "",
    "64:ff9b::a01:203": "10.1.2.3", "2002:7f00:1::": "127.0.0.1",
}  # fmt: skip
PORTS = (22, 25, 80, 443, 6817)
PORT_TEXTS = ("22", "25", "443", "20-30", "1-65535", "6817")


def entries() -> st.SearchStrategy[str]:
    hosts = st.sampled_from((*NAMES, *PATTERNS, *NETWORKS))
    with_port = st.tuples(hosts, st.sampled_from(PORT_TEXTS)).map(lambda pair: f"[{pair[0]}]:{pair[1]}" if ":" in pair[0] else ":".join(pair))
    return st.one_of(hosts, with_port, st.sampled_from(PORT_TEXTS), st.just("*"))


def lists() -> st.SearchStrategy[list[str]]:
    return st.lists(entries(), max_size=5, unique=True)


def layers() -> st.SearchStrategy[Said]:
    presets = st.lists(st.sampled_from(PRESETS), unique=True)
    return st.fixed_dictionaries({}, optional={
        "network.block": lists(), "network.allow": lists(), "network.default": st.sampled_from(("allow", "deny")), "network.presets": presets,
        "network.floor_open": st.lists(st.sampled_from(("private", "own", "10.0.0.0/8", "a.org", "25", "b.a.org:25", "127.0.0.1:80")), max_size=2),
    })  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return Case(
        defaults=draw(layers()), admin=(draw(layers()),), person=(draw(layers()), draw(layers())), repository=draw(layers()),
        command_line=draw(layers()),
    )  # fmt: skip


@st.composite
def questions(draw: st.DrawFn) -> tuple[Host, int, Address]:
    address = parse_host(draw(st.sampled_from(ADDRESSES)))
    assert isinstance(address, Address)
    host = draw(st.one_of(st.sampled_from(NAMES).map(parse_host), st.just(address)))
    return host, draw(st.sampled_from(PORTS)), address


def reached(case: Case, question: tuple[Host, int, Address]) -> bool:
    """Both questions, as the proxy asks them."""
    rules, (host, port, address) = rules_of(case), question
    return judge_name(rules, host, port).allowed and judge_address(rules, host, port, address).allowed


def rules_of(case: Case) -> Rules:
    return read_rules(case.settle(), own=[ipaddress.ip_address("93.184.216.99")])


def is_closed(case: Case, question: tuple[Host, int, Address]) -> bool:
    """By the admin or the floor, beyond doubt; told without a line of the code that decides."""
    _, port, address = question
    said, opened = case.admin[0], {text for layer in (case.defaults, *case.admin) for text in layer.get("network.floor_open", ())}
    blocks, allows = ([text for text in said.get(f"network.{key}", ()) if fits(text, *question)] for key in ("block", "allow"))
    by_lists = bool(blocks) and not allows
    by_address = address.text in CLOSED and opened <= {"25"}
    return by_lists or by_address or port == 6817 or (port == 25 and not opened & {"25", "b.a.org:25"})


def fits(text: str, host: Host, port: int, address: Address) -> bool:
    if text == "*" or text in PORT_TEXTS:
        return text == "*" or fits_ports(text, port)
    place, ports = text.strip("[").split("]:") if "[" in text else (text, "") if text.count(":") != 1 else text.split(":")
    if ports and not fits_ports(ports, port):
        return False
    if place in NETWORKS:
        met = {address.text, CLOSED.get(address.text) or address.text}
        return any(ipaddress.ip_address(one) in ipaddress.ip_network(place) for one in met)
    return isinstance(host, Name) and fnmatch.fnmatchcase(host.text, place) and (place[0] == "*" or host.text.count(".") == place.count("."))


def fits_ports(text: str, port: int) -> bool:
    first, _, last = text.partition("-")
    return int(first) <= port <= int(last or first)


def is_closed_to_the_admin_alone(case: Case, question: tuple[Host, int, Address]) -> bool:
    """With lists of the admin's alone, and a person who allows whatever there is."""
    said = {name: value for name, value in case.admin[0].items() if name != "network.presets"}
    opened = {name: value for name, value in case.defaults.items() if name == "network.floor_open"}
    return not reached(Case(defaults=opened, admin=(said,), person=({"network.allow": ["*", *NAMES, *NETWORKS]},)), question)


def the_admin_and_the_floor_hold(case: Case, question: tuple[Host, int, Address]) -> None:
    if is_closed(case, question) or is_closed_to_the_admin_alone(case, question):
        assert not reached(case, question)


def the_repository_opens_nothing(case: Case, question: tuple[Host, int, Address]) -> None:
    if reached(case, question):
        assert reached(case.without_repository(), question)


def a_block_more_opens_nothing(case: Case, question: tuple[Host, int, Address], more: list[str]) -> None:
    if reached(case.with_admin_file({"network.block": more}), question):
        assert reached(case, question)


def law(options: settings) -> Callable[[], None]:
    @options
    @given(cases(), questions(), lists())
    def check(case: Case, question: tuple[Host, int, Address], more: list[str]) -> None:
        the_admin_and_the_floor_hold(case, question)
        the_repository_opens_nothing(case, question)
        a_block_more_opens_nothing(case, question, more)

    return check


def test_nobody_below_opens_what_the_admin_or_the_floor_closed() -> None:
    law(QUICK)()


BROKEN = {
    "an allow beats a block": lambda patch: patch.setattr(policy, "BLOCK", "network.allow"),
    "the admin's rank is not asked": lambda patch: patch.setattr(policy, "SPEAKING", policy.SPEAKING[1:]),
    "the addresses of the floor are not asked": lambda patch: patch.setattr(policy, "closing_address", lambda *asked: ""),
    "the ports of the floor are not asked": lambda patch: patch.setattr(policy, "closing_port", lambda *asked: ""),
    "what opens a port opens the address": lambda patch: patch.setattr(floor, "_opens_address", lambda entry, host, port, forms: True),
    "only the outer form of an address counts": lambda patch: patch.setattr(Address, "forms", lambda self: (self.ip,)),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_the_law_goes_red_for_each_thing_that_is_broken(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BROKEN[broken](monkeypatch)

    @settings(QUICK, max_examples=3000, derandomize=True, phases=(Phase.generate,))
    @given(cases(), questions())
    def check(case: Case, question: tuple[Host, int, Address]) -> None:
        if is_closed(case, question):
            assert not reached(case, question)

    with pytest.raises(AssertionError):
        check()


def test_the_generated_questions_are_of_both_kinds() -> None:
    rules = rules_of(Case())
    assert {judge_name(rules, Name(text=name), 443).allowed for name in NAMES} == {True, False}
    assert replace(rules, default="deny") != rules
