"""The name of a variable becomes an answer: kept, removed or set, and by which rule. Its value is never shown."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace
from agent_sandbox.launcher.own import USUAL
from agent_sandbox.launcher.policy import Rooms
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.resolve.environment import Names, resolve_environment
from agent_sandbox.launcher.resolve.network import resolve_network
from agent_sandbox.launcher.seeing.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.launch import Case

OURS = "agent-sandbox"
CA_BUNDLE = "network.ca_bundle"
INJECT = "network.inject"


def explain_variable(name: str, case: Case) -> Answer:
    """A variable that is not set is asked about as if it were."""
    if "=" in name or "\0" in name:
        raise UserError(f"{printable(name)} is not the name of a variable", hint="agent-sandbox explain env NAME")
    is_set = name in case.host.environment
    host = case.host if is_set else replace(case.host, environment={**case.host.environment, name: ""})
    found = resolve_environment(case.settings, host, Rooms(home=host.home, tmp="/tmp", own=USUAL))  # only names are asked for
    verdict, rule = "kept", "nothing removes it"
    if name not in case.settings.table("environment.set") and _is_of_the_bundle(name, case):
        verdict, rule = "set", CA_BUNDLE
    elif name not in case.settings.table("environment.set") and _is_of_a_credential(name, case):
        verdict, rule = "set", INJECT
    elif name in found.renamed:
        verdict, rule = "set", "environment.set" if name in case.settings.table("environment.set") else OURS
    elif name in dict(found.removed):
        verdict, rule = "removed", dict(found.removed)[name]
    elif name in dict(found.changed):
        verdict, rule = "kept, cleaned", f"environment.strip_passwords takes out {dict(found.changed)[name]}"
    elif _allowing(name, case):
        rule = "environment.allow"
    notes = () if is_set or verdict == "set" else ("it is not set here: this is what would hold",)
    if rule == INJECT:
        notes = ("a placeholder, or the base URL of the proxy that adds the credential; the credential itself stays outside",)
    return Answer(subject=f"env {name}", verdict=verdict, rule=rule, origin=_origin(name, rule, case), notes=notes)


def _is_of_the_bundle(name: str, case: Case) -> bool:
    if not case.settings.names(CA_BUNDLE):
        return False
    from agent_sandbox.launcher.trust.attach import VARIABLES

    return name in VARIABLES


def _is_of_a_credential(name: str, case: Case) -> bool:
    """One that leads to a base URL of the proxy, where there is a proxy."""
    if not case.settings.entries(INJECT) or resolve_network(case.settings).mode != "proxied":
        return False
    from agent_sandbox.launcher.proxy.inject import asked, variables

    return name in variables(asked(case.settings), 0, case.settings)


def _allowing(name: str, case: Case) -> list[str]:
    """Where the entries stand that let it through."""
    entries = [entry for entry in case.settings.entries("environment.allow") if Names([entry.value]).match(name)]
    return [entry.origin() for entry in entries if not case.settings.denied_by(entry.key, name, entry.rank)]


def _origin(name: str, rule: str, case: Case) -> str:
    key, _, pattern = rule.partition(" ")
    if key == "environment.allow":
        return ", ".join(_allowing(name, case))
    if key == "environment.block":
        return ", ".join(entry.origin() for entry in case.settings.entries(key) if entry.value == pattern)
    if key == "environment.set":
        entries = case.settings.entries(key)
        return ", ".join(entry.origin() for entry in entries if entry.value.startswith(f"{name}="))
    return case.settings.origin(key) if key in ("environment.mode", "environment.strip_passwords", CA_BUNDLE, INJECT) else "default"
