"""docs/site-network.md: each file of it is tried as an admin's, and each answer of its table is what a person gets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.machines.internet.machine import Internet
from tests.machines.jail import ADMIN_DIR, Jail
from tests.network.reaching import read, words

PAGE = (Path(__file__).resolve().parents[2] / "docs/site-network.md").read_text()
BLOCKS = re.findall(rf"```toml\n# {ADMIN_DIR}/([^\s,]+)(,[^\n]*)?\n(.*?)```", PAGE, re.DOTALL)
FILES = {name: text for name, other, text in BLOCKS if not other}  # all at once
(HALF_OPEN,) = (text for _, other, text in BLOCKS if other)
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")]
HOSTS, SERVICES = "conf.d/10-hosts.toml", "conf.d/20-services.toml"
MINE = "network.allow = ['mine.example.org']\n"


def test_the_page_has_what_the_tests_need() -> None:
    assert (len(FILES), len(ROWS), PAGE.count("```toml")) == (6, 7, 7)


@pytest.mark.parametrize("column", ("closed", "half-open", "shipped"))
def test_the_table_says_what_a_person_is_told(column: str, jail: Jail) -> None:
    form = {"closed": {HOSTS: FILES[HOSTS]}, "half-open": {HOSTS: HALF_OPEN}, "shipped": {}}[column]
    place = 1 + ("closed", "half-open", "shipped").index(column)
    jail.configure(MINE)
    asked = {row[0].split("`")[1]: row[place] for row in ROWS}
    found = {host: json.loads(jail.ask("explain", "--json", "host", host, admin=form).out)["verdict"] for host in asked}
    assert found == asked


def test_all_files_hold_together_and_a_person_cannot_lift_them(jail: Jail) -> None:
    jail.configure("[network]\nupstream_proxy = '192.0.2.1:99'\nmode = 'open'\nmax_connections = 0\nmax_bytes = 'unlimited'\nmax_rate = '1G'\n")
    shown = json.loads(jail.ask("config", "show", "--json", "network", admin=FILES).out)
    values = {name.removeprefix("network."): one["value"] for name, one in shown["settings"].items()}
    assert values["mode"] == "proxied" and values["upstream_proxy"] == "proxy.example.net:3128"
    assert (values["max_connections"], values["max_bytes"], values["max_rate"]) == (0, 500 << 30, 1 << 30)  # the last is only a default
    assert values["inject"][0]["file"] == f"{jail.user.home}/.config/site/llm.key" and values["ca_bundle"] == ["/etc/site/ca.pem"]
    assert {clamp["key"] for clamp in shown["clamps"]} == {"network.upstream_proxy", "network.mode", "network.max_bytes"}


def test_who_has_no_key_is_told_and_goes_on(jail: Jail) -> None:
    done = jail.run("echo", "ran", admin={name: text for name, text in FILES.items() if "30-" not in name})  # no such CA here
    assert (done.code, done.out, "network.inject llm" in done.err) == (0, "ran\n", True)


def test_the_closed_form_and_the_opened_services_hold_for_real_connections(net: Internet, jail: Jail) -> None:
    acts = [("named", host, "80") for host in ("www.example.org", "other.example.org", "inside.example.net")]
    assert read(net.outside(jail, *words(acts)).out) == ["yes", "yes", "yes"]  # control: outside all are there
    asked = [("plain", host, port) for _, host, port in acts]
    admin = {name: FILES[name] for name in (HOSTS, SERVICES)}
    assert read(net.inside(jail, *words(asked), admin=admin).out) == ["200", "403 network.block *", "200"]
    assert read(net.inside(jail, *words(asked), admin={HOSTS: FILES[HOSTS]}).out) == ["200", "403 network.block *", "403 network.block *"]
    listed = {HOSTS: FILES[HOSTS], SERVICES: "".join(line for line in FILES[SERVICES].splitlines(True) if "floor_open" not in line)}
    assert read(net.inside(jail, *words(asked), admin=listed).out) == ["200", "403 network.block *", "403 floor private"]
