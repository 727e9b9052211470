"""The commands of botadm about bots: each finds the machine, plans, and has the plan shown or applied."""

from __future__ import annotations

import os

from agent_sandbox.admin import journal
from agent_sandbox.admin.apply import recover, take_back
from agent_sandbox.admin.bots import plan, site
from agent_sandbox.admin.bots.facts import Facts, list_facts, need_facts, read_facts
from agent_sandbox.admin.change import Planned, change
from agent_sandbox.admin.found import Found, ask_sudo, find, find_site, mounts_below
from agent_sandbox.admin.names import check_bot_name
from agent_sandbox.admin.owner import find_owner, need_root
from agent_sandbox.admin.places import GROUP, namespace_of
from agent_sandbox.admin.report import Outcome
from agent_sandbox.admin.share.records import headers
from agent_sandbox.admin.steps import FINAL, Part, Step, steps_of
from agent_sandbox.admin.tell import tell
from agent_sandbox.admin.trust import check_entry, check_own_code, package
from agent_sandbox.admin.turn import own_turn
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    Tools = dict[str, str]

NEW_LOGIN = f"a shell that was open before does not know the group {GROUP} yet: log in again, or use `newgrp {GROUP}`"
INIT_FIRST = f"sudo botadm init makes the group {GROUP} and the bots' directory"


def init(*, owner: str, undo: bool, dry_run: bool) -> Outcome:
    def planned(tools: Tools) -> Planned:
        found = find_site()
        if undo:
            shares = tuple(header.path for header in headers())
            return Planned(steps=site.unsite_steps(found, bot_names(), shares, tools))
        person = find_owner(owner, os.environ, bot_names())
        site.check_site(found)
        return with_login_note(steps_of(site.site_parts(found, person, tools)))

    return change("init --undo" if undo else "init", planned, dry_run=dry_run)


def create(name: str, *, owner: str, sudoers: bool, strict: bool, force: bool, dry_run: bool) -> Outcome:
    def planned(tools: Tools) -> Planned:
        person = find_owner(owner, os.environ, bot_names())
        found = find(name, person)
        check_new(found, person, force=force)
        want = Facts(name=name, owner=person, strict=strict, sudoers=sudoers, entry=entry_point() if strict else "")
        return with_login_note(steps_of(plan.parts(want, found, tools)))

    check_bot_name(name)
    return with_sudos_word(name, change(f"create {name}", planned, dry_run=dry_run))


def check_new(found: Found, owner: str, *, force: bool) -> None:
    """UserError for what is there and not ours."""
    name, facts = found.name, found.facts
    if not found.site.begun or not found.site.group:
        raise UserError("nothing is set up for bots here", hint=INIT_FIRST)
    if facts is None and (found.user or found.group):
        raise UserError(f"there is a{' user' if found.user else ' group'} «{name}» that is not a bot of ours", hint="choose another name")
    if facts and facts.owner != owner:
        raise UserError(f"{name} is {facts.owner}'s bot")
    if facts and not facts.enabled:
        raise UserError(f"{name} is there, and disabled", hint=f"sudo botadm enable {name}")
    check_namespace(found, force=force or facts is not None)


def check_namespace(found: Found, *, force: bool) -> None:
    kind = found.namespace.kind
    if kind not in ("", "directory"):
        raise UserError(f"is a {kind}; it must be a directory", where=namespace_of(found.name), hint="look at it, and remove it")
    if kind and not force:
        raise UserError("is there already", where=namespace_of(found.name), hint="--force makes it the bot's, with all that is in it")


def update(name: str, *, sudoers: bool | None, strict: bool | None, dry_run: bool) -> Outcome:
    def planned(tools: Tools) -> Planned:
        facts = need_enabled(name)
        found = find(name, facts.owner)
        check_namespace(found, force=True)
        is_strict = facts.strict if strict is None else strict
        entry = entry_point() if is_strict else ""
        want = replace(facts, strict=is_strict, sudoers=facts.sudoers if sudoers is None else sudoers, entry=entry)
        return with_login_note(steps_of(plan.parts(want, found, tools)))

    return with_sudos_word(name, change(f"update {name}", planned, dry_run=dry_run))


def disable(name: str, *, dry_run: bool) -> Outcome:
    def planned(tools: Tools) -> Planned:
        facts = need_facts(name)
        found = find(name, facts.owner)
        if found.disabled and not facts.enabled and all(part.right for part in plan.disabled_parts(facts, found)):
            return Planned(steps=())
        if found.disabled:
            return Planned(steps=again(found, tools))
        return Planned(steps=plan.disable_steps(found, tools))

    return change(f"disable {name}", planned, dry_run=dry_run)


def again(found: Found, tools: Tools) -> tuple[Step, ...]:
    """Of a bot that is disabled and not quite: all but keeping, since what is there now is not what it was."""
    return plan.disable_steps(found, tools)[1:]


def enable(name: str, *, dry_run: bool) -> Outcome:
    def planned(tools: Tools) -> Planned:
        facts = need_facts(name)
        found = find(name, facts.owner)
        return Planned(steps=plan.enable_steps(found, tools) if found.disabled else ())

    return with_sudos_word(name, change(f"enable {name}", planned, dry_run=dry_run))


def destroy(name: str, *, keep_rule: bool, dry_run: bool) -> Outcome:
    def planned(tools: Tools) -> Planned:
        facts = need_facts(name)
        found = find(name, facts.owner)
        if found.user and found.user.home != namespace_of(name):
            raise UserError(f"the user {name} has another home ({found.user.home}): it is not the bot that we made")
        if mounted := mounts_below(namespace_of(name)):
            raise UserError(f"something is mounted in it: {', '.join(mounted)}", where=namespace_of(name), hint="umount it, and start again")
        left = f"files of {name} elsewhere keep its number {found.user.uid}, which the next account may get" if found.user else ""
        return Planned(steps=plan.destroy_steps(found, tools, keep_rule=keep_rule), notes=(left,) if left else ())

    return change(f"destroy {name}", planned, dry_run=dry_run)


def undo(*, dry_run: bool) -> Outcome:
    """The last command that was applied is taken back, as far as that is possible."""
    need_root()
    check_own_code()
    with own_turn():
        for line in recover() if not dry_run else ():
            tell(line)
        entry = next((one for one in reversed(journal.entries()) if one.end == "applied"), None)
        if entry is None:
            return Outcome(command="undo", steps=(), applied=False)
        check_unused(entry.command)
        steps = tuple(Step(does=f"take back: {one.does}", why=f"«{entry.command}»", act=one.act) for one in reversed(entry.steps))
        lost = tuple(f"cannot be taken back: {one.does}" for one in entry.steps if isinstance(one.act, FINAL))
        if not dry_run:
            undone = take_back(entry.steps)
            lost += tuple(f"could not be taken back: {one}" for one in undone.stuck)
            journal.mark(entry, "undone")
    return Outcome(command=f"undo of «{entry.command}»", steps=steps, applied=not dry_run, backwards=True, notes=lost)


def check_unused(command: str) -> None:
    """A bot that has worked is destroyed, not un-created: its processes and files would outlive it."""
    word, _, name = command.partition(" ")
    facts = read_facts(name) if word == "create" else None
    if facts is None:
        return
    names = set(os.listdir(namespace_of(name))) if os.path.isdir(namespace_of(name)) else set[str]()
    if find(name, facts.owner).processes or names - {file for file, _, _ in plan.FILES}:
        raise UserError(f"{name} has been used since", hint=f"sudo botadm destroy {name}")


def status(name: str) -> tuple[Facts, tuple[Part, ...]]:
    facts = need_facts(name)
    found = find(name, facts.owner)
    tools = dict.fromkeys(("groupadd", "useradd", "usermod", "gpasswd", "visudo"), "")
    if facts.enabled:
        return facts, plan.parts(facts, found, tools)
    return facts, plan.disabled_parts(facts, found)


def with_sudos_word(name: str, outcome: Outcome) -> Outcome:
    """A rule that sudo does not go by is worth a word at once."""
    facts = need_facts(name) if outcome.applied else None
    if facts is None or not facts.sudoers or ask_sudo(facts):
        return outcome
    note = "sudo does not go by the rule: does /etc/sudoers have `@includedir /etc/sudoers.d`, and does no later rule take it back?"
    return replace(outcome, notes=(*outcome.notes, note))


def bot_names() -> tuple[str, ...]:
    return tuple(facts.name for facts in list_facts())


def need_enabled(name: str) -> Facts:
    facts = need_facts(name)
    if not facts.enabled:
        raise UserError(f"{name} is disabled", hint=f"sudo botadm enable {name}")
    return facts


def entry_point() -> str:
    """Of the installed copy that runs: its root's and nobody else's, or UserError."""
    entry = f"{os.path.dirname(os.path.dirname(package()))}/bin/agent-sandbox-bot"
    check_entry(entry)
    return entry


def with_login_note(steps: tuple[Step, ...]) -> Planned:
    joins = any("gpasswd" in getattr(step.act, "argv", ("",))[0] for step in steps)
    return Planned(steps=steps, notes=(NEW_LOGIN,) if joins else ())
