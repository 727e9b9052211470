"""Plain data becomes one line of JSON, without what importing `json` costs. Pure."""

from __future__ import annotations

try:
    from _json import encode_basestring_ascii as quote
except ImportError:  # a Python without the accelerator
    from json.encoder import py_encode_basestring_ascii as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Plain = None | bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"]


def dumps(value: Plain) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return str(quote(value))
    if isinstance(value, (int, float)):
        return repr(value)
    if hasattr(value, "items"):
        return "{" + ", ".join(f"{quote(name)}: {dumps(one)}" for name, one in value.items()) + "}"
    return "[" + ", ".join(dumps(one) for one in value) + "]"
