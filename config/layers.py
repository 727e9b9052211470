"""Which files and options speak, and in which order → Layers → Settings. Reads config files.

    defaults · admin's [defaults] · admin · person's file · person's conf.d · the project's own file · command line

A file that is not there says nothing; one that cannot be read, trusted or understood stops the launch.
"""

from __future__ import annotations

import os

from agent_sandbox.config import paths, patterns
from agent_sandbox.config.content import Source, read_match, read_options, read_tables
from agent_sandbox.config.defaults import load_defaults
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.files import ADMIN, list_trusted, parse, read_trusted, read_untrusted, user_trust
from agent_sandbox.config.location import PROJECT_FILE
from agent_sandbox.config.merge import merge
from agent_sandbox.config.settings import COMMAND_LINE, Layer, Rank, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_sandbox.config.location import Where

    Parser = Callable[[bytes, str], dict[str, object]]

ADMIN_MATCHES = ("host", "user", "group", "bot")
USER_MATCHES = ("project", "host")


def load(where: Where, command_line: Mapping[str, object], *, use_project_file: bool = True, parse: Parser = parse) -> Settings:
    """Everything that holds for this person in this project. `command_line` maps keys to values as TOML has them."""
    defaults = load_defaults(where.home)  # first: the files may still be on their way
    admin, own = admin_layers(where, parse), user_layers(where, parse)
    project = project_layers(where) if use_project_file else []
    options = read_options(command_line, command_line_source(where))
    return merge([defaults, *admin, *own, *project, options])


def admin_layers(where: Where, parse: Parser = parse) -> list[Layer]:
    """[defaults] of all files first: they stand below every rank."""
    layers = []
    for path in (f"{where.admin_dir}/config.toml", *list_trusted(f"{where.admin_dir}/conf.d", ADMIN)):
        layers += read_layers(read_trusted(path, ADMIN), admin_source(path, where), where, parse)
    return sorted(layers, key=lambda layer: layer.rank)


def user_layers(where: Where, parse: Parser = parse) -> list[Layer]:
    trust = user_trust(where.user, where.uid, where.home)
    config = f"{where.user_dir()}/config.toml"
    layers = read_layers(read_trusted(config, trust), user_source(config, where), where, parse)
    for path in list_trusted(f"{where.user_dir()}/conf.d", trust):
        layers += read_layers(read_trusted(path, trust), user_source(path, where, matches=USER_MATCHES), where, parse)
    return layers


def project_layers(where: Where) -> list[Layer]:
    if not where.project:
        return []
    source = project_source(f"{where.project}/{PROJECT_FILE}", where)
    try:
        return read_layers(read_untrusted(source.name), source, where)
    except UserError as error:
        ignore = "agent-sandbox --ignore-project-file … starts without it"
        raise UserError(error.problem, where=error.where, hint=f"{error.hint}; {ignore}".removeprefix("; ")) from None


def admin_source(path: str, where: Where) -> Source:
    return Source(name=path, rank=Rank.ADMIN, base=where.home, home=where.home, matches=ADMIN_MATCHES)


def user_source(path: str, where: Where, matches: tuple[str, ...] = ()) -> Source:
    return Source(name=path, rank=Rank.PERSON, base=where.home, home=where.home, matches=matches)


def project_source(path: str, where: Where) -> Source:
    return Source(name=path, rank=Rank.REPOSITORY, base=where.project, home=where.home)


def command_line_source(where: Where) -> Source:
    return Source(name=COMMAND_LINE, rank=Rank.PERSON, base=where.cwd, home=where.home)


def read_layers(data: bytes | None, source: Source, where: Where, parse: Parser = parse) -> list[Layer]:
    """The layers of one file, if it is there and its [match] fits; all of it is checked even if it does not."""
    if data is None:
        return []
    tables = parse(data, source.name)
    source = source.with_text(data.decode())
    layers, match = read_tables(tables, source), read_match(tables, source)
    return layers if all(_fits(name, wanted, where) for name, wanted in match.items()) else []


def check_file(path: str, where: Where) -> None:
    """Is the file understood, and trusted in its place? One that lies nowhere in particular is an admin's draft."""
    directory, name = os.path.split(path)
    real = os.path.realpath(directory)
    user, admin = os.path.realpath(where.user_dir()), os.path.realpath(where.admin_dir)
    if name == PROJECT_FILE:
        data, source = read_untrusted(path), project_source(path, where)
    elif real in (user, f"{user}/conf.d"):
        data = read_trusted(path, user_trust(where.user, where.uid, where.home))
        source = user_source(path, where, matches=() if real == user else USER_MATCHES)
    elif real in (admin, f"{admin}/conf.d"):
        data, source = read_trusted(path, ADMIN), admin_source(path, where)
    else:
        data, source = read_untrusted(os.path.realpath(path)), admin_source(path, where)
    if data is None:
        raise UserError("does not exist", where=path)
    read_layers(data, source, where)


def _fits(name: str, wanted: tuple[str, ...], where: Where) -> bool:
    """Does any of the patterns fit this host, user, group, bot or project?"""
    if name == "project":
        return any(_is_project(pattern, where) for pattern in wanted)
    found = {
        "host": (where.host, where.host.partition(".")[0]),
        "user": (where.user,),
        "group": where.groups,
        "bot": (where.bot,) if where.bot else (),
    }[name]
    return any(patterns.glob_matches(pattern, text) for pattern in wanted for text in found)


def _is_project(pattern: str, where: Where) -> bool:
    """The directory, or one below it, as it is written or with its links resolved."""
    path = paths.absolute(pattern, base=where.home, home=where.home)
    steps = path.split("/")
    plain = next((number for number, step in enumerate(steps) if patterns.is_pattern(step)), len(steps))
    real = "/".join([os.path.realpath("/".join(steps[:plain]) or "/").rstrip("/"), *steps[plain:]])
    return any(patterns.within(where.project, top) for top in (path, real))
