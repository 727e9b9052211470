"""argv → one command of botadm → what it came to, as text or JSON. `main` is the map."""

from __future__ import annotations

import argparse
import json
import os
import sys

from agent_sandbox.admin.tell import tell
from agent_sandbox.config.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_sandbox.admin.report import Outcome

USAGE = "a UNIX user for each agent, and directories shared with them"


def main(argv: Sequence[str] | None = None) -> int:
    os.umask(0o022)
    try:
        options = parser().parse_args(argv)
        command: Callable[[argparse.Namespace], int] = options.command
        return command(options)
    except UserError as error:
        tell(str(error), "error")
        return error.code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="botadm", description=USAGE, allow_abbrev=False)
    words = top.add_subparsers(required=True, metavar="COMMAND")

    def word(name: str, command: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        one = words.add_parser(name, help=text, description=text, allow_abbrev=False)
        one.set_defaults(command=command)
        return one

    changing = [
        word("init", _init, "make the group bot and /var/bot, and join the group"), word("create", _create, "make a bot"),
        word("update", _update, "make a bot what it should be"), word("disable", _disable, "stop a bot: rule, account, namespace, processes"),
        word("enable", _enable, "let a stopped bot work again, exactly as before"), word("destroy", _destroy, "remove a bot and its files"),
        word("undo", _undo, "take back the last change"),
        word("share", _share, "let bots work in a directory"), word("noshare", _noshare, "give a shared directory back what it had"),
    ]  # fmt: skip
    for one in changing:
        one.add_argument("-n", "--dry-run", action="store_true", help="print the steps, change nothing")
        one.add_argument("--system", choices=("linux", "macos"), default="macos" if sys.platform == "darwin" else "linux", help=argparse.SUPPRESS)
    listing = [word("list", _list, "the bots of this machine"), word("status", _status, "is a bot what it should be")]
    for one in (*changing, *listing):
        one.add_argument("--json", action="store_true", help="for programs")
    running = [word("run", _run, "run a command as a bot"), word("shell", _shell, "log in as a bot")]
    _add_names(dict(zip(words.choices, words.choices.values(), strict=True)))
    running[0].add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
    running[1].add_argument("--shell", default="/bin/bash", metavar="PROGRAM", help="instead of /bin/bash")
    return top


def _add_names(words: dict[str, argparse.ArgumentParser]) -> None:
    for name in ("create", "update", "disable", "enable", "destroy", "status", "run", "shell"):
        words[name].add_argument("name", metavar="NAME")
    for name in ("init", "create", "share", "noshare"):
        words[name].add_argument("--owner", default="", metavar="USER", help="whom it is for (default: who called sudo)")
    for name in ("share", "noshare"):
        words[name].add_argument("path", metavar="PATH")
        words[name].add_argument("-r", "--recursive", action="store_true", help="and all below")
    words["noshare"].add_argument("--group", default="", metavar="G", help="for files without a record (default: the owner's)")
    words["init"].add_argument("--undo", action="store_true", help="remove what init made")
    words["create"].add_argument("--no-sudoers", action="store_true", help="write no rule for sudo")
    words["create"].add_argument("--strict", action="store_true", help="the rule permits jails alone (agent-sandbox --bot)")
    words["create"].add_argument("--force", action="store_true", help="take over a directory that is there")
    words["update"].add_argument("--sudoers", action=argparse.BooleanOptionalAction, default=None, help="write a rule for sudo, or remove it")
    words["update"].add_argument("--strict", action=argparse.BooleanOptionalAction, default=None, help="as for create")
    words["destroy"].add_argument("--no-sudoers", action="store_true", help="leave the rule for sudo")
    words["destroy"].add_argument("--force", action="store_true", help="do not ask")


def _show(outcome: Outcome, options: argparse.Namespace) -> int:
    from agent_sandbox.admin.report import outcome_json, outcome_text

    print(outcome_json(outcome) if options.json else outcome_text(outcome))
    return 0


def _changing(options: argparse.Namespace, linux: Callable[[], Outcome]) -> int:
    if options.system == "macos":
        from agent_sandbox.admin.bots.macos import outcome

        return _show(outcome(options), options)
    return _show(linux(), options)


def _init(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots import commands

    return _changing(options, lambda: commands.init(owner=options.owner, undo=options.undo, dry_run=options.dry_run))


def _create(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots import commands

    return _changing(options, lambda: commands.create(
        options.name, owner=options.owner, sudoers=not options.no_sudoers, strict=options.strict, force=options.force, dry_run=options.dry_run,
    ))  # fmt: skip


def _update(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots import commands

    return _changing(options, lambda: commands.update(options.name, sudoers=options.sudoers, strict=options.strict, dry_run=options.dry_run))


def _disable(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots import commands

    return _changing(options, lambda: commands.disable(options.name, dry_run=options.dry_run))


def _enable(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots import commands

    return _changing(options, lambda: commands.enable(options.name, dry_run=options.dry_run))


def _destroy(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots import commands

    def linux() -> Outcome:
        if not options.force and not options.dry_run:
            _ask(options.name)
        return commands.destroy(options.name, keep_rule=options.no_sudoers, dry_run=options.dry_run)

    return _changing(options, linux)


def _ask(name: str) -> None:
    """By its name: `yes` is typed without reading."""
    from agent_sandbox.admin.bots.facts import need_facts

    facts = need_facts(name)
    sys.stderr.write(f"This removes the bot {name} of {facts.owner}, with {facts.namespace} and all in it.\nType its name to go on: ")
    sys.stderr.flush()
    if sys.stdin.readline().strip() != name:
        raise UserError("not destroyed: the name was not given", hint="--force does not ask")


def _undo(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots import commands

    return _changing(options, lambda: commands.undo(dry_run=options.dry_run))


def _share(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.share import commands

    return _changing(options, lambda: commands.share(options.path, owner=options.owner, recursive=options.recursive, dry_run=options.dry_run))


def _noshare(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.share import commands

    return _changing(options, lambda: commands.noshare(
        options.path, owner=options.owner, group=options.group, recursive=options.recursive, dry_run=options.dry_run,
    ))  # fmt: skip


def _list(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots.facts import list_facts

    found = list_facts()
    if options.json:
        print(json.dumps([dict(vars(facts)) for facts in found], indent=1))
        return 0
    if not found:
        tell("there are no bots on this machine; `sudo botadm create NAME` makes one")
        return 0
    print(f"{'BOT':20} {'OWNER':20} {'STATE':9} RULE FOR SUDO")
    for facts in found:
        rule = "no rule" if not facts.sudoers else "strict" if facts.strict else "open rule"
        print(f"{facts.name:20} {facts.owner:20} {'enabled' if facts.enabled else 'disabled':9} {rule}")
    return 0


def _status(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots.commands import status
    from agent_sandbox.admin.report import parts_json, parts_text

    facts, parts = status(options.name)
    print(parts_json(facts.name, parts, {"facts": dict(vars(facts))}) if options.json else parts_text(facts.name, parts))
    return 0 if all(part.right for part in parts) else 1


def _run(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots.run import run

    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise UserError("run what?", hint=f"botadm run {options.name} COMMAND …; `botadm shell {options.name}` logs in")
    run(options.name, tuple(words))


def _shell(options: argparse.Namespace) -> int:
    from agent_sandbox.admin.bots.run import shell

    shell(options.name, options.shell)


if __name__ == "__main__":
    sys.exit(main())
