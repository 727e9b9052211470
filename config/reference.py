"""The table of keys and the shipped lists → docs/config.md: `python -m agent_sandbox.config.reference` writes it."""

from __future__ import annotations

import os

from agent_sandbox.config.defaults import read_lists
from agent_sandbox.config.keys import KEYS, SECTIONS, Key
from agent_sandbox.config.show import describe_default, describe_kind

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "docs", "config.md")
HEAD = """\
# Config

*Made from the table of keys by `make docs`; change `config/reference.py` or `config/keys.py`, not this page.*

Config is TOML. Three ranks speak, and a lower one never weakens a higher one:

| rank | files, in the order in which they speak |
|---|---|
| admin | `/app/lib/agent-sandbox/config.toml`, then `conf.d/*.toml` beside it |
| person | `~/.config/agent-sandbox/config.toml`, then `conf.d/*.toml` beside it, then the command line |
| repository | `.agent-sandbox.toml` in the project |

An agent can write the repository's file, so it may only harden; the command line can undo that. Where no rank speaks,
the shipped defaults hold. Within a rank the later file wins, and lists add up. What a layer tries to weaken is put
back: one line on stderr names the layer, the key, what was wanted and what holds. `agent-sandbox config show` prints
every value with the file and line it comes from.

## What an admin can write besides

```toml
locked = ["sandbox.backend"]       # nobody else may change these: they stay at the value given here, or at the default

[defaults]                         # values that hold where nobody says otherwise
network.mode = "isolated"

[match]                            # this file counts only where all of these fit; each a pattern or a list of patterns
host = "login*"
group = ["students", "guests"]     # user = …
```

A file in a person's own `conf.d` may hold a `[match]` on `project` (a directory: it fits there and below; `~` and `*`
work) and on `host`.

## Whose files are read

An admin's file, and every directory above it, must belong to root and be writable by nobody else. A person's file must
belong to them or to root, and be writable by nobody else (but a group of which they are the only member). A file that
is too large (1 MiB), not UTF-8, not TOML, or that holds an unknown key or a wrong value stops the launch, with file and
line. No environment variable has a say: the home directory is the one of the passwd database.

## How ranks combine a key

| rule | across ranks |
|---|---|
| `union` | entries add up; none that a higher rank set can go |
| `strictest` | choices are written strictest first; a lower rank may equal or harden |
| `narrow` | the intersection; of paths, the deeper of each nested pair; empty means none, unset means any |
| `vetoed` | entries add up, minus whatever a higher rank denies in the key that is named |
| `added` | entries add up; of two with one name the higher rank's stays |
| `least` | the smaller number; unset is no limit, `"unlimited"` is written out |
| `admin` | only the admin's value counts |
| `last` | a preference: the lower rank wins, unless it is locked |

A repository's file may set `union`, `strictest`, `narrow` and `least` keys, and no others. Within a rank the later list
of a `narrow` key replaces the earlier one.

## How values are written

* paths: `~` is your home; relative ones are below your home, on the command line below the current directory, in a
  repository's file below the project. `..` is refused in files. `/foo` stands for all below it, not for `/foobar`.
  `*`, `?` and `[…]` work where noted.
* variables: `*` and `?` work; `/i` at the end ignores case: `"*password*/i"`.
* sizes: bytes, or `"512M"`, `"4G"`.
* times: seconds, or `"90s"`, `"15m"`, `"2h"`, `"1-12:00:00"` (days-hours:minutes:seconds).

## Keys

Keys marked ⧖ belong to a part that is not built yet; a launch that would need it refuses to start.
"""


def render() -> str:
    lists = read_lists()
    sections = [_section(section, names, lists) for section, names in SECTIONS.items()]
    return "\n".join([HEAD, *sections, _shipped(lists)])


def _section(section: str, names: tuple[str, ...], lists: dict[str, list[str]]) -> str:
    rows = [_row(KEYS[name], lists) for name in names]
    return "\n".join([f"### {section}", "", "| key | value | rule | default | |", "|---|---|---|---|---|", *rows, ""])


def _row(key: Key, lists: dict[str, list[str]]) -> str:
    value = describe_kind(key).replace("|", "\\|") + (" (patterns)" if key.globs else "")
    rule = f"`{key.rule}`" + (f" by `{key.veto}`" if key.veto else "")
    notes = f"; `{'`, `'.join(key.admin_values)}`: by an admin only" if key.admin_values else ""
    name = f"`{key.name}`" + ("" if key.ready else " ⧖")
    return f"| {name} | {value} | {rule} | {describe_default(key, lists)} | {key.help}{notes} |"


def _shipped(lists: dict[str, list[str]]) -> str:
    parts = ["## The shipped lists\n\nFrom `config/defaults.toml`; paths are relative to home.\n"]
    for name, entries in lists.items():
        parts.append(f"**{name}**: {' '.join(f'`{entry}`' for entry in entries)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(render())
