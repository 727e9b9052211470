"""Helpers that a session may need are reached by the name of their module, which adds itself to the policy where it is wanted."""

from __future__ import annotations

from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

PROXY = "agent_sandbox.launcher.proxy.attach"
# The module, the key that switches it (by not being off, or by having entries), and whether it goes with a session alone: what is
# pasted from a --dry-run has none.
ATTACHED = (
    ("agent_sandbox.launcher.trust.attach", "network.ca_bundle", True), ("agent_sandbox.chaperon.attach", "slurm.enabled", True),
    ("agent_sandbox.launcher.mail.attach", "mail.stubs", False), (PROXY, "network.mode", True),
)  # fmt: skip

EXPLAINS = ("agent_sandbox.chaperon.explain",)  # modules that explain commands; each has its NAMES


def find_explainer(name: str) -> ModuleType | None:
    """Who can say what becomes of a command with this name."""
    from importlib import import_module

    return next((found for module in EXPLAINS if name in (found := import_module(module)).NAMES), None)


def explained_commands() -> list[str]:
    from importlib import import_module

    return [name for module in EXPLAINS for name in import_module(module).NAMES]


def attach_helpers(policy: Policy, case: Case, backend: str, *, in_session: bool = True) -> Policy:
    if not in_session and policy.network.mode == "proxied":
        policy = replace(policy, network=replace(policy.network, mode="isolated", why="what is pasted has no proxy beside it"))
    for module, switch, goes_with_session in ATTACHED:
        if KEYS[switch].ready and _is_on(switch, case.settings) and (in_session or not goes_with_session) and _has_use(module, policy, case.settings):
            policy = __import__(module, fromlist=["attach"]).attach(policy, case, backend)  # importlib takes longer than what it would load
    return policy


def _has_use(module: str, policy: Policy, settings: Settings) -> bool:
    """Without a proxy there is something to say of credentials that it would have added, and something to take back of a session before."""
    return module != PROXY or policy.network.mode == "proxied" or bool(settings.entries("network.inject")) or _has_shim(policy)


def _has_shim(policy: Policy) -> bool:
    return "/node.cjs" in policy.environment.values.get("NODE_OPTIONS", "")


def _is_on(switch: str, settings: Settings) -> bool:
    return bool(settings.names(switch)) if KEYS[switch].listed else settings.text(switch) != "off"
