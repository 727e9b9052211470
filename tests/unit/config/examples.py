"""What the examples of merging share: the names of the layers, and whole clamps to compare with."""

from __future__ import annotations

from agent_sandbox.config.settings import Clamp, Rank, Settings

ADMIN, USER, REPOSITORY, LINE = "/admin/0", "/user/0", "/project/file", "command line"
HARDEN = "a project's own file may only harden"


def clamp(layer: str, key: str, wanted: str, kept: str, why: str) -> Clamp:
    return Clamp(layer=layer, key=key, wanted=wanted, kept=kept, why=why)


def own(settings: Settings, key: str) -> list[tuple[str, Rank, str]]:
    """Entries that are not shipped."""
    return [(e.value, e.rank, e.layer) for e in settings.entries(key) if e.layer != "default"]
