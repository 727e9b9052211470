"""The same words, read by the C library's getopt_long and by us."""

from __future__ import annotations

import ctypes
import os

import pytest
from hypothesis import given, settings

from agent_sandbox.chaperon.parse import parse
from agent_sandbox.chaperon.registry import COMMANDS
from agent_sandbox.chaperon.words import FLAG, MAYBE, VALUE, Command
from tests.unit.chaperon.test_fuzz import lines

CASES = 10_000 if os.environ.get("SANDBOX_SOAK") else 400
TAKES = {FLAG: 0, VALUE: 1, MAYBE: 2}
LIBC = ctypes.CDLL(None)


class LongOption(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("has_arg", ctypes.c_int), ("flag", ctypes.c_void_p), ("val", ctypes.c_int))


def read_by_c(command: Command, typed: list[str]) -> tuple[list[tuple[str, str | None]], list[str]] | None:
    """Options with their values, and the words that are left; None where the library finds a mistake."""
    rows = [(name, option, 1000 + place) for place, option in enumerate(command.options) for name in (option.name, *option.aliases)]
    table = (LongOption * (len(rows) + 1))(*[LongOption(name.encode(), TAKES[option.takes], None, code) for name, option, code in rows])
    by_letter = {ord(option.short): option for option in command.options if option.short}
    letters = "".join(option.short + ":" * TAKES[option.takes] for option in by_letter.values())
    words = [os.fsencode(word) for word in ("sbatch", *typed)]
    argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    optind, optarg = ctypes.c_int.in_dll(LIBC, "optind"), ctypes.c_char_p.in_dll(LIBC, "optarg")
    ctypes.c_int.in_dll(LIBC, "opterr").value = 0
    optind.value = 0
    found = []
    shorts = (("" if command.permutes else "+") + letters).encode()
    while (code := LIBC.getopt_long(len(words), argv, shorts, table, None)) != -1:
        if code == ord("?"):
            return None
        option = by_letter[code] if code in by_letter else command.options[code - 1000]
        value = optarg.value
        found.append((option.name, None if value is None else os.fsdecode(value)))
    return found, [os.fsdecode(argv[place] or b"") for place in range(optind.value, len(words))]


@pytest.mark.parametrize("name", ["sbatch", "srun", "squeue", "scancel", "sacct", "sinfo"])
def test_words_are_read_as_the_c_library_reads_them(name: str) -> None:
    command = COMMANDS[name]

    @settings(max_examples=CASES, deadline=None)
    @given(lines(name))
    def check(typed: list[str]) -> None:
        plain = [word for word in (word.replace("\0", "") for word in typed) if word != ":"]
        ours, theirs = parse(command, plain), read_by_c(command, plain)
        assert (theirs is None) == bool(ours.refusals), (plain, ours.refusals, theirs)
        if theirs is not None:
            assert ([(item.option.name, item.value) for item in ours.found], list(ours.operands)) == theirs

    check()
