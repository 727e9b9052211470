"""A plan that is no single command, in lines that a person reads: what is allowed where, what the session makes, what is filtered. Pure."""

from __future__ import annotations

from agent_sandbox.launcher import rights
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.seeing.quoting import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.launch import Decision
    from agent_sandbox.launcher.plan import Domain, PathRule, Room

WORDS = (("write", rights.MAKE_REG), ("device", rights.IOCTL_DEV), ("read", rights.READ_FILE), ("connect", rights.RESOLVE_UNIX))


def outline(decision: Decision) -> str:
    plan = decision.plan
    lines = [f"backend {plan.backend}"]
    if plan.program:
        lines.append(f"runs {' '.join(quote(word) for word in plan.argv)}")
    if plan.domain:
        lines += _domain(plan.domain)
    if plan.room:
        lines += _room(plan.room)
    lines.append(f"variables {' '.join(sorted(decision.policy.environment.values))}")
    lines.append(f"command {' '.join(quote(word) for word in decision.command)}")
    return "\n".join(lines) + "\n"


def _domain(domain: Domain) -> Iterator[str]:
    yield from (f"{right_of(rule):8}{printable(rule.path)}" for rule in domain.rules)
    yield from (f"socket  {printable(path)}" for path in domain.allowed.sockets)
    yield f"network {'as outside' if domain.allowed.hosts is None else 'no internet sockets'}"
    yield f"filters {len(domain.filters)}, " + ("with a supervisor" if domain.supervised else "without a supervisor")


def right_of(rule: PathRule) -> str:
    return next((word for word, bit in WORDS if rule.rights & bit), "other")


def _room(room: Room) -> Iterator[str]:
    yield from (f"makes   {printable(path)}/" for path in room.directories)
    yield from (f"links   {printable(path)} -> {printable(target)}" for path, target in room.links)
    yield from (f"writes  {printable(path)}" for path, *_ in room.files)
