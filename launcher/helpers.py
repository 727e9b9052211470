"""Helpers that a session may need are reached by the name of their module, which adds itself to the policy where it is wanted."""

from __future__ import annotations

from agent_sandbox.config.keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

# The module, the key that switches it, and whether it brings a process along.
ATTACHED = (("agent_sandbox.chaperon.attach", "slurm.enabled", True), ("agent_sandbox.launcher.mail.attach", "mail.stubs", False))

EXPLAINS = ("agent_sandbox.chaperon.explain",)  # modules that explain commands; each has its NAMES


def find_explainer(name: str) -> ModuleType | None:
    """Who can say what becomes of a command with this name."""
    from importlib import import_module

    return next((found for module in EXPLAINS if name in (found := import_module(module)).NAMES), None)


def attach_helpers(policy: Policy, case: Case, backend: str, *, with_processes: bool = True) -> Policy:
    for module, switch, has_process in ATTACHED:
        if KEYS[switch].ready and case.settings.text(switch) != "off" and (with_processes or not has_process):
            from importlib import import_module

            policy = import_module(module).attach(policy, case, backend)
    return policy
