"""`agent-sandbox config …`: look at the config, check it, and change the person's own file. Reads and writes files.

Not on the launch path: imports what it likes.
"""

from __future__ import annotations

import difflib
import json
import os
import shlex
import shutil
import subprocess
import sys
from types import ModuleType

from agent_sandbox.config import show
from agent_sandbox.config.content import unknown
from agent_sandbox.config.create import create
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS, SECTIONS, Key
from agent_sandbox.config.layers import check_file, command_line_source, load
from agent_sandbox.config.location import Where
from agent_sandbox.config.settings import printable
from agent_sandbox.config.tables import layout
from agent_sandbox.config.typed import read_typed

USAGE = """\
usage: agent-sandbox config WORD

  show [--json] [KEY]...   what holds here, and where it comes from; a key, or
                           all of a part, such as network
  keys [--json] [KEY]...   every key, its values and how the ranks combine it
  init                     write a commented config file of your own
  set KEY VALUE            change your own config file; a list is replaced
  add KEY VALUE            add to a list in your own config file
  unset KEY                take a key out of your own config file
  check [FILE]             is the config understood?
  edit                     your own file in $VISUAL or $EDITOR, then check it
"""


def run(args: tuple[str, ...], where: Where) -> int:
    """The words after `config`; the exit status. UserError for what cannot be done."""
    word, *rest = args or ("--help",)
    if word in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if word not in COMMANDS:
        near = difflib.get_close_matches(word, COMMANDS, 1)
        hint = f"did you mean config {near[0]}? " if near else ""
        raise UserError(f"config {word} is not a command", hint=f"{hint}agent-sandbox config --help lists them")
    COMMANDS[word](tuple(rest), where)
    return 0


def show_settings(args: tuple[str, ...], where: Where) -> None:
    as_json, asked = _take_json(args)
    names = tuple(name for word in asked for name in _keys_of(word, where))
    settings = load(where, {})
    if as_json:
        _print_json(show.setting_data(settings, names))
        return
    in_full = tuple(name for name in asked if name in KEYS)
    _print_table([("KEY", "VALUE", "FROM"), *show.setting_rows(settings, names, in_full)])
    for clamp in settings.clamps:
        print(clamp.line(), file=sys.stderr)


def _keys_of(word: str, where: Where) -> tuple[str, ...]:
    """A key, or those of a part, such as `network`."""
    if word in SECTIONS:
        return SECTIONS[word]
    _need_key(word, where)
    return (word,)


def show_keys(args: tuple[str, ...], where: Where) -> None:
    as_json, asked = _take_json(args)
    names = tuple(name for word in asked for name in _keys_of(word, where)) or tuple(KEYS)
    if as_json:
        _print_json(show.key_data(names))
    else:
        _print_table(show.key_rows(names))


def init(args: tuple[str, ...], where: Where) -> None:
    _refuse_more(args)
    print(f"wrote {create(_own_file(where))}")


def set_key(args: tuple[str, ...], where: Where) -> None:
    if len(args) != 2:
        raise UserError("config set takes a key and a value", hint="agent-sandbox config set network.mode isolated")
    name, text = args
    key, path, write = _own_key(name, where), _own_file(where), _writer()
    before = write.entries(path, key, where)
    print(f"{path}: {printable(write.set_value(path, key, read_typed(key, text), where))}")
    lost = [entry for entry in before if entry not in write.entries(path, key, where)]
    if lost:
        print(f"no longer in it: {printable(', '.join(lost))}; `config add {name} …` adds to a list", file=sys.stderr)
    _tell_more(key, where)


def add_to_key(args: tuple[str, ...], where: Where) -> None:
    if len(args) != 2:
        raise UserError("config add takes a key and a value", hint="agent-sandbox config add network.allow data.example.org")
    key, path, write = _own_key(args[0], where), _own_file(where), _writer()
    if not key.listed or key.kind in ("table", "tables"):
        hint = "agent-sandbox config edit" if key.listed else f"agent-sandbox config set {key.name} …"
        raise UserError(f"{key.name} is not a list of texts", hint=hint)
    more = read_typed(key, args[1])
    before = write.entries(path, key, where)
    value = [*before, *(entry for entry in more if entry not in before)] if isinstance(more, list) else more
    print(f"{path}: {printable(write.set_value(path, key, value, where))}")
    _tell_more(key, where)


def unset_key(args: tuple[str, ...], where: Where) -> None:
    if len(args) != 1:
        raise UserError("config unset takes a key", hint="agent-sandbox config unset network.mode")
    _need_key(args[0], where)
    path = _own_file(where)
    found = _writer().unset_value(path, KEYS[args[0]], where)
    print(f"{path}: {args[0]} is {'not set there any more' if found else 'not set there'}")


def _need_key(name: str, where: Where) -> None:
    if name not in KEYS:
        raise unknown(name, name, command_line_source(where))


def _own_key(name: str, where: Where) -> Key:
    """One that a person may set."""
    _need_key(name, where)
    if KEYS[name].rule == "admin":
        problem = f"{name} is the admin's to set: in a file of yours it would not count"
        raise UserError(problem, hint=f"{where.admin_dir}/config.toml is where root writes it")
    return KEYS[name]


def _tell_more(key: Key, where: Where) -> None:
    for clamp in load(where, {}).clamps:
        if clamp.key == key.name:
            print(clamp.line(), file=sys.stderr)
    if not key.ready:
        print(f"{key.name} is not used yet", file=sys.stderr)


def check(args: tuple[str, ...], where: Where) -> None:
    _refuse_more(args[1:])
    if args:
        check_file(os.path.join(where.cwd, args[0]), where)
        print(f"{printable(args[0])}: understood")
        return
    settings = load(where, {})
    files = dict.fromkeys(layer.path for layer in settings.layers if layer.path)  # the admin's is two: what holds, and [defaults]
    for path in files:
        print(f"{printable(path)}: understood")
    if not files:
        print("there is no config file here: the shipped defaults hold")
    for clamp in settings.clamps:
        print(clamp.line(), file=sys.stderr)


def edit(args: tuple[str, ...], where: Where) -> None:
    _refuse_more(args)
    path = _own_file(where)
    if not os.path.lexists(path):
        create(path)
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    program = shutil.which(editor[0]) if editor else None
    if program is None:
        raise UserError("no editor was found", hint="set EDITOR to one, such as EDITOR=nano")
    status = subprocess.run((program, *editor[1:], path), check=False).returncode
    if status:
        raise UserError(f"{program} ended with status {status}", where=path)
    try:
        check_file(path, where)
    except UserError as error:
        advice = "your edit is kept; agent-sandbox config edit opens it again"
        raise UserError(error.problem, where=error.where, hint=f"{error.hint}; {advice}".removeprefix("; ")) from None


COMMANDS = {
    "show": show_settings, "keys": show_keys, "init": init, "set": set_key, "add": add_to_key, "unset": unset_key, "check": check, "edit": edit,
}  # fmt: skip


def _own_file(where: Where) -> str:
    return f"{where.user_dir()}/config.toml"


def _writer() -> ModuleType:
    """Imported when a file is changed: it needs tomlkit, which the copy of a first use may not have."""
    try:
        from agent_sandbox.config import write
    except ImportError:
        raise UserError(
            "tomlkit, which changes a file and keeps its comments, is not in this copy of agent-sandbox",
            hint="`make install` in the clone adds it; `agent-sandbox config edit` works without it",
        ) from None
    return write


def _take_json(args: tuple[str, ...]) -> tuple[bool, tuple[str, ...]]:
    return "--json" in args, tuple(arg for arg in args if arg != "--json")


def _refuse_more(args: tuple[str, ...]) -> None:
    if args:
        raise UserError(f"{args[0]} is not expected here", hint="agent-sandbox config --help")


def _print_table(rows: list[tuple[str, ...]]) -> None:
    """Fitted to a terminal; one row a line for anything that reads it."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 100_000
    print("\n".join(layout(rows, width)))


def _print_json(data: object) -> None:
    print(json.dumps(data, indent=2))
