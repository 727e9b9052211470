"""The network mode that was asked for becomes the one that this build can deliver, by the fallback rule. Pure."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.policy import Network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.settings import Settings

MODES = ("isolated", "proxied", "filtered", "open")  # strictest first
BUILT = ("isolated", "open")


def resolve_network(settings: Settings) -> Network:
    asked = settings.text("network.mode")
    if asked in BUILT:
        return Network(mode=asked, asked=asked)
    fallback = settings.text("network.fallback")
    if fallback == "refuse":
        raise UserError(
            f"network mode {asked} is not available in this version, and network.fallback is refuse",
            where=settings.origin("network.fallback"), hint="choose --network isolated or --network open",
        )  # fmt: skip
    place = MODES.index(asked)
    stricter, weaker = MODES[:place][::-1], MODES[place + 1 :]
    order = stricter if fallback == "stricter" else weaker
    mode = next(mode for mode in order if mode in BUILT)
    return Network(mode=mode, asked=asked, why=f"{asked} is not available in this version; network.fallback = {fallback}")


def may_send_mail(stubs: str, network: Network) -> bool:
    """What `mail.stubs` comes to; auto: only where an open network was asked for, and is there."""
    return stubs == "off" or (stubs == "auto" and network.mode == network.asked == "open")
