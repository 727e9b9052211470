"""The stub's module becomes two files of a session: its code, compiled, and a few lines that run it, which stand for every command."""

from __future__ import annotations

import os
import sys

COMPILED = f"{os.path.dirname(__file__)}/__pycache__/stub.{sys.implementation.cache_tag}.pyc"
HEAD = 16  # bytes before the code of a compiled file; the second four are flags
UNCHANGING = 1  # the only flag of what an installer compiled: there is no newer source
LONGEST_FIRST_LINE = 127  # bytes of a first line that every kernel reads
PLAIN = "#!{python} -IS\n"
QUOTED = "#!/bin/bash -p\n'''exec' {quoted} -IS \"$0\" \"$@\"\n' '''\n"  # a shell's line that Python reads as a string
RUN = "import marshal, posix\nnames = {{'__name__': 'stub'}}\nexec(marshal.loads(posix.read(posix.open({code!r}, 0), 1 << 20)), names)\n"
GO = "names['FIFOS'] = {fifos!r}\nnames['main']()\n"


def stub_code() -> bytes:
    """As this Python has compiled it: compiling it at each call would cost a quarter of the call. An installed copy has it ready."""
    try:
        with open(COMPILED, "rb") as file:
            found = file.read()
    except FileNotFoundError:
        found = b""
    return found[HEAD:] if int.from_bytes(found[4:8], "little") == UNCHANGING else _compile()


def _compile() -> bytes:
    import marshal

    from agent_sandbox.chaperon import stub

    return marshal.dumps(stub.__loader__.get_code(stub.__name__))  # type: ignore[union-attr]


def stub_file(python: str, code: str, fifos: str) -> bytes:
    """`python` is the interpreter that runs us, `code` where its code will be."""
    return f"{first_lines(python)}{RUN.format(code=code)}{GO.format(fifos=fifos)}".encode("utf-8", "surrogateescape")


def first_lines(python: str) -> str:
    line = PLAIN.format(python=python)
    if len(line.encode("utf-8", "surrogateescape")) <= LONGEST_FIRST_LINE and not set(python) & set(" \t"):
        return line
    return QUOTED.format(quoted="'" + python.replace("'", "'\"'\"'") + "'")
