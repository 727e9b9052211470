"""What all bots share – the group and the directory above their namespaces – as parts, and the way back. Pure."""

from __future__ import annotations

import json

from agent_sandbox.admin.places import GROUP, NAMESPACES, STATE
from agent_sandbox.admin.steps import Delete, Make, Part, Put, Set, Step, Tool, Unmake
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.found import Site

    Tools = dict[str, str]

RECORD = f"{STATE}/init.json"


def check_site(site: Site) -> None:
    """UserError if the names are somebody else's."""
    if site.group and not site.begun:
        raise UserError(f"there is a group «{GROUP}» that is not ours", hint=f"rename it: groupmod --new-name NAME {GROUP}")
    if site.top.kind and (site.top.kind != "directory" or site.top.owner != "root"):
        raise UserError(f"is a {site.top.kind} of {site.top.owner or 'somebody'}, not root's directory", where=NAMESPACES)


def site_parts(site: Site, owner: str, tools: Tools) -> tuple[Part, ...]:
    made = json.dumps({"made_directory": not site.top.kind}) + "\n"
    put = Step(does=f"write {RECORD}", why="what `init --undo` has to take back", act=Put(path=RECORD, content=made, mode=0o600))
    add = Tool(argv=(tools["groupadd"], "--system", "--", GROUP), names=(GROUP,), present=(f"group:{GROUP}",))
    make = Make(path=NAMESPACES) if not site.top.kind else Set(path=NAMESPACES, owner="root", group="root", mode=0o755)
    join = Tool(argv=(tools["gpasswd"], "--add", owner, GROUP), names=(GROUP,), present=(f"group:{GROUP}:{owner}",))
    return (
        Part(what="record of init", should="there", found="there" if site.begun else "none", steps=(put,)),
        Part(what=f"group {GROUP}", should="there", found="there" if site.group else "none",
             steps=(Step(does=f"add the group {GROUP}", why="who shares files with bots, and every bot", act=add),)),
        Part(what=NAMESPACES, should="root:root 0755", found=f"{site.top.owner}:{site.top.group} {site.top.mode:04o}" if site.top.kind else "none",
             steps=(Step(does=f"make {NAMESPACES}", why="the bots' namespaces lie in it", act=make),)),
        Part(what=f"{owner} in the group {GROUP}", should="yes", found="yes" if owner in site.members else "no",
             steps=(Step(does=f"add {owner} to the group {GROUP}", why="to use what bots make in shared directories", act=join),)),
    )  # fmt: skip


def unsite_steps(site: Site, bots: tuple[str, ...], shares: tuple[str, ...], tools: Tools) -> tuple[Step, ...]:
    if bots:
        raise UserError(f"there are bots: {', '.join(bots)}", hint="`botadm destroy` each of them first")
    if shares:
        raise UserError(f"directories are shared: {', '.join(shares)}", hint="`botadm noshare -r` each of them first")
    if not site.begun:
        return ()
    steps = []
    if site.group:
        remove = Tool(argv=(tools["groupdel"], "--", GROUP), names=(GROUP,), absent=(f"group:{GROUP}",))
        steps.append(Step(does=f"remove the group {GROUP}", why="init made it", act=remove))
    if site.top.kind and json.loads(site.begun)["made_directory"]:
        steps.append(Step(does=f"remove {NAMESPACES}", why="init made it", act=Unmake(path=NAMESPACES)))
    return (*steps, Step(does=f"delete {STATE}", why="the records and the journal of all this", act=Delete(path=STATE)))
