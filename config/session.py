"""A session's Settings, as plain data (`Settings.as_data`) → settings of a job of that session on another machine. Reads the admin files there.

There the session stands for the person and the repository, and for the admin of the machine where it was started. That
machine's own admin rank can only clamp it further: a job script belongs to its user, so nothing in it is believed
beyond the person's rank.
"""

from __future__ import annotations

from agent_sandbox.config import kinds, paths
from agent_sandbox.config.defaults import load_defaults
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.layers import admin_layers
from agent_sandbox.config.merge import merge
from agent_sandbox.config.record import replace
from agent_sandbox.config.settings import Entry, Layer, Rank, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.keys import Key
    from agent_sandbox.config.location import Where
    from agent_sandbox.config.settings import Settings

SESSION = "session"
OPENING = frozenset({"network.floor_open"})  # where silence is the strictest: only the admin of the machine itself can open it


def from_data(data: object) -> tuple[Layer, Layer]:
    """What only an admin may set, as defaults; and the rest, as the person's."""
    if not isinstance(data, dict):
        raise _wrong("the settings are not a table")
    values = {name: _value(name, said) for name, said in data.items()}
    admin = {name: value for name, value in values.items() if KEYS[name].rule == "admin"}
    return (
        Layer(name=SESSION, rank=Rank.DEFAULT, values=admin),
        Layer(name=SESSION, rank=Rank.PERSON, values={n: v for n, v in values.items() if n not in admin}),
    )


def load_session(where: Where, data: object) -> Settings:
    """The session's settings, clamped by this machine's admin."""
    admin = admin_layers(where)
    decided = {name for layer in admin for name in layer.values}
    forced, rest = from_data(data)
    vetoes = {key.veto for key in KEYS.values()}
    # A list that permits, such as slurm.partitions, would widen this admin's by adding to it; one that denies may add.
    kept = {name: value for name, value in forced.values.items() if name in vetoes or name not in decided | OPENING}
    return merge([load_defaults(where.home), replace(forced, values=kept), *admin, rest])


def _value(name: str, said: object) -> Value:
    key = KEYS.get(name)
    if key is None:
        raise _wrong(f"{name} is not a key here")
    rank = Rank.DEFAULT if key.rule == "admin" else Rank.PERSON
    try:
        if key.listed:
            return Value(rank=rank, layer=SESSION, entries=_entries(key, said, rank))
        scalar = kinds.check(key, kinds.UNLIMITED if said is None else said)
        return Value(rank=rank, layer=SESSION, scalar=scalar)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise _wrong(f"{name} {error}") from None


def _entries(key: Key, said: object, rank: Rank) -> tuple[Entry, ...]:
    """Entries keep their rank where that can only harden."""
    if not isinstance(said, list):
        raise ValueError("must be a list")
    pairs = [(text, Rank(number)) for text, number in said]
    texts = [text for text, _ in pairs]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("must hold texts")
    kinds.check(key, _as_written(key, texts))
    if key.paths and any(paths.absolute(text, base="/", home="/") != text for text in texts):
        raise ValueError("must hold absolute paths")
    return tuple(
        Entry(value=text, rank=own if key.rule == "union" else min(own, rank), layer=SESSION, key=key.name)
        for text, own in pairs
    )


def _as_written(key: Key, texts: list[str]) -> object:
    if key.kind == "tables":
        from agent_sandbox.config.inject import as_table

        return [as_table(text) for text in texts]
    return dict(text.split("=", 1) for text in texts) if key.kind == "table" else texts


def _wrong(problem: str) -> UserError:
    return UserError(f"the settings that came with the session cannot be used: {problem}")
