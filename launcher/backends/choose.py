"""Which mechanism builds the jail, and what it cannot give to this policy. Pure."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.plan import Backend
    from agent_sandbox.launcher.policy import Gap, Host, Policy


def choose_backend(settings: Settings, host: Host) -> Backend:
    """The one that was named, never another in its place; `auto` takes the first that is here."""
    asked = settings.text("sandbox.backend")
    if asked in ("auto", "bwrap"):
        if not host.bwrap:
            hint = "apt install bubblewrap, or dnf install bubblewrap; `agent-sandbox doctor` says more"
            raise UserError("bwrap is not installed", hint=hint)
        from agent_sandbox.launcher.backends.bwrap import Bwrap

        return Bwrap()
    raise UserError(
        f"the backend {asked} is not in this version", where=settings.origin("sandbox.backend"),
        hint='sandbox.backend = "auto" takes bwrap',
    )  # fmt: skip


def check_gaps(gaps: tuple[Gap, ...], policy: Policy, backend: str) -> None:
    """A gap in a required property stops the launch, unless it was accepted by name."""
    for gap in gaps:
        if gap.property in policy.required and gap.property not in policy.accepted:
            raise UserError(
                f"{backend} cannot give {gap.property} here: {gap.reason}",
                hint=f'{gap.fix or "sandbox.require asks for it"}; sandbox.accept_gaps = ["{gap.property}"] goes on without it',
            )  # fmt: skip
