"""The first lines of a Python program that the kernel can start, whatever the interpreter's path looks like. Pure."""

from __future__ import annotations

LONGEST = 127  # bytes of a first line that every kernel reads
PLAIN = "#!{python} -IS\n"
QUOTED = "#!/bin/bash -p\n'''exec' {quoted} -IS \"$0\" \"$@\"\n' '''\n"  # a shell's line that Python reads as a string


def first_lines(python: str) -> str:
    line = PLAIN.format(python=python)
    if len(line.encode("utf-8", "surrogateescape")) <= LONGEST and not set(python) & set(" \t"):
        return line
    return QUOTED.format(quoted="'" + python.replace("'", "'\"'\"'") + "'")
