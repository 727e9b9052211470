"""The stub's module becomes two files of a session: its code, compiled, and a few lines that run it, which stand for every command."""

from __future__ import annotations

import marshal

from agent_sandbox.chaperon import stub
from agent_sandbox.chaperon.shebang import first_lines

RUN = "import marshal, posix\nnames = {{'__name__': 'stub'}}\nexec(marshal.loads(posix.read(posix.open({code!r}, 0), 1 << 20)), names)\n"
GO = "names['FIFOS'] = {fifos!r}\nnames['main']()\n"


def stub_code() -> bytes:
    """As this Python has compiled it: compiling it at each call would cost a quarter of the call."""
    return marshal.dumps(stub.__loader__.get_code(stub.__name__))  # type: ignore[union-attr]


def stub_file(python: str, code: str, fifos: str) -> bytes:
    """`python` is the interpreter that runs us, `code` where its code will be."""
    return f"{first_lines(python)}{RUN.format(code=code)}{GO.format(fifos=fifos)}".encode("utf-8", "surrogateescape")
