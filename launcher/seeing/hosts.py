"""`explain host NAME[:PORT]`: what the lists and the floor say of a host, and what makes that true in a jail here.

Nothing is looked up: what a name's addresses come to is seen when it is dialled, and the page says so.
"""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.hosts import likely_target
from agent_sandbox.config.record import replace
from agent_sandbox.launcher.network.hosts import Name, parse_target, target_text
from agent_sandbox.launcher.network.policy import judge_name
from agent_sandbox.launcher.network.rules import LISTS, read_rules
from agent_sandbox.launcher.resolve.network import resolve_network
from agent_sandbox.launcher.seeing.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.network.policy import Rules

USUAL_PORT = 443
BY_ADDRESS = "each of its addresses is checked as well when it is dialled: networks on the lists, and the floor"
ENFORCED = {
    "isolated": "enforced by network isolated: nothing is reachable, whatever the lists say",
    "proxied": "enforced by network proxied: the proxy is the only way out, and it asks the lists",
    "filtered": "enforced by network filtered: the packet filter asks the lists",
    "open": "enforced by nothing: with network open the lists are not asked",
}
VERDICTS = {  # mode, and whether the lists allow it
    ("isolated", True): "not reachable (the lists allow it)", ("isolated", False): "not reachable (the lists refuse it, too)",
    ("open", True): "reachable", ("open", False): "reachable, although the lists refuse it",
}  # fmt: skip


def explain_host(subject: str, case: Case) -> Answer:
    settings = case.settings
    answer = answer_about(subject, read_rules(settings), _mode(settings))
    return replace(answer, origin=_place(answer, settings))


def answer_about(subject: str, rules: Rules, mode: str) -> Answer:
    try:
        host, port = parse_target(subject)
    except ValueError as error:
        raise UserError(f"{subject} names no host: {error}", hint=_hint(subject)) from None
    verdict = judge_name(rules, host, port or USUAL_PORT)
    notes = [verdict.why, ENFORCED.get(mode, mode)]
    if isinstance(host, Name) and verdict.allowed:
        notes.append(BY_ADDRESS)
    if port is None:
        notes.append(f"port {USUAL_PORT} is taken, as none was given")
    said = VERDICTS.get((mode, verdict.allowed), "allowed" if verdict.allowed else "refused")
    return Answer(
        subject=f"host {target_text(host, port or USUAL_PORT)}", verdict=said, rule=verdict.rule, origin=verdict.origin, notes=tuple(notes),
    )  # fmt: skip


def _hint(subject: str) -> str:
    if meant := likely_target(subject):
        return f"did you mean `explain host {meant}`?"
    if "*" in subject or "/" in subject:
        return "ask about one host that the entry stands for, such as www.example.org or 10.1.2.3"
    return "write a name or an address, and :PORT if it matters"


def _mode(settings: Settings) -> str:
    try:
        return resolve_network(settings).mode
    except UserError as error:
        return f"enforced by nothing, as no launch comes about: {error.problem}"


def _place(answer: Answer, settings: Settings) -> str:
    """With the line, which only a person who asks needs."""
    key, _, text = answer.rule.partition(" ")
    if key in LISTS:
        found = [one for one in settings.entries(key) if (one.value, one.layer) == (text, answer.origin)]
        return found[0].origin() if found else answer.origin
    return settings.origin("network.default") if answer.rule.startswith("network.default") else answer.origin
