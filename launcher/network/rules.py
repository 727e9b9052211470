"""Settings, or the lists as plain data → Rules. Reads the shipped presets and the floor."""

from __future__ import annotations

from agent_sandbox.config.keys import KEYS
from agent_sandbox.config.settings import Rank
from agent_sandbox.config.shipped import ADDRESSES, OWN, PORTS, load_floor, load_preset
from agent_sandbox.launcher.network.floor import make_floor
from agent_sandbox.launcher.network.policy import ALLOW, BLOCK, Rules, make_rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_sandbox.config.hosts import IP
    from agent_sandbox.config.settings import Settings

    Said = tuple[str, int, str, str]  # key, rank, entry, origin

FLOOR_OPEN, PRESETS, DEFAULT = "network.floor_open", "network.presets", "network.default"
LISTS = (BLOCK, ALLOW, FLOOR_OPEN)


def read_rules(settings: Settings, own: Iterable[IP] = ()) -> Rules:
    """`own`: the machine's addresses. An entry's origin is its layer; finding its line is for who shows it."""
    said = [(key, int(entry.rank), entry.value, entry.layer) for key in LISTS for entry in settings.entries(key)]
    presets = settings.names(PRESETS) if settings.is_set(PRESETS) else None
    return make_rules(said, settings.text(DEFAULT), settings.values[DEFAULT].layer, presets=presets, own=own)


def make_rules(
    said: Iterable[Said], default: str, default_origin: str, *, presets: Iterable[str] | None = None, own: Iterable[IP] = ()
) -> Rules:
    """`presets`: None for all of them."""
    said = tuple(said)
    lists = [make_rule(key, Rank(rank), text, origin) for key, rank, text, origin in said if key != FLOOR_OPEN]
    for name in map(str, KEYS[PRESETS].choices) if presets is None else presets:
        lists += [make_rule(ALLOW, Rank.DEFAULT, text, f"preset {name}") for text in load_preset(name)]
    shipped, opened = load_floor(), [text for key, _, text, _ in said if key == FLOOR_OPEN]
    floor = make_floor({**shipped[ADDRESSES], OWN: [str(ip) for ip in own]}, shipped[PORTS], opened)
    return Rules(lists=tuple(lists), default=default, default_origin=default_origin, floor=floor)
