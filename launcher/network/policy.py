"""Rules, and a host and port → Verdict: may this be reached, by which rule, and what can be done about it. Pure.

Each rank decides by its most specific entry, and a tie blocks; entries of which neither is within the other are a tie.
A block of the admin, the person or the repository holds whatever the others allow; the shipped rank is the weakest: any
allow beats it. What no entry names falls to network.default. The floor holds below all that.

Asked twice: `judge_name` before a name is resolved, so that nothing is looked up for a name that is refused, and
`judge_address` for each address that it came to. Only a destination that passes both may be dialled.
"""

from __future__ import annotations

from agent_sandbox.config.destinations import Destination, is_within, matches_host, matches_port, parse_destination
from agent_sandbox.config.hosts import Address
from agent_sandbox.config.record import record
from agent_sandbox.config.settings import Rank
from agent_sandbox.launcher.network.floor import Floor, closing_address, closing_port
from agent_sandbox.launcher.network.hosts import target_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.config.hosts import IP, Host

BLOCK, ALLOW = "network.block", "network.allow"
SPEAKING = (Rank.ADMIN, Rank.PERSON, Rank.REPOSITORY)
WAYS = {
    Rank.ADMIN: "the site's admin decided this: ask there",
    Rank.PERSON: "the user's own config blocks it: ask the user",
    Rank.REPOSITORY: "the project's own .agent-sandbox.toml blocks it: ask the user, who can leave it unread (--ignore-project-file)",
    Rank.DEFAULT: "it is on the shipped list: the user can put it into network.allow, or start with --allow",
}


@record
class Rule:
    """One entry of a list."""

    key: str  # network.block or network.allow
    rank: Rank
    origin: str
    entry: Destination

    def text(self) -> str:
        return f"{self.key} {self.entry.text()}"


@record
class Rules:
    lists: tuple[Rule, ...]
    default: str  # allow or deny: what holds for hosts on no list
    default_origin: str
    floor: Floor


@record
class Verdict:
    allowed: bool
    rule: str
    origin: str
    why: str  # in words for whoever asked; when refused, with what can be done


def make_rule(key: str, rank: Rank, text: str, origin: str) -> Rule:
    return Rule(key=key, rank=rank, origin=origin, entry=parse_destination(text))


def judge_name(rules: Rules, host: Host, port: int) -> Verdict:
    """Before resolving. An address that was asked for as such is judged whole."""
    if isinstance(host, Address):
        return judge_address(rules, host, port, host)
    return _judge(rules, host, port, ())


def judge_address(rules: Rules, host: Host, port: int, address: Address) -> Verdict:
    """Of one address that `host` came to; what holds for its name holds for it."""
    if not isinstance(host, Address):
        by_name = _judge(rules, host, port, ())
        if not by_name.allowed:
            return by_name
    return _judge(rules, host, port, address.forms())


def _judge(rules: Rules, host: Host, port: int, forms: tuple[IP, ...]) -> Verdict:
    by_lists = _by_lists(rules, host, port, forms)
    if not by_lists.allowed:
        return by_lists
    part = closing_port(rules.floor, host, port, forms)
    if part:
        return _by_floor(part, f"port {port}", host, port)
    part = closing_address(rules.floor, host, port, forms)
    return _by_floor(part, str(forms[-1]), host, port) if part else by_lists


def _by_lists(rules: Rules, host: Host, port: int, forms: tuple[IP, ...]) -> Verdict:
    fitting = [rule for rule in rules.lists if matches_port(rule.entry, port) and matches_host(rule.entry, host, forms)]
    found = [rule for rank in SPEAKING if (rule := _decisive(fitting, rank))]
    decisive = next((rule for rule in found if rule.key == BLOCK), found[0] if found else _decisive(fitting, Rank.DEFAULT))
    if decisive:
        return _by_rule(decisive, host, port)
    allowed = rules.default == "allow"
    why = "is on no list" if allowed else "is on no list, and network.default is deny: the user can put it into network.allow, or start with --allow"
    named = f"network.default = {rules.default}"
    return Verdict(allowed=allowed, rule=named, origin=rules.default_origin, why=f"{target_text(host, port)} {why}")


def _decisive(fitting: list[Rule], rank: Rank) -> Rule | None:
    """The rank's most specific entry: a block, unless an allow lies within each block.

    Never compared are blocks with blocks: an agent can write ten thousand of them into its project's file.
    """
    blocks, allows = ([rule for rule in fitting if rule.rank is rank and rule.key == key] for key in (BLOCK, ALLOW))
    standing = [block for block in blocks if not any(_is_narrower(allow.entry, block.entry) for allow in allows)]
    return _narrowest(standing) or _narrowest(allows)


def _narrowest(rules: list[Rule]) -> Rule | None:
    """One that no other lies within: each next one is narrower than all that it took the place of."""
    found = rules[0] if rules else None
    for rule in rules:
        if found and _is_narrower(rule.entry, found.entry):
            found = rule
    return found


def _is_narrower(one: Destination, other: Destination) -> bool:
    return is_within(one, other) and not is_within(other, one)


def _by_rule(rule: Rule, host: Host, port: int) -> Verdict:
    allowed = rule.key == ALLOW
    target = target_text(host, port)
    why = f"{target} is allowed by {rule.text()}" if allowed else f"{target} is refused by {rule.text()}; {WAYS[rule.rank]}"
    return Verdict(allowed=allowed, rule=rule.text(), origin=rule.origin, why=why)


def _by_floor(part: str, what: str, host: Host, port: int) -> Verdict:
    why = f"{target_text(host, port)} is refused: {what} is closed to every jail ({part}); only an admin opens it, in network.floor_open"
    return Verdict(allowed=False, rule=f"floor {part}", origin="shipped", why=why)
