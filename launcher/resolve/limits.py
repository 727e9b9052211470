"""The settings' limits become the jail's. Pure."""

from __future__ import annotations

from agent_sandbox.launcher.policy import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings

NAMES = ("processes", "memory", "cpu_time", "file_size", "open_files", "core_size", "wall_time")


def resolve_limits(settings: Settings) -> Limits:
    return Limits(**{name: settings.number(f"limits.{name}") for name in NAMES})
