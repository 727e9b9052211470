"""A table of options becomes what is looked up in it: by name, by letter, by place. Made once for each table. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_sandbox.chaperon.words import Command, Option


class Index:
    def __init__(self, command: Command) -> None:
        self.command = command  # held, so that no other table gets its identity
        self.names: dict[str, Option] = {name: option for option in command.options for name in (option.name, *option.aliases)}
        self.letters: dict[str, Option] = {option.short: option for option in reversed(command.options) if option.short}
        self.places = {option.name: place for place, option in enumerate(command.options)}
        self.variables = tuple([(name, option) for option in command.options for name in option.variables])

    def near(self, name: str) -> list[Option]:
        """Those that the name may be short for, in the order of the table."""
        found = {option.name: option for known, option in self.names.items() if known.startswith(name)}
        return list(found.values())


_made: dict[int, Index] = {}


def index_of(command: Command) -> Index:
    """By identity: to compare tables would cost more than to search them."""
    found = _made.get(id(command))
    if found is None:
        found = _made[id(command)] = Index(command)
    return found
