"""argv becomes a Request. One table of options; everything from the first other word on is the command. Pure."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Our own words: they win over a program of that name; `agent-sandbox -- ps` runs the program.
WORDS = {
    "doctor": "is this machine ready, and if not, what to do",
    "explain": "why: KEY, path P, env N, syscall N, host H, sbatch …",
    "config": "the settings: show, keys, set, add, check, edit …",
    "audit": "the log of launches and requests: show, verify",
    "network": "what a session asked the network for: log [--follow]",
    "ps": "the sessions that are running",
    "help": "this page",
    "version": "the version",
}
RESERVED = ("agents", "attach", "bot", "completion", "exec", "jobs", "report", "slurm", "stop")  # for parts to come


@record
class Request:
    """What was asked on the command line."""

    word: str  # one of our own words ("doctor", "config", …), or "" for a launch
    command: tuple[str, ...]
    settings: dict[str, object]  # configuration keys given as options
    project: str = ""
    bot: str = ""  # the UNIX user to run as
    use_project_file: bool = True
    dry_run: bool = False
    json: bool = False
    verbose: bool = False


@record
class Option:
    name: str
    value: str = ""  # what its argument is called; "" = takes none
    key: str = ""  # the configuration key that it sets
    many: bool = False
    help: str


OPTIONS = (
    Option(name="--project-dir", value="DIR", help="the directory to work in (default: the current one)"),
    Option(name="--backend", value="NAME", key="sandbox.backend", help="auto, bwrap, firejail or landlock"),
    Option(name="--home", value="MODE", key="filesystem.home", help="restricted, tmpwrite, read or write"),
    Option(name="--ro", value="PATH", key="filesystem.readonly", many=True, help="grant a path for reading"),
    Option(name="--rw", value="PATH", key="filesystem.writable", many=True, help="grant a path for writing"),
    Option(name="--hide", value="PATH", key="filesystem.hidden", many=True, help="hide a path"),
    Option(name="--env", value="NAME", key="environment.allow", many=True, help="let a variable through the filter"),
    Option(name="--set-env", value="NAME=VALUE", key="environment.set", many=True, help="set a variable inside"),
    Option(name="--limit", value="KEY=VALUE", key="limits", many=True, help="such as memory=8G or wall_time=2h (limits.*)"),
    Option(name="--network", value="MODE", key="network.mode", help="isolated, proxied, filtered or open"),
    Option(name="--allow", value="HOST", key="network.allow", many=True, help="let a host be reached (network.allow)"),
    Option(name="--block", value="HOST", key="network.block", many=True, help="let a host not be reached (network.block)"),
    Option(name="--bot", value="NAME", help="run the whole jail as a bot of yours (botadm)"),
    Option(name="--ignore-project-file", help="do not read .agent-sandbox.toml of the project"),
    Option(name="--dry-run", help="print what would run, and change nothing"),
    Option(name="--json", help="with --dry-run: for machines"),
    Option(name="--quiet", key="sandbox.quiet", help="no start line"),
    Option(name="--verbose", help="say more about what is done"),
    Option(name="--version", help="print the version"),
    Option(name="--help", help="this page"),
)  # fmt: skip
BY_NAME = {option.name: option for option in OPTIONS} | {"-h": OPTIONS[-1]}


def parse(argv: Sequence[str]) -> Request:
    given: dict[str, list[str]] = {}
    rest = list(argv)
    program_only = False
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            program_only = True
            break
        option, value = _read(word, rest)
        given.setdefault(option.name, []).append(value)
    return _request(given, tuple(rest), program_only)


def _read(word: str, rest: list[str]) -> tuple[Option, str]:
    name, has_value, value = word.partition("=") if word.startswith("--") else (word, "", "")
    option = BY_NAME.get(name)
    if option is None:
        raise UserError(f"there is no option {_shown(name)}{_nearest(name)}", hint="agent-sandbox --help lists them; `--` ends them")
    if not option.value:
        if has_value:
            raise UserError(f"{name} takes no value")
        return option, ""
    if not has_value:
        if not rest:
            raise UserError(f"{name} needs a value: {name} {option.value}")
        value = rest.pop(0)
    return option, value


def _request(given: dict[str, list[str]], rest: tuple[str, ...], program_only: bool) -> Request:
    for name in ("--help", "--version"):
        if name in given:
            return Request(word=name[2:], command=rest, settings={})
    word = "" if program_only or not rest else rest[0] if rest[0] in WORDS or rest[0] in RESERVED else ""
    return Request(
        word=word, command=rest[1:] if word else rest, settings=_settings(given),
        project=given.get("--project-dir", [""])[-1], bot=given.get("--bot", [""])[-1], use_project_file="--ignore-project-file" not in given,
        dry_run="--dry-run" in given, json="--json" in given, verbose="--verbose" in given,
    )  # fmt: skip


def _settings(given: dict[str, list[str]]) -> dict[str, object]:
    settings: dict[str, object] = {}
    for option in OPTIONS:
        values = given.get(option.name)
        if values and option.key:
            settings.update(_setting(option, values))
    return settings


def _setting(option: Option, values: list[str]) -> dict[str, object]:
    if option.key == "limits":
        return {f"limits.{name}": int(value) if value.isdecimal() else value for name, value in _pairs(option, values).items()}
    if option.key == "environment.set":
        return {option.key: _pairs(option, values)}
    if not option.value:
        return {option.key: True}
    return {option.key: values if option.many else values[-1]}


def _pairs(option: Option, values: list[str]) -> dict[str, str]:
    for value in values:
        if "=" not in value or value.startswith("="):
            raise UserError(f"{option.name} {_shown(value)}: expected {option.value}")
    return dict(value.split("=", 1) for value in values)


def _nearest(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, BY_NAME, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _shown(text: str) -> str:
    return ascii(text[:80])[1:-1]


def help_page() -> str:
    lines = ["usage: agent-sandbox [OPTIONS] [--] [COMMAND [ARGUMENTS…]]", ""]
    lines += ["Runs COMMAND (default: your shell) in a jail: the project directory is writable,"]
    lines += ["the system is readable, and nothing else is there.", ""]
    lines += ["options:", *(f"  {f'{o.name} {o.value}'.strip():24} {o.help}" for o in OPTIONS), ""]
    lines += ["our own words (`--` before one runs a program of that name):", *(f"  {word:24} {text}" for word, text in WORDS.items())]
    return "\n".join(lines)
