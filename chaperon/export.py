"""The agent's own `--export` and its variables become what its script gets, by sbatch's rules. Pure.

sbatch itself is never told: whatever it were to set would be set for our part of the job too, outside the jail.
"""

from __future__ import annotations

from agent_sandbox.config.record import record
from agent_sandbox.launcher.own import BUNDLE, USUAL, VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOTHING = ("none", "nil")
# True of the jail that the job was submitted from, and not of the one that it runs in.
OF_THE_OTHER_JAIL = frozenset({"HOME", "TMPDIR", "TMUX_TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"})


@record
class Chosen:
    values: dict[str, str]
    login: bool  # what a log-in shell sets comes below these


def choose(export: str | None, environment: Mapping[str, str]) -> Chosen:
    """None = the option was not given. The variables SLURM_* always go along.

    sbatch 22.05 has a log-in shell run for every list, also for one with ALL in it; there, where nothing is left for it to
    add but what the caller took out, we do without.
    """
    if export is None or export.lower() == "all":
        return Chosen(values=dict(environment), login=False)
    listed = () if export.lower() in NOTHING else tuple(tokens(export))
    values: dict[str, str] = {}
    for token in listed:
        values.update(_named(token, environment))
    values.update({name: value for name, value in environment.items() if name.startswith("SLURM_")})
    return Chosen(values=values, login=not any(token.lower() == "all" for token in listed))


def _named(token: str, environment: Mapping[str, str]) -> dict[str, str]:
    if token.lower() == "all":
        return dict(environment)
    name, equals, value = token.partition("=")
    if equals:
        return {name: value} if name else {}
    return {name: environment[name]} if name in environment else {}


def tokens(text: str) -> Iterator[str]:
    """Split at commas outside quotes. Quotes around a whole token go, others stay; one that never ends takes all the rest."""
    start, open_quotes = 0, {"'": False, '"': False}
    for place, char in enumerate(text):
        if char in open_quotes:
            open_quotes[char] = not open_quotes[char]
        elif char == "," and not any(open_quotes.values()):
            yield _unquoted(text[start:place])
            start = place + 1
    yield text[start:] if is_unbalanced(text) else _unquoted(text[start:])


def is_unbalanced(text: str) -> bool:
    """sbatch complains of such a list (`Improperly formed environment variable`), and takes it."""
    return text.count("'") % 2 == 1 or text.count('"') % 2 == 1


def _unquoted(token: str) -> str:
    return token[1:-1] if len(token) > 1 and token[0] == token[-1] and token[0] in "'\"" else token


def without_the_other_jail(environment: Mapping[str, str]) -> dict[str, str]:
    """What was only true where the job was submitted; our own tools there are taken off PATH, and the job has its own CA bundle."""
    own = environment.get(VARIABLE, USUAL)
    kept = {
        name: value for name, value in environment.items()
        if name not in OF_THE_OTHER_JAIL and not name.startswith("AGENT_SANDBOX") and value != f"{own}/{BUNDLE}"
    }  # fmt: skip
    if "PATH" in kept:
        kept["PATH"] = ":".join(place for place in kept["PATH"].split(":") if not f"{place}/".startswith((f"{own}/", f"{USUAL}/")))
    return kept
