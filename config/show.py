"""Settings → what `config show` and `config keys` print, as tables or as JSON data. Reads files for their lines."""

from __future__ import annotations

from agent_sandbox.config import kinds
from agent_sandbox.config.defaults import load_lists
from agent_sandbox.config.keys import KEYS, Key
from agent_sandbox.config.settings import DEFAULT_LAYER, Entry, Settings, Value, printable

UNSET = "(unset)"
NONE = "(none)"


def setting_rows(settings: Settings, names: tuple[str, ...], in_full: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Key, value, origin. Shipped entries of a list are counted, and written out only for keys that were asked for by name."""
    rows: list[tuple[str, ...]] = []
    for name in names or tuple(KEYS):
        values = _cells(KEYS[name], settings, every_entry=name in in_full)
        rows += [(name if not number else "", value, origin) for number, (value, origin) in enumerate(values)]
    return [tuple(map(printable, row)) for row in rows]


def setting_data(settings: Settings, names: tuple[str, ...]) -> dict[str, object]:
    return {
        "settings": {name: _data(KEYS[name], settings) for name in names or tuple(KEYS)},
        "clamps": [dict(vars(clamp)) for clamp in settings.clamps],
        "layers": [{"name": layer.name, "rank": layer.rank.name.lower()} for layer in settings.layers],
    }


def key_rows(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    lists, keys = load_lists(), [KEYS[name] for name in names]
    rows = [(key.name, describe_kind(key), key.rule, describe_default(key, lists), key.help) for key in keys]
    return [("KEY", "VALUE", "RULE", "DEFAULT", ""), *rows]


def key_data(names: tuple[str, ...]) -> dict[str, object]:
    lists = load_lists()
    return {
        key.name: {
            "kind": key.kind, "choices": key.choices, "rule": key.rule, "help": key.help, "ready": key.ready,
            "default": lists.get(key.name, []) if key.listed else key.default,
        }
        for key in (KEYS[name] for name in names)
    }  # fmt: skip


def describe_kind(key: Key) -> str:
    if key.kind == "choice":
        return " | ".join(map(str, key.choices))
    return {
        "flag": "true | false", "number": "number", "size": 'size ("4G")', "duration": 'time ("2h")', "text": "text", "upstream": "host:port",
        "names": "list of names", "variables": "list of variables", "paths": "list of paths",
        "hosts": "list of hosts, networks and ports", "openings": "list of networks, hosts, ports and parts of the floor",
        "within": "list of paths in the project", "table": "table of texts", "tables": "list of tables",
    }[key.kind]  # fmt: skip


def describe_default(key: Key, lists: dict[str, list[str]]) -> str:
    if key.name in lists:
        return f"{len(lists[key.name])} shipped"
    if key.listed:
        return UNSET if key.rule == "narrow" else NONE
    return UNSET if key.default is None else kinds.shown(key, key.default) or '""'


def _cells(key: Key, settings: Settings, *, every_entry: bool) -> list[tuple[str, str]]:
    held = settings.values.get(key.name)
    if held is None:
        return [(UNSET if key.rule == "narrow" or not key.listed else NONE, DEFAULT_LAYER)]
    if not key.listed:
        return [(_shown(key, held), settings.origin(key.name))]
    shipped = [entry for entry in held.entries if entry.layer == DEFAULT_LAYER and not every_entry]
    cells = [(f"{len(shipped)} shipped", DEFAULT_LAYER)] if shipped else []
    cells += [(_entry_shown(key, entry), entry.origin()) for entry in held.entries if entry not in shipped]
    return cells or [(NONE, settings.origin(key.name))]


def _data(key: Key, settings: Settings) -> dict[str, object]:
    held = settings.values.get(key.name)
    origin = {"origin": settings.origin(key.name), "set": settings.is_set(key.name)}
    if key.listed:
        entries = held.entries if held else ()
        return {"value": _plain(key, settings), **origin, "entries": [_entry_data(entry) for entry in entries]}
    return {"value": held.scalar if held else None, **origin}


def _plain(key: Key, settings: Settings) -> object:
    if key.rule == "narrow" and key.name not in settings.values:
        return None
    if key.kind == "tables":
        from agent_sandbox.config.inject import as_table

        return [as_table(text) for text in settings.names(key.name)]
    return settings.table(key.name) if key.kind == "table" else list(settings.names(key.name))


def _entry_shown(key: Key, entry: Entry) -> str:
    if key.kind != "tables":
        return entry.value
    from agent_sandbox.config.inject import shown

    return shown(entry.value)


def _entry_data(entry: Entry) -> dict[str, str]:
    return {"value": entry.value, "rank": entry.rank.name.lower(), "origin": entry.origin()}


def _shown(key: Key, held: Value) -> str:
    return kinds.shown(key, held.scalar) or '""'
