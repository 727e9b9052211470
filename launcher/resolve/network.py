"""The network mode that was asked for becomes the one that can be delivered, by the fallback rule. Pure."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.settings import Rank
from agent_sandbox.launcher.policy import Network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.config.settings import Settings

MODES = ("isolated", "proxied", "filtered", "open")  # strictest first
NOT_BUILT = "filtered is not available in this version"
LISTS = ("network.block",)
VALUES = ("network.default", "network.max_connections", "network.max_bytes", "network.max_rate")
HARMLESS = (None, "allow")


def resolve_network(settings: Settings, no_proxy: str = "") -> Network:
    """`no_proxy`: why the backend cannot give `proxied` here."""
    asked = settings.text("network.mode")
    missing = {"filtered": NOT_BUILT, **({"proxied": f"proxied cannot be had: {no_proxy}"} if no_proxy else {})}
    if asked not in missing:
        return Network(mode=asked, asked=asked)
    fallback = settings.text("network.fallback")
    if fallback == "refuse":
        raise UserError(
            f"network mode {missing[asked]}, and network.fallback is refuse",
            where=settings.origin("network.fallback"), hint="choose another mode with --network, or another backend",
        )  # fmt: skip
    place = MODES.index(asked)
    stricter, weaker = MODES[:place][::-1], MODES[place + 1 :]
    mode = next(mode for mode in (stricter if fallback == "stricter" else weaker) if mode not in missing)
    return Network(mode=mode, asked=asked, why=f"{missing[asked]}; network.fallback = {fallback}")


def check_lists(settings: Settings, mode: str) -> tuple[str, ...]:
    """With an open network nobody asks the lists. An admin's are not passed over by somebody who chose that; one's own are, in words."""
    if mode != "open":
        return ()
    spoken = dict(_spoken(settings))
    admins = [key for key, rank in spoken.items() if rank is Rank.ADMIN]
    if admins and settings.values["network.mode"].rank is not Rank.ADMIN:
        raise UserError(
            f"network open would pass over {admins[0]}, which the admin set", where=settings.origin("network.mode"), hint="--network proxied",
        )  # fmt: skip
    return (f"network open: {', '.join(spoken)} {'is' if len(spoken) == 1 else 'are'} not enforced",) if spoken else ()


def _spoken(settings: Settings) -> Iterator[tuple[str, Rank]]:
    """Keys that close or limit something, with the highest rank that speaks of them."""
    for key in LISTS:
        if settings.is_set(key):
            held = settings.values[key]
            yield key, max((held.rank, *(entry.rank for entry in held.entries)))
    for key in VALUES:
        if settings.is_set(key) and settings.values[key].scalar not in HARMLESS:
            yield key, settings.values[key].rank


def may_send_mail(stubs: str, network: Network) -> bool:
    """What `mail.stubs` comes to; auto: only where an open network was asked for, and is there."""
    return stubs == "off" or (stubs == "auto" and network.mode == network.asked == "open")
