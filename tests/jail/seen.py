"""One backend, looked at in every setting: facts become answers from inside and from outside, and the gaps that the launcher names."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path

from agent_sandbox.launcher.policy import Property
from tests.jail import acts
from tests.jail.properties import FACTS, Fact
from tests.jail.settings import SETTINGS, Setting
from tests.jail.world import World, made
from tests.machines import users
from tests.machines.copies import PYTHON
from tests.machines.jail import Result

BACKENDS = ("bwrap", "firejail", "landlock")
HOLDS, GAP, WEAK, OPEN = "holds", "gap", "weak", "open"  # open: does not hold, and nobody says so
YES, NO_ANSWER, BROKEN = "yes", "no answer", "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    inside: str
    outside: str
    left_inside: bool = False  # what the fact must not leave was there afterwards
    left_outside: bool = False
    told: bool = False  # the launcher said in the end what the fact wants to be said


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    backend: str
    answers: dict[Fact, Answer] = field(default_factory=dict)
    gaps: dict[str, dict[Property, bool]] = field(default_factory=dict)  # of each setting: the property, and whether it is only weak

    def ran(self, fact: Fact) -> bool:
        return not self.answers[fact].inside.startswith((NO_ANSWER, BROKEN))

    def control_works(self, fact: Fact) -> bool:
        answer = self.answers[fact]
        return fact.given or bool(fact.told) or (answer.left_outside if fact.leaves else answer.outside.startswith(YES))

    def is_held(self, fact: Fact) -> bool:
        answer = self.answers[fact]
        if fact.leaves:
            return not answer.left_inside
        if fact.told:
            return answer.told
        return answer.inside.startswith(YES) == fact.given

    def verdict(self, fact: Fact) -> str:
        if self.is_held(fact):
            return HOLDS
        weak = self.gaps[fact.setting].get(fact.property)
        return OPEN if weak is None else WEAK if weak else GAP


def to_text(seen: Seen) -> str:
    """For another process that has the same table."""
    gaps = {name: {str(one): weak for one, weak in found.items()} for name, found in seen.gaps.items()}
    return json.dumps({"answers": [asdict(seen.answers[fact]) for fact in FACTS], "gaps": gaps})


def from_text(backend: str, text: str) -> Seen:
    data = json.loads(text)
    answers = {fact: Answer(**one) for fact, one in zip(FACTS, data["answers"], strict=True)}
    gaps = {name: {Property(one): weak for one, weak in found.items()} for name, found in data["gaps"].items()}
    return Seen(backend=backend, answers=answers, gaps=gaps)


def look(backend: str) -> Seen:
    seen = Seen(backend=backend)
    with users.account() as user, made(user) as world:
        for name, setting in SETTINGS.items():
            with world.during(setting):
                _look_in(name, setting, world, seen)
    return seen


def _look_in(name: str, setting: Setting, world: World, seen: Seen) -> None:
    """Inside first: what is refused there must find everything as it was."""
    facts = [fact for fact in FACTS if fact.setting == name]
    _configure(setting, world, seen.backend)
    seen.gaps[name] = _gaps(setting, world)
    launched = _inside(facts, setting, world)
    inside = _look_after(facts, launched, world)
    outside = _look_after(facts, _outside(facts, setting, world), world)
    for fact, (answer, left), (control, left_there) in zip(facts, inside, outside, strict=True):
        told = bool(fact.told) and fact.told in launched.err
        seen.answers[fact] = Answer(inside=answer, outside=control, left_inside=left, left_outside=left_there, told=told)


def _look_after(facts: list[Fact], result: Result, world: World) -> list[tuple[str, bool]]:
    """Each answer, and whether something was left."""
    return [(answer, _left(fact, answer, world)) for fact, answer in zip(facts, _answers(facts, result), strict=True)]


def _configure(setting: Setting, world: World, backend: str) -> None:
    jail = world.jail
    accepted = [str(one) for one in Property if one not in setting.insists_on]
    jail.configure(f'[sandbox]\nbackend = "{backend}"\naccept_gaps = {accepted}\n', "conf.d/backend.toml")
    jail.configure(world.fill(setting.config))


def _launch(setting: Setting, world: World, *words: str, in_terminal: bool = False) -> Result:
    admin = None if setting.admin is None else {"config.toml": world.fill(setting.admin)}
    with world.jail.argv("--quiet", *map(world.fill, setting.options), *words, admin=admin) as argv:
        return world.run(_in_terminal(argv) if in_terminal else argv, as_root=admin is not None)


def _gaps(setting: Setting, world: World) -> dict[Property, bool]:
    """What the launcher says by itself; the weak points of the policy are among it."""
    asked = _launch(setting, world, "--dry-run", "--json", "--", "true")
    assert asked.code == 0, asked.err
    told = json.loads(asked.out)
    gaps = [(gap["property"], gap["weak"]) for gap in told["gaps"]] + [(gap["property"], True) for gap in told["policy"]["weaknesses"]]
    return {Property(name): all(weak for other, weak in gaps if other == name) for name, _ in gaps}


def _program(facts: list[Fact], world: World) -> list[str]:
    wanted = [[world.fill(word) for word in fact.act] for fact in facts]
    return [PYTHON, "-I", "-c", Path(acts.__file__).read_text(), json.dumps(wanted)]


def _inside(facts: list[Fact], setting: Setting, world: World) -> Result:
    return _launch(setting, world, "--", *_program(facts, world), in_terminal=setting.in_terminal)


def _outside(facts: list[Fact], setting: Setting, world: World) -> Result:
    program = _program(facts, world)
    return world.run(_in_terminal(program) if setting.in_terminal else program)


def _in_terminal(argv: list[str]) -> list[str]:
    return ["/usr/bin/script", "--quiet", "--return", "--command", shlex.join(argv), "/dev/null"]


def _answers(facts: list[Fact], result: Result) -> list[str]:
    """The line of answers is the proof that the program ran; without it every answer says why there is none."""
    lines = [line for line in result.out.splitlines() if line.startswith('["')]
    if not lines:
        return [f"{NO_ANSWER} ({result.code}): {result.err.strip() or result.out.strip()}"] * len(facts)
    return [str(one) for one in json.loads(lines[-1])]


def _left(fact: Fact, answer: str, world: World) -> bool:
    if not fact.leaves:
        return False
    path = answer.removeprefix(YES).strip() if fact.leaves == "answer" else world.fill(fact.leaves)
    there = os.path.lexists(path)
    if there and os.path.isfile(path):
        os.unlink(path)
    return there
