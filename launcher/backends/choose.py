"""Which mechanism builds the jail: of those that run here, the one that leaves the fewest required properties open. Pure.

What runs here, what the policy comes to and what the kernel can do are asked through functions, in this order, and only as far as it takes.
"""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.plan import Backend
    from agent_sandbox.launcher.policy import Gap, Host, Policy, Tried

ORDER = ("bwrap", "firejail", "landlock")  # the first of them where they are equal


@record
class Choice:
    backend: Backend
    policy: Policy
    gaps: tuple[Gap, ...]
    passed_over: tuple[Tried, ...] = ()  # what does not run here and would have come first

    def open_properties(self) -> int:
        """How many gaps there are in what is required: those that stop a launch first, then those that were accepted."""
        required = [gap for gap in self.gaps if gap.property in self.policy.required and not gap.weak]
        return 1000 * sum(self.policy.insists_on(gap.property) for gap in required) + len(required)


def choose(settings: Settings, host: Callable[[], Host], attempt: Callable[[str], Tried], policy_for: Callable[[Backend], Policy]) -> Choice:
    """The one that was named, never another in its place; `auto` compares."""
    asked = settings.text("sandbox.backend")
    best: Choice | None = None
    failed: list[Tried] = []
    for name in ORDER if asked == "auto" else (asked,):
        tried = attempt(name)
        if tried.problem:
            failed.append(tried)
            continue
        backend = load(name)
        policy = policy_for(backend)
        found = Choice(backend=backend, policy=policy, gaps=backend.gaps(policy, host()), passed_over=tuple(failed))
        if best is None or found.open_properties() < best.open_properties():
            best = found
        if not best.open_properties():
            break
    if best is None:
        raise _none(asked, failed, settings)
    return best


def load(name: str) -> Backend:
    """Imported when it is used: a launch needs one of them."""
    if name == "bwrap":
        from agent_sandbox.launcher.backends.bwrap import Bwrap

        return Bwrap()
    if name == "firejail":
        from agent_sandbox.launcher.backends.firejail import Firejail

        return Firejail()
    from agent_sandbox.launcher.backends.landlock import Landlock

    return Landlock()


def _none(asked: str, failed: list[Tried], settings: Settings) -> UserError:
    if asked != "auto":
        (only,) = failed
        return UserError(f"{asked} cannot be used: {only.problem}", where=settings.origin("sandbox.backend"), hint=only.fix)
    problems = "; ".join(f"{one.backend}: {one.problem}" for one in failed)
    return UserError(f"no backend can be used ({problems})", hint=failed[0].fix or "`agent-sandbox doctor` says more")


def check_gaps(gaps: tuple[Gap, ...], policy: Policy, backend: str) -> None:
    """A gap in a required property stops the launch, unless it was accepted by name."""
    for gap in gaps:
        if not gap.weak and policy.insists_on(gap.property):
            raise UserError(
                f"{backend} cannot give {gap.property} here: {gap.reason}",
                hint=f'{gap.fix or "sandbox.require asks for it"}; sandbox.accept_gaps = ["{gap.property}"] goes on without it',
            )  # fmt: skip
