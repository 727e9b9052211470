"""A value as TOML gives it → the value as we keep it, or a ValueError that says what would be right. Pure.

Numbers, sizes and durations become plain integers (bytes, seconds); `"unlimited"` becomes None. Paths are made absolute
elsewhere: only the layer knows what they are relative to.
"""

from __future__ import annotations

from agent_sandbox.config import paths, patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.config.keys import Key

    Scalar = bool | int | str | None
    Checked = Scalar | tuple[str, ...] | dict[str, str]

UNLIMITED = "unlimited"
MOST = 2**63 - 1  # what a kernel limit can hold
LONGEST_NAME = 1000
MOST_ENTRIES = 10_000  # an agent may have written the list
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def check(key: Key, value: object) -> Checked:
    return CHECKS[key.kind](key, value)


def flag(key: Key, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_shown(value)}")
    return value


def choice(key: Key, value: object) -> str:
    if value not in key.choices or not isinstance(value, str):
        raise ValueError(f"must be one of {', '.join(map(str, key.choices))}, not {_shown(value)}")
    return value


def number(key: Key, value: object) -> int | None:
    return _amount(value, lambda text: None, 'a whole number or "unlimited"')


def size(key: Key, value: object) -> int | None:
    return _amount(value, _read_size, 'bytes, "512M", "4G" or "unlimited"')


def duration(key: Key, value: object) -> int | None:
    return _amount(value, _read_duration, 'seconds, "90s", "15m", "2h", "1-12:00:00" or "unlimited"')


def text(key: Key, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"must be text on one line, not {_shown(value)}")
    return value


def names(key: Key, value: object) -> tuple[str, ...]:
    entries = _strings(value)
    for entry in entries:
        if not entry or not entry.isprintable() or entry != entry.strip() or len(entry) > LONGEST_NAME:
            raise ValueError(f"holds {_shown(entry)}, which is not a name")
        if key.choices and entry not in key.choices:
            raise ValueError(f"holds {_shown(entry)}, which is none of {', '.join(map(str, key.choices))}")
    return entries


def variables(key: Key, value: object) -> tuple[str, ...]:
    entries = _strings(value)
    for entry in entries:
        _check_variable(entry.removesuffix(patterns.ANY_CASE))
    return entries


def path_list(key: Key, value: object) -> tuple[str, ...]:
    entries = _strings(value)
    for entry in entries:
        paths.check(entry)
        if key.globs:
            patterns.check_glob(entry)
    return entries


def within(key: Key, value: object) -> tuple[str, ...]:
    return tuple(paths.inside(entry) for entry in _strings(value))


def hosts(key: Key, value: object) -> tuple[str, ...]:
    return tuple([destination(entry) for entry in _strings(value)])


def upstream(key: Key, value: object) -> str:
    """`host:port`, also with http:// before it. A password here would be in everybody's sight."""
    said = text(key, value).removeprefix("http://").rstrip("/")
    if not said:
        return ""
    if "@" in said:
        raise ValueError("must be a proxy's host:port, without a user or a password: settings are no place for one")
    from agent_sandbox.config.hosts import parse_target

    try:
        host, port = parse_target(said)
    except ValueError as error:
        raise ValueError(f"must be a proxy's host:port, not {_shown(value)}: {error}")
    if port is None:
        raise ValueError(f"must be a proxy's host:port, not {_shown(value)}: the port is missing")
    return f"[{host.text}]:{port}" if ":" in host.text else f"{host.text}:{port}"


def openings(key: Key, value: object) -> tuple[str, ...]:
    """What opens the floor is named: a part of it, or a destination that is not everything and no bare word."""
    from agent_sandbox.config.shipped import floor_parts

    parts = floor_parts()
    return tuple([entry if entry in parts else _opening(entry, parts) for entry in _strings(value)])


def _opening(entry: str, parts: tuple[str, ...]) -> str:
    from agent_sandbox.config.destinations import parse_destination

    text = destination(entry)
    opened = parse_destination(text)
    if text == "*" or (len(opened.labels) == 1 and not opened.names_port):
        raise ValueError(f"holds {_shown(entry)}, which is neither a part of the floor ({', '.join(parts)}) nor a network, port or full name")
    return text


def destination(entry: str) -> str:
    """In its one spelling. Imported when a list has an entry: most launches have none."""
    from agent_sandbox.config.destinations import parse_destination

    try:
        return parse_destination(entry).text()
    except ValueError as error:
        raise ValueError(f"holds {_shown(entry)}: {error}") from None


def table(key: Key, value: object) -> dict[str, str]:
    return _string_table(value, _check_plain_variable)


def tables(key: Key, value: object) -> tuple[str, ...]:
    """Each as one text. Imported when there is one: most launches have none."""
    if value == []:
        return ()
    from agent_sandbox.config.inject import texts

    return texts(value)


CHECKS: dict[str, Callable[[Key, object], Checked]] = {
    "flag": flag, "choice": choice, "number": number, "size": size, "duration": duration, "text": text, "upstream": upstream,
    "names": names, "variables": variables, "paths": path_list, "within": within, "table": table, "tables": tables,
    "hosts": hosts, "openings": openings,
}  # fmt: skip


def shown(key: Key, value: Scalar) -> str:
    """The value as a person would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return UNLIMITED
    if key.kind == "size" and isinstance(value, int):
        return _in_units(value, {unit: step for unit, step in _SIZES.items() if unit})
    if key.kind == "duration" and isinstance(value, int):
        return _in_units(value, _SECONDS)
    return str(value)


def _in_units(value: int, units: dict[str, int]) -> str:
    """In the largest unit that divides it."""
    for unit, step in reversed(units.items()):
        if value and value % step == 0:
            return f"{value // step}{unit}"
    return str(value)


def _amount(value: object, read: Callable[[str], int | None], forms: str) -> int | None:
    if value == UNLIMITED:
        return None
    amount = read(value) if isinstance(value, str) else value
    if not isinstance(amount, int) or isinstance(amount, bool) or not 0 <= amount <= MOST:
        raise ValueError(f"must be {forms}, not {_shown(value)}")
    return amount


def _read_size(text: str) -> int | None:
    digits = text.removesuffix("iB").rstrip("KMGT")
    unit = text.removesuffix("iB")[len(digits) :]
    return int(digits) * _SIZES[unit] if _whole(digits) and unit in _SIZES else None


def _read_duration(text: str) -> int | None:
    if _whole(text[:-1]) and text[-1:] in _SECONDS:
        return int(text[:-1]) * _SECONDS[text[-1]]
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    if not all(map(_whole, [*parts, days if dash else "0"])) or len(parts) > 3 or not (dash or len(parts) == 3):
        return None
    hours, minutes, seconds = (int(part) for part in (*parts, "0", "0")[:3])
    return ((int(days or "0") * 24 + hours) * 60 + minutes) * 60 + seconds


def _whole(digits: str) -> bool:
    return digits.isdecimal() and digits.isascii() and len(digits) < 20


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"must be a list of texts, such as [\"a\", \"b\"], not {_shown(value)}")
    if len(value) > MOST_ENTRIES:
        raise ValueError(f"holds {len(value)} entries; {MOST_ENTRIES} are enough")
    return tuple(value)


def _string_table(value: object, check_name: Callable[[str], None]) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"must be a table of texts, not {_shown(value)}")
    for name, held in value.items():
        check_name(name)
        if not isinstance(held, str) or "\0" in held:
            raise ValueError(f"{name} must be text, not {_shown(held)}")
    return dict(value)


def _check_plain_variable(name: str) -> None:
    _check_variable(name)
    if "*" in name or "?" in name:
        raise ValueError(f"holds {_shown(name)}: write the name of one variable, not a pattern")


def _check_variable(name: str) -> None:
    if not name or not name.isprintable() or any(sign in name for sign in "= /") or len(name) > LONGEST_NAME:
        raise ValueError(f"holds {_shown(name)}, which is not the name of a variable")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
