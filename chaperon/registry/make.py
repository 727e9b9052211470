"""Short ways to write an entry of a table, and a table of three commands as the table of one. Pure.

A grammar with `?` before it belongs to a value that may be left out (`--nice[=5]`); "flag" takes none.
"""

from __future__ import annotations

from agent_sandbox.chaperon.words import ALLOW, FLAG, FORCE, IGNORE, MAYBE, OLDEST, REFUSE, VALUE, Option
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypedDict, Unpack

    class More(TypedDict, total=False):
        choices: tuple[str, ...]
        since: tuple[int, int]
        until: tuple[int, int]
        aliases: tuple[str, ...]
        accepted: tuple[str, ...]
        refused: tuple[str, ...]
        gathers: bool
        group: str
        early: bool


def allow(name: str, short: str = "", grammar: str = "flag", env: str = "", **more: Unpack[More]) -> Option:
    return _option(name, short, grammar, env, ALLOW, "", "", more)


def force(name: str, short: str, grammar: str, reason: str, env: str = "", **more: Unpack[More]) -> Option:
    """Ours to set; `reason` says what becomes of the value that was asked for."""
    return _option(name, short, grammar, env, FORCE, reason, "", more)


def ignore(name: str, short: str, grammar: str, reason: str, env: str = "", **more: Unpack[More]) -> Option:
    return _option(name, short, grammar, env, IGNORE, reason, "", more)


def refuse(name: str, short: str, takes: str, reason: str, instead: str, env: str = "", **more: Unpack[More]) -> Option:
    """`takes`: flag, value or maybe. The value is not looked at."""
    grammar = {FLAG: "flag", VALUE: "anything", MAYBE: "?anything"}[takes]
    return _option(name, short, grammar, env, REFUSE, reason, instead, more)


def choose(name: str, short: str, words: str, env: str = "", **more: Unpack[More]) -> Option:
    """One of the words."""
    return replace(_option(name, short, "choice", env, ALLOW, "", "", more), choices=tuple(words.split()))


def _option(name: str, short: str, grammar: str, env: str, verdict: str, reason: str, instead: str, more: More) -> Option:
    takes = FLAG if grammar == "flag" else MAYBE if grammar.startswith("?") else VALUE
    return Option(
        name=name, short=short, takes=takes, grammar=grammar.removeprefix("?"), variables=tuple(env.split()),
        verdict=verdict, reason=reason, instead=instead, **more,
    )  # fmt: skip


def table(options: Iterable[Option], prefix: str, without: str = "") -> tuple[Option, ...]:
    """The entries of a shared table for one command: `*_QOS` is its own variable."""
    left_out = set(without.split())
    return tuple([_own(option, prefix) for option in options if option.name not in left_out])


def _own(option: Option, prefix: str) -> Option:
    return replace(option, variables=tuple(dict.fromkeys([name.replace("*", prefix) for name in option.variables])))


OTHER_CLUSTER = "jobs stay on this cluster, where the jail is known to work"
HERE = "leave it out"
FOREVER = "would go on for ever, and a reply is given once"
AGAIN = "run the command again when you need to"


def elsewhere(env: str = "", siblings: str = "") -> tuple[Option, ...]:
    """Options that ask other clusters."""
    return (
        refuse("clusters", "M", VALUE, OTHER_CLUSTER, HERE, env, aliases=("cluster",)),
        refuse("federation", "", FLAG, OTHER_CLUSTER, HERE, siblings),
    )


def told(short_help: str = "", short_usage: str = "") -> tuple[Option, ...]:
    """Options that nearly every command has."""
    return (
        allow("help", short_help),
        allow("usage", short_usage),
        allow("verbose", "v", gathers=True),
        allow("version", "V"),
        refuse("autocomplete", "", VALUE, "is for shells that complete words", HERE, since=(23, 2)),
    )


def data_formats(since: tuple[int, int] = OLDEST) -> tuple[Option, ...]:
    """In newer versions with a value that names the version of the format."""
    return (
        allow("json", "", "?word", accepted=("v0.0.40",), since=since),
        allow("yaml", "", "?word", accepted=("v0.0.40",), since=since),
    )
