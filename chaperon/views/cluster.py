"""sinfo, sshare, sacctmgr, and what scontrol shows of the cluster: nothing of anybody's jobs. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.command import Command
from agent_sandbox.chaperon.rebuild import force, rebuild
from agent_sandbox.chaperon.views.scope import other_users

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.command import Step
    from agent_sandbox.chaperon.views.scope import Scope
    from agent_sandbox.chaperon.words import Approved


def cluster(approved: Approved, scope: Scope) -> Step:
    return Command(program=approved.command, words=rebuild(approved), live=True)


def shares(approved: Approved, scope: Scope) -> Step:
    """Of one's own."""
    return other_users(approved, "users", scope) or cluster(force(approved, "users", scope.user), scope)
