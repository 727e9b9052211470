"""`agent-sandbox --bot NAME …`, the person's side: their settings and project become what is handed to the bot's side, which builds the jail.

All layers are read here, as the person, before the switch. The bot's side adds nothing but its machine's admin, who is asked there again.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import stat

from agent_sandbox.admin.bots.attend import attend
from agent_sandbox.admin.bots.facts import need_facts
from agent_sandbox.admin.bots.handed import Handed, to_frame
from agent_sandbox.admin.bots.run import check_permitted
from agent_sandbox.admin.bots.session import word
from agent_sandbox.admin.places import GROUP
from agent_sandbox.admin.programs import ENVIRONMENT, find_tools
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.settings import Rank
from agent_sandbox.launcher.launch import open_audit, open_case
from agent_sandbox.launcher.policy import Rooms
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.resolve.environment import resolve_environment
from agent_sandbox.launcher.resolve.project import check_project
from agent_sandbox.launcher.say import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.bots.facts import Facts
    from agent_sandbox.launcher.cli import Request
    from agent_sandbox.launcher.launch import Case

FOR_ALL = "/usr/local/bin/agent-sandbox"  # of `make install-system`
HIDDEN = "filesystem.hidden"
NOWHERE = Rooms(home="/", tmp="/tmp", own="/")


def run(request: Request) -> int:
    facts = need_facts(request.bot)
    check_permitted(facts)
    case = open_case(request)
    check_project(case.project.real, case.places, case.settings, case.disk)
    words = sudo_words(facts, entry_for(facts, case))
    if request.dry_run:
        print(shlex.join(words))
        say(f"the jail is built by that, as {facts.name}, from what is handed to it; nothing was started")
        return 0
    tell_about_groups(case.project.real, facts)
    frame = to_frame(handed_by(case))
    open_audit(case.settings, case.places, case.host).write("bot", {
        "user": case.host.user, "bot": facts.name, "project": case.project.real, "command": [one[:500] for one in request.command[:50]],
    })  # fmt: skip
    environment = {**ENVIRONMENT, "TERM": word(case.host.environment.get("TERM", ""), "dumb")}
    return attend(words, environment, frame, pwd.getpwnam(facts.name).pw_uid, facts.name)


def sudo_words(facts: Facts, entry: str) -> tuple[str, ...]:
    """A rule of ours asks for no password; one of the site's may."""
    silent = ("-n",) if facts.sudoers else ()
    return (find_tools(("sudo",))["sudo"], *silent, "-u", facts.name, "--", entry, "session")


def entry_for(facts: Facts, case: Case) -> str:
    """The program that a strict rule names; else the one beside us, where the bot can read it."""
    if facts.strict:
        return facts.entry
    entry = f"{case.host.install}/bin/agent-sandbox-bot"
    unread = next((one for one in _way(entry, case.host.package) if not _is_for_all(one)), "")
    if unread:
        hint = f"start the one that is installed for all: {FOR_ALL}" if os.path.exists(FOR_ALL) else "install one for all: sudo make install-system"
        raise UserError(f"{facts.name} cannot read the agent-sandbox that you started: {printable(unread)} is not for everybody", hint=hint)
    return entry


def _way(*paths: str) -> list[str]:
    return [one for path in paths for one in ("/" + "/".join(path.split("/")[1:end]) for end in range(2, path.count("/") + 2))]


def _is_for_all(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return bool(mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH))


def handed_by(case: Case) -> Handed:
    """With the shipped list of hidden paths as it is for the person: in the bot's home those names mean other files."""
    request, host = case.request, case.host
    settings = case.settings.as_data()
    settings[HIDDEN] = [[entry.value, int(max(entry.rank, Rank.DEFAULT))] for entry in case.settings.entries(HIDDEN)]
    asked = request.project if request.project.startswith("/") else f"{host.cwd}/{request.project}".rstrip("/")
    return Handed(
        command=request.command, asked=asked, project=case.project.real, cwd=host.cwd, shell=host.shell,
        environment=resolve_environment(case.settings, host, NOWHERE).values, settings=settings,
    )  # fmt: skip


def tell_about_groups(project: str, facts: Facts) -> None:
    """A group that was joined after the log-in is not ours yet."""
    try:
        shared = grp.getgrnam(GROUP)
        mine = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return
    if os.stat(project).st_gid == shared.gr_gid and os.getuid() and shared.gr_gid not in (*os.getgroups(), os.getgid()):
        joined = "log in again: you joined it after this log-in" if mine in shared.gr_mem else f"sudo gpasswd --add {mine} {GROUP}, and log in again"
        say(f"what {facts.name} makes belongs to the group {GROUP}, which is not yours here: {joined}", "warning")
