"""The C library's getopt_long over any table: which options it finds in a command line, in order, and which words are left."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

LIBC = ctypes.CDLL(None)
OPTIND, OPTARG = ctypes.c_int.in_dll(LIBC, "optind"), ctypes.c_char_p.in_dll(LIBC, "optarg")
FIRST = 1000  # of the numbers that stand for long options


class LongOption(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("has_arg", ctypes.c_int), ("flag", ctypes.c_void_p), ("val", ctypes.c_int))


class Table:
    """`letters` as getopt takes them; of each long name what it takes (0, 1, 2) and a letter, a name or a number that is its own."""

    def __init__(self, letters: str, names: Sequence[tuple[str, int, str]]) -> None:
        self.letters = letters.encode()
        self.meanings = sorted({meaning for _, _, meaning in names})
        codes = {meaning: FIRST + place for place, meaning in enumerate(self.meanings)}
        rows = [LongOption(name.encode(), takes, None, codes[meaning]) for name, takes, meaning in names]
        self.rows = (LongOption * (len(rows) + 1))(*rows)

    def read(self, typed: Sequence[str]) -> tuple[list[tuple[str, str | None]], list[str]] | None:
        """None where the library finds a mistake. A letter stands for itself, a long name for its meaning."""
        words = [b"command", *map(os.fsencode, typed)]
        argv = (ctypes.c_char_p * (len(words) + 1))(*words, None)
        ctypes.c_int.in_dll(LIBC, "opterr").value = 0
        OPTIND.value = 0
        found: list[tuple[str, str | None]] = []
        while (code := LIBC.getopt_long(len(words), argv, self.letters, self.rows, None)) != -1:
            if code == ord("?"):
                return None
            held = OPTARG.value
            found.append((chr(code) if code < FIRST else self.meanings[code - FIRST], None if held is None else os.fsdecode(held)))
        return found, [os.fsdecode(argv[place] or b"") for place in range(OPTIND.value, len(words))]
