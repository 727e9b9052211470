"""decisions.toml → cases: a whole config by the real merge, and the questions with their answers."""

from __future__ import annotations

import ipaddress
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_sandbox.launcher.network.hosts import Address, parse_host, parse_target
from agent_sandbox.launcher.network.policy import Rules, Verdict, judge_address, judge_name
from agent_sandbox.launcher.network.rules import read_rules
from tests.unit.config.cases import Case, Said

TABLE = Path(__file__).parent / "decisions.toml"
LAYERS = ("admin_defaults", "admin", "person", "repository")


@dataclass(frozen=True, kw_only=True)
class Row:
    question: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Decisions:
    says: str
    said: dict[str, dict[str, Any]]  # layer → key without its section → value
    default: str
    own: tuple[str, ...]
    rows: tuple[Row, ...]

    def rules(self) -> Rules:
        layers: dict[str, Said] = {layer: {f"network.{name}": value for name, value in said.items()} for layer, said in self.said.items()}
        person = layers.get("person", {}) | ({"network.default": self.default} if self.default else {})
        case = Case(
            defaults=layers.get("admin_defaults", {}), admin=(layers.get("admin", {}),), person=(person,),
            repository=layers.get("repository", {}),
        )  # fmt: skip
        return read_rules(case.settle(), own=[ipaddress.ip_address(text) for text in self.own])

    def config(self) -> Iterator[tuple[str, str, Any]]:
        """Layer, key, value, as a person would read them."""
        for layer in LAYERS:
            yield from ((layer, name, value) for name, value in self.said.get(layer, {}).items())
        if self.default:
            yield "person", "default", self.default


def read_table() -> list[Decisions]:
    with open(TABLE, "rb") as file:
        return [_decisions(case) for case in tomllib.load(file)["case"]]


def judge(rules: Rules, question: str) -> Verdict:
    target, _, came_to = question.partition(" > ")
    host, port = parse_target(target)
    assert port
    if not came_to:
        return judge_name(rules, host, port)
    address = parse_host(came_to)
    assert isinstance(address, Address)
    return judge_address(rules, host, port, address)


def answer(rules: Rules, question: str) -> str:
    verdict = judge(rules, question)
    return f"{'+' if verdict.allowed else '-'} {verdict.rule}"


def _decisions(case: dict[str, Any]) -> Decisions:
    unknown = set(case) - {"says", "ask", "own", "default", *LAYERS}
    assert not unknown, unknown
    rows = tuple(Row(question=question, answer=answer) for question, answer in case["ask"])
    said = {layer: case[layer] for layer in LAYERS if layer in case}
    return Decisions(says=case["says"], said=said, default=case.get("default", ""), own=tuple(case.get("own", ())), rows=rows)
