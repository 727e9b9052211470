"""Helpers that a session may need are reached by the name of their module, which adds itself to the policy where it is wanted."""

from __future__ import annotations

from agent_sandbox.config.keys import KEYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

ATTACHED = (("agent_sandbox.chaperon.attach", "slurm.enabled"),)  # module, and the key that switches it


def attach_helpers(policy: Policy, case: Case, backend: str) -> Policy:
    for module, switch in ATTACHED:
        if KEYS[switch].ready and case.settings.text(switch) != "off":
            from importlib import import_module

            policy = import_module(module).attach(policy, case, backend)
    return policy
