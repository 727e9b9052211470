"""One table of `network.inject` → an Injection, or a ValueError that says what would be right; and its text, as settings keep it. Pure.

It says where a secret lives, which host gets it and in which field of a request. The secret itself is never in here.
"""

from __future__ import annotations

from agent_sandbox.config.hosts import likely_target, parse_target
from agent_sandbox.config.record import record

NEEDED = ("name", "host", "header")
SOURCES = ("env", "file", "command")
OPTIONAL = ("path", "base_url_variable", "placeholder_variable", "placeholder")
FIELDS = (*NEEDED, *SOURCES, *OPTIONAL)
RESERVED = "agent-sandbox"  # the proxy's own page
PLACEHOLDER = "placeholder-set-by-agent-sandbox"
SECRET = "{secret}"
HTTPS = 443
LONGEST, LONGEST_NAME, MOST_WORDS = 1000, 40, 50
SMALL = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
DIGITS = frozenset("0123456789")
TOKEN = LETTERS | DIGITS | frozenset("!#$%&'*+-.^`|~")
IN_PATHS = LETTERS | DIGITS | frozenset("-.~/")
# What says how a message is framed, or is of one connection alone; and what the proxy decides itself.
NOT_OURS = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "trailer",
    "upgrade", "expect", "accept-encoding", "range", "if-range",
})  # fmt: skip


@record
class Injection:
    """`http://127.0.0.1:PORT/NAME/x` inside is `https://HOST:PORT/PATH/x` outside, with one more field."""

    name: str
    host: str
    port: int
    path: str  # "" or "/v1"
    field: str
    before: str  # the field's text around the secret
    after: str
    source: str  # one of SOURCES
    place: str  # the variable, or the file
    command: tuple[str, ...]
    base_url_variable: str
    placeholder_variable: str
    placeholder: str


def texts(items: object) -> tuple[str, ...]:
    """A list of tables as TOML gives it → the text of each."""
    if not isinstance(items, list | tuple) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"must be a list of tables, such as [[network.inject]], not {_shown(items)}")
    parsed = [parse(item) for item in items]
    for what in ("name", "base_url_variable", "placeholder_variable"):
        found = [value for one in parsed if (value := str(getattr(one, what)))]
        double = next((value for value in found if found.count(value) > 1), "")
        if double:
            raise ValueError(f"holds two entries whose {what} is {double!r}")
    return tuple([_text(item) for item in items])


def parse(item: dict[str, object]) -> Injection:
    name = _name(item)
    try:
        return _injection(name, item)
    except ValueError as error:
        raise ValueError(f"holds {name!r}, {error}") from None


def read(text: str) -> Injection:
    """Of what settings keep."""
    return parse(as_table(text))


def as_table(text: str) -> dict[str, object]:
    name, _, lines = text.partition("=")
    table: dict[str, object] = {"name": name}
    for line in lines.split("\n"):
        field, _, value = line.partition(" ")
        if field == "command":
            held = table.setdefault("command", [])
            assert isinstance(held, list)
            held.append(value)
        else:
            table[field] = value
    return table


def below_home(text: str, home: str) -> str:
    """`~` in the path of a file stands for the home of the passwd database."""
    return text.replace("\nfile ~/", f"\nfile {home.rstrip('/')}/")


def shown(text: str) -> str:
    """On one line."""
    table = as_table(text)
    pairs = [(field, " ".join(value) if isinstance(value, list) else value) for field, value in table.items() if field != "name"]
    return f"{table['name']}: {', '.join(f'{field} {value}' for field, value in pairs)}"


def _text(item: dict[str, object]) -> str:
    """`name=field value`, each further field on a line of its own: no value holds a line break."""
    lines = [(field, item[field]) for field in FIELDS[1:] if field in item]
    pairs = [(field, word) for field, value in lines for word in (value if isinstance(value, list | tuple) else [value])]
    return f"{item['name']}=" + "\n".join(f"{field} {value}" for field, value in pairs)


def _name(item: dict[str, object]) -> str:
    name = item.get("name")
    if not isinstance(name, str) or not name or len(name) > LONGEST_NAME or not SMALL.issuperset(name):
        raise ValueError(f"holds an entry whose name is {_shown(name)}: a name is small letters, digits and -")
    if name == RESERVED:
        raise ValueError(f"holds {name!r}: that name is the proxy's own")
    return name


def _injection(name: str, item: dict[str, object]) -> Injection:
    _check_fields(item)
    (source,) = (field for field in SOURCES if field in item)
    field, before, after = _header(_line(item, "header"))
    host, port = _host(_line(item, "host"))
    return Injection(
        name=name, host=host, port=port, path=_path(_line(item, "path")), field=field, before=before, after=after, source=source,
        place=_place(item, source), command=_command(item["command"]) if source == "command" else (),
        base_url_variable=_variable(item, "base_url_variable"), placeholder_variable=_variable(item, "placeholder_variable"),
        placeholder=_line(item, "placeholder") or PLACEHOLDER,
    )  # fmt: skip


def _check_fields(item: dict[str, object]) -> None:
    for field in item:
        if field not in FIELDS:
            import difflib

            near = difflib.get_close_matches(field, FIELDS, 1)
            raise ValueError(f"whose field {field!r} is not known: " + (f"did you mean {near[0]}?" if near else f"it has {', '.join(FIELDS)}"))
    missing = next((field for field in NEEDED if field not in item), "")
    if missing:
        raise ValueError(f"which has no {missing}")
    if sum(field in item for field in SOURCES) != 1:
        raise ValueError("which must say by exactly one of env, file and command where its secret is")
    if "base_url_variable" in item and item["base_url_variable"] == item.get("placeholder_variable"):
        raise ValueError("whose two variables are one")


def _line(item: dict[str, object], field: str) -> str:
    value = item.get(field, "")
    if not isinstance(value, str) or not value.isprintable() or len(value) > LONGEST or (field in item and not value.strip()):
        raise ValueError(f"whose {field} must be text on one line, not {_shown(value)}")
    return value


def _header(line: str) -> tuple[str, str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name or not TOKEN.issuperset(name):
        raise ValueError(f"whose header must be written like \"x-api-key: {SECRET}\", not {_shown(line)}")
    if name.lower() in NOT_OURS:
        raise ValueError(f"whose header {name} is not one that carries a credential")
    if value.count(SECRET) != 1 or not value.isascii():
        raise ValueError(f"whose header must have {SECRET} in it once, and ASCII around it")
    before, _, after = value.strip().partition(SECRET)
    return name, before, after


def _host(text: str) -> tuple[str, int]:
    try:
        host, port = parse_target(text)
    except ValueError as error:
        meant = likely_target(text)
        raise ValueError(f"whose host {_shown(text)} is not one: {error}" + (f"; did you mean {meant!r}?" if meant else "")) from None
    return host.text, port or HTTPS


def _path(text: str) -> str:
    plain = text.rstrip("/")
    steps = plain.split("/")[1:]
    if plain and (not plain.startswith("/") or not IN_PATHS.issuperset(plain) or {"", ".", ".."} & set(steps)):
        raise ValueError(f"whose path must be written like \"/v1\", not {_shown(text)}")
    return plain


def _place(item: dict[str, object], source: str) -> str:
    if source == "env":
        return _variable(item, "env")
    if source == "file":
        path = _line(item, "file")
        if not path.startswith(("/", "~/")) or ".." in path.split("/"):
            raise ValueError(f"whose file must be an absolute path without '..', or one below ~, not {_shown(path)}")
        return path
    return ""


def _command(said: object) -> tuple[str, ...]:
    fits = isinstance(said, list | tuple) and 0 < len(said) <= MOST_WORDS and all(isinstance(word, str) and _is_word(word) for word in said)
    if not fits or not isinstance(said, list | tuple) or not str(said[0]).startswith("/"):
        raise ValueError(f"whose command must be a list of words that begins with the path of a program, not {_shown(said)}")
    return tuple([str(word) for word in said])


def _is_word(word: str) -> bool:
    return word.isprintable() and len(word) <= LONGEST


def _variable(item: dict[str, object], field: str) -> str:
    name = _line(item, field)
    if name and (not (LETTERS | DIGITS).issuperset(name) or name[0] in DIGITS):
        raise ValueError(f"whose {field} must be the name of a variable, not {_shown(name)}")
    return name


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
