"""Names of system calls become their numbers on a machine. Reads lists made ahead by `compile`."""

from __future__ import annotations

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.seccomp.filters import ARCHITECTURES, FOLDER, architecture_of, unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def number_of(name: str, machine: str) -> int | None:
    """None where another machine has this call and this one has not."""
    return next(iter(numbers_of((name,), machine)), None)


def numbers_of(names: Iterable[str], machine: str) -> tuple[int, ...]:
    """Calls that only another machine has are left out: one config file serves a mixed cluster."""
    architecture_of(machine)
    known = {each: read_numbers(each) for each in ARCHITECTURES}
    wanted = tuple(names)
    for name in wanted:
        if not any(name in numbers for numbers in known.values()):
            raise _unknown(name, sorted(set().union(*known.values())))
    return tuple(known[machine][name] for name in wanted if name in known[machine])


def path_of(machine: str) -> str:
    return f"{FOLDER}/syscalls.{machine}.txt"


def read_numbers(machine: str) -> dict[str, int]:
    path = path_of(machine)
    try:
        with open(path, encoding="ascii") as file:
            return {name: int(number) for name, number in map(str.split, file)}
    except (OSError, ValueError) as error:
        raise unusable(path, "list of system calls", error) from error


def _unknown(name: str, known: list[str]) -> UserError:
    import difflib  # only on the way to an error: it costs more than all of the above

    near = difflib.get_close_matches(name, known, n=1)
    return UserError(f"there is no system call {name!r}", hint=f"did you mean {near[0]!r}?" if near else "")
