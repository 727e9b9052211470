"""Helpers that a session may need are reached by the name of their module, which adds itself to the policy where it is wanted."""

from __future__ import annotations

from agent_sandbox.config.keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

ATTACHED = (("agent_sandbox.chaperon.attach", "slurm.enabled"),)  # module, and the key that switches it


EXPLAINS = ("agent_sandbox.chaperon.explain",)  # modules that explain commands; each has its NAMES


def find_explainer(name: str) -> ModuleType | None:
    """Who can say what becomes of a command with this name."""
    from importlib import import_module

    return next((found for module in EXPLAINS if name in (found := import_module(module)).NAMES), None)


def attach_helpers(policy: Policy, case: Case, backend: str) -> Policy:
    for module, switch in ATTACHED:
        if KEYS[switch].ready and case.settings.text(switch) != "off":
            from importlib import import_module

            policy = import_module(module).attach(policy, case, backend)
    return policy
