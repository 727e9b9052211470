"""Helpers that a session may need are reached by the name of their module, which adds itself to the policy where it is wanted."""

from __future__ import annotations

from agent_sandbox.config.keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

# Module, and the key that switches it: by not being off, or by having entries.
ATTACHED = (("agent_sandbox.launcher.trust.attach", "network.ca_bundle"), ("agent_sandbox.chaperon.attach", "slurm.enabled"))


EXPLAINS = ("agent_sandbox.chaperon.explain",)  # modules that explain commands; each has its NAMES


def find_explainer(name: str) -> ModuleType | None:
    """Who can say what becomes of a command with this name."""
    from importlib import import_module

    return next((found for module in EXPLAINS if name in (found := import_module(module)).NAMES), None)


def explained_commands() -> list[str]:
    from importlib import import_module

    return [name for module in EXPLAINS for name in import_module(module).NAMES]


def attach_helpers(policy: Policy, case: Case, backend: str) -> Policy:
    for module, switch in ATTACHED:
        if KEYS[switch].ready and _is_on(switch, case.settings):
            from importlib import import_module

            policy = import_module(module).attach(policy, case, backend)
    return policy


def _is_on(switch: str, settings: Settings) -> bool:
    return bool(settings.names(switch)) if KEYS[switch].listed else settings.text(switch) != "off"
