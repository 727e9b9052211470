"""Changes to the person's own config file: whole or not at all, comments and order kept. Writes files."""

from __future__ import annotations

import os
import tempfile

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AbstractTable, Array, Item

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.files import read_trusted, user_trust
from agent_sandbox.config.keys import Key
from agent_sandbox.config.layers import read_layers, user_source
from agent_sandbox.config.location import Where


def set_value(path: str, key: Key, value: object, where: Where) -> str:
    """Put the value into the file, after making sure that the file is then understood; the line that it became."""
    document = _read(path, where)
    section, _, name = key.name.partition(".")
    try:
        _put(document, section, name, value)
        new = tomlkit.dumps(document).rstrip("\n").encode() + b"\n"
    except (TOMLKitError, TypeError, ValueError) as error:
        raise UserError(f"{key.name} cannot be set: {error}", where=path, hint="agent-sandbox config edit") from None
    read_layers(new, user_source(path, where), where)
    _replace(path, new)
    return f"{key.name} = {_item(value).as_string()}"


def unset_value(path: str, key: Key, where: Where) -> bool:
    """Take the key out of the file; whether it was there."""
    document = _read(path, where)
    section, _, name = key.name.partition(".")
    table = document.get(section)
    if not isinstance(table, AbstractTable | dict) or name not in table:
        return False
    del table[name]
    if not table:
        del document[section]
    new = tomlkit.dumps(document).encode()
    read_layers(new, user_source(path, where), where)
    _replace(path, new)
    return True


def entries(path: str, key: Key, where: Where) -> list[str]:
    """What the file itself has in a list; nothing for what is no list of texts."""
    section, _, name = key.name.partition(".")
    held = _read(path, where).unwrap().get(section, {}).get(name)
    return [entry for entry in held if isinstance(entry, str)] if isinstance(held, list) else []


def _read(path: str, where: Where) -> tomlkit.TOMLDocument:
    """A file that is wrong already is not ours to rearrange."""
    data = read_trusted(path, user_trust(where.user, where.uid, where.home)) or b""
    read_layers(data, user_source(path, where), where)
    return tomlkit.parse(data.decode())


def _put(document: tomlkit.TOMLDocument, section: str, name: str, value: object) -> None:
    if section not in document and not _has_headers(document):
        document.append(tomlkit.key([section, name]), _item(value))  # as the lines of `config init` are written
        return
    if section not in document:
        document[section] = tomlkit.table()
    table = document[section]
    assert isinstance(table, AbstractTable | dict)
    held = table.get(name)
    if isinstance(held, Array) and isinstance(value, list):
        _change_entries(held, value)  # one by one: comments beside the others stay
    else:
        table[name] = _item(value)


def _item(value: object) -> Item:
    """On one line: a table with a header of its own cannot stand everywhere."""
    if isinstance(value, dict):
        table = tomlkit.inline_table()
        table.update(value)
        return table
    if isinstance(value, list):
        array = tomlkit.array()
        array.extend(_item(entry) for entry in value)
        return array
    return tomlkit.item(value)


def _has_headers(document: tomlkit.TOMLDocument) -> bool:
    return any(line.lstrip().startswith("[") for line in tomlkit.dumps(document).splitlines())


def _change_entries(held: Array, wanted: list[object]) -> None:
    for entry in [entry for entry in held if entry not in wanted]:
        held.remove(entry)
    for entry in wanted:
        if entry not in held:
            held.append(entry)


def _replace(path: str, data: bytes) -> None:
    """A new file takes the old one's place; where the path is a link (dotfiles), the place of what it leads to."""
    real = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(real), mode=0o700, exist_ok=True)
        handle, new = tempfile.mkstemp(dir=os.path.dirname(real), prefix=".config-")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            _keep_mode(real, handle)
            file.flush()
            os.fsync(handle)
        os.replace(new, real)
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=path) from None


def _keep_mode(real: str, handle: int) -> None:
    try:
        old = os.stat(real)
    except FileNotFoundError:
        return  # mkstemp made it 0600
    os.fchmod(handle, old.st_mode & 0o7777)
    if os.geteuid() == 0:
        os.fchown(handle, old.st_uid, old.st_gid)
