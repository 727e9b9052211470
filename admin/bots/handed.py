"""What a person's side of a session hands to the bot's side, as one frame of JSON: nothing in it is believed beyond that person's rank. Pure."""

from __future__ import annotations

import json

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 8  # bytes that say how long the rest is
MOST = 16 << 20


@record
class Handed:
    command: tuple[str, ...]
    asked: str  # the project, as it was named
    project: str  # where that really is
    cwd: str
    shell: str  # of the person: what runs where no command was given
    environment: dict[str, str]  # filtered already
    settings: dict[str, object]  # `Settings.as_data`


def to_frame(handed: Handed) -> bytes:
    content = json.dumps(dict(vars(handed))).encode()
    if len(content) > MOST:
        raise UserError(f"the command and its variables come to {len(content)} bytes", hint="put long arguments in a file")
    return len(content).to_bytes(SIZE, "big") + content


def size_of(head: bytes) -> int:
    size = int.from_bytes(head, "big")
    if len(head) != SIZE or size > MOST:
        raise _wrong("its beginning is not understood")
    return size


def from_frame(content: bytes) -> Handed:
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        raise _wrong("it is not JSON") from None
    if not isinstance(said, dict) or set(said) != set(SHAPE):
        raise _wrong("fields are missing, or unknown")
    for name, fits in SHAPE.items():
        if not fits(said[name]):
            raise _wrong(f"{name} is not what it should be")
    return Handed(**{**said, "command": tuple(said["command"])})


def _is_text(value: object) -> bool:
    """That the kernel can be told: bytes that are no text have come as half characters, and no other halves have."""
    try:
        return isinstance(value, str) and b"\0" not in value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/") and _is_text(value)


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_variables(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, (*value, *value.values()))) and all(name and "=" not in name for name in value)


SHAPE: dict[str, Callable[[object], bool]] = {
    "command": _are_words, "asked": _is_path, "project": _is_path, "cwd": _is_path, "shell": _is_path, "environment": _are_variables,
    "settings": lambda value: isinstance(value, dict),
}  # fmt: skip


def _wrong(problem: str) -> UserError:
    return UserError(f"what was handed to the bot cannot be used: {problem}")
