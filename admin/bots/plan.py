"""A bot as it is wanted, and the machine as it was found, become parts: what should be so, what is, and the steps between. Pure.

The rule for sudo comes last, so nobody acts as a bot that is not whole, and goes first when a bot is disabled or destroyed.
"""

from __future__ import annotations

import json

from agent_sandbox.admin.accountlines import Line
from agent_sandbox.admin.bots import texts
from agent_sandbox.admin.bots.facts import Facts, to_text
from agent_sandbox.admin.places import GROUP, NOLOGIN, disabled_of, facts_of, namespace_of, rule_of
from agent_sandbox.admin.share.acl import has_person
from agent_sandbox.admin.steps import UNKNOWN, Act, Delete, Drop, End, Grant, Lines, Make, Part, Put, Set, Step, Sweep, Tool
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.admin.found import Found, Place

    Tools = dict[str, str]

MODE = 0o2770
FILES = ((".bashrc", texts.BASHRC, 0o660), (".profile", texts.PROFILE, 0o660), ("env", texts.ENV, 0o640))


def step(does: str, why: str, act: Act) -> Step:
    return Step(does=does, why=why, act=act)


def parts(want: Facts, found: Found, tools: Tools) -> tuple[Part, ...]:
    """A bot that is enabled, whole."""
    return (
        _record(want, found), _group(want, found, tools), _user(want, found, tools),
        _membership(want.name, found, tools), _membership(want.owner, found, tools),
        *_namespace(want, found), _rule(want, found, tools), *((_asked("yes", found),) if want.sudoers else ()),
    )  # fmt: skip


def disabled_parts(want: Facts, found: Found) -> tuple[Part, ...]:
    """What should be so of a bot that is disabled."""
    return (
        Part(what="rule for sudo", should="none", found=_described(found.rule)),
        _asked("no", found),
        Part(what="account", should="locked and expired", found=_lock(found.lines)),
        Part(what="namespace", should="0000", found=f"{found.namespace.mode:04o}" if found.namespace.kind == "directory" else "none"),
        Part(what="processes", should="none", found=_count(found)),
    )


def disable_steps(found: Found, tools: Tools) -> tuple[Step, ...]:
    name, facts = found.name, found.facts
    assert facts is not None
    steps = [step("keep what `enable` puts back", "exactly back", Put(path=disabled_of(name), content=kept_text(found), mode=0o600))]
    if found.rule.kind:
        why = "a locked and expired user still runs by sudo -u: only this ends that"
        steps.append(step(f"remove {rule_of(name)}", why, Drop(path=rule_of(name))))
    lock = (tools["usermod"], "--lock", "--expiredate", "1", "--shell", NOLOGIN, "--", name)
    steps.append(step("lock the account, let it expire", "no log-in by any other way", Tool(argv=lock, names=(name,), present=(f"passwd:{name}",))))
    if found.namespace.kind == "directory":
        closed = Set(path=namespace_of(name), owner=found.namespace.owner, group=found.namespace.group, mode=0)
        steps.append(step(f"close {namespace_of(name)} (0000)", "nobody works in it meanwhile", closed))
    steps.append(_noted(replace(facts, enabled=False)))
    if found.user:
        steps.append(step(f"end the processes of {name}", "what runs already does not ask sudo again", End(uid=found.user.uid, name=name)))
    return tuple(steps)


def enable_steps(found: Found, tools: Tools) -> tuple[Step, ...]:
    name, facts, kept = found.name, found.facts, json.loads(found.disabled)
    assert facts is not None
    lines = tuple(Line(**line) for line in kept["lines"])
    steps = [step("put the account's lines back", "exactly as before", Lines(lines=lines))]
    if found.namespace.kind == "directory" and kept["mode"] is not None:
        opened = Set(path=namespace_of(name), owner=kept["owner"], group=kept["group"], mode=kept["mode"])
        steps.append(step(f"open {namespace_of(name)} ({kept['mode']:04o})", "exactly as before", opened))
    steps.append(_noted(replace(facts, enabled=True)))
    if kept["rule"]:
        put = Put(path=rule_of(name), content=kept["rule"], mode=0o440, visudo=tools["visudo"])
        steps.append(step(f"write {rule_of(name)}", f"{facts.owner} may act as {name} again", put))
    return (*steps, step("forget what was kept", "it is in place", Drop(path=disabled_of(name))))


def destroy_steps(found: Found, tools: Tools, *, keep_rule: bool) -> tuple[Step, ...]:
    name = found.name
    gone = f"{name} is to be destroyed"
    steps = []
    if found.rule.kind and not keep_rule:
        steps.append(step(f"remove {rule_of(name)}", "nobody acts as the bot any more", Drop(path=rule_of(name))))
    if found.namespace.kind == "directory":
        closed = Set(path=namespace_of(name), owner="root", group="root", mode=0o700)
        steps.append(step(f"close {namespace_of(name)} (0700, root)", "nobody fills it while it is emptied", closed))
    if found.user:
        remove = Tool(argv=(tools["userdel"], "--force", "--", name), names=(name, GROUP), absent=(f"passwd:{name}", f"shadow:{name}"))
        steps.append(step(f"remove the user {name}", gone, remove))
    if found.group:
        remove = Tool(argv=(tools["groupdel"], "--", name), names=(name,), absent=(f"group:{name}", f"gshadow:{name}"), fine=(0, 6))
        steps.append(step(f"remove the group {name}", f"{gone}; userdel may have done it", remove))
    for path, kept in ((disabled_of(name), found.disabled), (facts_of(name), found.facts)):
        if kept:
            steps.append(step(f"remove {path}", "no such bot any more", Drop(path=path)))
    if found.user and found.user.uid > 0:
        steps.append(step(f"end the processes of {name}", gone, End(uid=found.user.uid, name=name)))
        left = f"remove crontabs, jobs of at and System V IPC of {name}"
        steps.append(step(left, "they would work on for the next account of that name or number", Sweep(uid=found.user.uid, name=name)))
    if found.namespace.kind:
        steps.append(step(f"delete {namespace_of(name)} and all in it", gone, Delete(path=namespace_of(name))))
    return tuple(steps)


def _noted(facts: Facts) -> Step:
    state = "enabled" if facts.enabled else "disabled"
    return step(f"note that the bot is {state}", "`list` and `run` say so", Put(path=facts_of(facts.name), content=to_text(facts)))


def kept_text(found: Found) -> str:
    lines = [dict(vars(line)) for line in found.lines if line.file in ("passwd", "shadow")]
    place = found.namespace
    mode = place.mode if place.kind == "directory" else None
    return json.dumps({"lines": lines, "rule": found.rule.text, "owner": place.owner, "group": place.group, "mode": mode}) + "\n"


def _record(want: Facts, found: Found) -> Part:
    put = Put(path=facts_of(want.name), content=to_text(want))
    return Part(
        what="record", should=_words(want), found=_words(found.facts) if found.facts else "none",
        steps=(step(f"write {facts_of(want.name)}", "who owns the bot, for the launcher and for us", put),),
    )  # fmt: skip


def _words(facts: Facts) -> str:
    rule = "no rule of ours" if not facts.sudoers else f"strict, by {facts.entry}" if facts.strict else "a rule for every command"
    return f"of {facts.owner}, {rule}" + ("" if facts.enabled else ", disabled")


def _group(want: Facts, found: Found, tools: Tools) -> Part:
    add = Tool(argv=(tools["groupadd"], "--system", "--", want.name), names=(want.name,), present=(f"group:{want.name}",))
    return Part(
        what=f"group {want.name}", should="there", found="there" if found.group else "none",
        steps=(step(f"add the group {want.name}", "files of this bot belong to it alone", add),),
    )  # fmt: skip


def _user(want: Facts, found: Found, tools: Tools) -> Part:
    name, home = want.name, namespace_of(want.name)
    user = found.user
    add = (
        tools["useradd"], "--system", "--no-create-home", "--no-log-init", "--home-dir", home, "--shell", NOLOGIN, "--gid", name,
        "--comment", f"bot of {_plain(want.owner)}", "--", name,
    )  # fmt: skip
    change = (tools["usermod"], "--home", home, "--shell", NOLOGIN, "--gid", name, "--", name)
    act = Tool(argv=change if user else add, names=(name,), present=(f"passwd:{name}", f"shadow:{name}"))
    return Part(
        what=f"user {name}", should=f"home {home}, shell {NOLOGIN}, group {name}",
        found=f"home {user.home}, shell {user.shell}, group {user.group}" if user else "none",
        steps=(step(f"{'correct' if user else 'add'} the user {name}", "a system user without a password, whom nobody can log in as", act),),
    )  # fmt: skip


def _plain(owner: str) -> str:
    """For the comment field, which may hold no colon."""
    return "".join(char if char.isalnum() or char in "._-@" else "?" for char in owner)


def _membership(name: str, found: Found, tools: Tools) -> Part:
    add = Tool(argv=(tools["gpasswd"], "--add", name, GROUP), names=(GROUP,), present=(f"group:{GROUP}:{name}",))
    return Part(
        what=f"{name} in the group {GROUP}", should="yes", found="yes" if name in found.site.members else "no",
        steps=(step(f"add {name} to the group {GROUP}", "shared directories are this group's", add),),
    )  # fmt: skip


def _namespace(want: Facts, found: Found) -> tuple[Part, ...]:
    path, place = namespace_of(want.name), found.namespace
    make = step(f"make {path}, for root alone at first", "filled before anybody can enter", Make(path=path, mode=0o700))
    there = Part(what=path, should="directory", found=place.kind or "none", steps=(make,))
    grant = step(f"let {want.owner} use all that is made in {path}", "whatever umask the bot has", Grant(path=path, person=want.owner))
    granted = place.kind == "directory" and has_person(bytes.fromhex(place.default), found.owner_uid)
    acl = Part(what=f"default ACL of {path}", should=f"{want.owner}: all", found=f"{want.owner}: all" if granted else "none", steps=(grant,))
    set_ = Set(path=path, owner=want.owner, group=want.name, mode=MODE)
    mode = Part(
        what=f"owner and mode of {path}", should=f"{want.owner}:{want.name} {MODE:04o}", found=f"{place.owner}:{place.group} {place.mode:04o}",
        steps=(step(f"give {path} to {want.owner}, {want.name} and nobody else ({MODE:04o})", "new files get the bot's group", set_),),
    )  # fmt: skip
    return (there, acl, *(_file(want.name, found, *one) for one in FILES), mode)


def _file(name: str, found: Found, file: str, content: str, mode: int) -> Part:
    """Only if it is missing: what the bot or its owner made of it is theirs."""
    path = f"{namespace_of(name)}/{file}"
    put = Put(path=path, content=content, owner=name, group=name, mode=mode)
    kind = found.files.get(file, "") or "none"
    return Part(what=path, should="file", found=kind, steps=(step(f"write {path}", "the bot's shell reads it", put),) if kind == "none" else ())


def _rule(want: Facts, found: Found, tools: Tools) -> Part:
    path = rule_of(want.name)
    if not want.sudoers:
        drop = step(f"remove {path}", "the rule is not ours to write (--no-sudoers)", Drop(path=path))
        ours = found.facts is not None and found.facts.sudoers
        return Part(what="rule for sudo", should="not ours", found=_described(found.rule) if ours and found.rule.kind else "not ours", steps=(drop,))
    text = texts.rule(want, found.owner_uid)
    right = (found.rule.text, found.rule.owner, found.rule.group, found.rule.mode) == (text, "root", "root", 0o440)
    should = f"{want.owner} may act as {want.name}" + (f" by {want.entry} alone" if want.strict else "")
    put = Put(path=path, content=text, mode=0o440, visudo=tools["visudo"])
    return Part(
        what="rule for sudo", should=should, found=should if right else _described(found.rule),
        steps=(step(f"write {path}", f"{want.owner}, and nobody else, may act as {want.name}", put),),
    )  # fmt: skip


def _described(place: Place) -> str:
    if place.secret:
        return UNKNOWN
    return f"another {place.kind} ({place.owner}:{place.group} {place.mode:04o})" if place.kind else "none"


def _asked(should: str, found: Found) -> Part:
    """Measured: a rule can be in place and sudo not go by it, or permit by another one."""
    answer = UNKNOWN if found.permitted is None else "yes" if found.permitted else "no"
    return Part(what="sudo lets the owner become the bot", should=should, found=answer)


def _lock(lines: tuple[Line, ...]) -> str:
    fields = next((line.text.split(":") for line in lines if line.file == "shadow"), [])
    if not fields:
        return UNKNOWN
    return "locked and expired" if len(fields) > 7 and fields[1].startswith("!") and fields[7] == "1" else "open"


def _count(found: Found) -> str:
    return f"{len(found.processes)}" if found.processes else "none"
