"""The stub's module becomes the one file that a session has of it, ready to run."""

from __future__ import annotations

import marshal
import sys

from agent_sandbox.chaperon import stub


def stub_file(python: str, fifos: str) -> bytes:
    """With the code as this Python has compiled it: compiling it at each call would cost a quarter of the call. Python is the
    interpreter that runs us; by another one only the text can be read."""
    start = f"#!{python} -IS\n"
    if python != sys.executable:
        return (start + _source().replace("@FIFOS@", fifos, 1)).encode("utf-8", "surrogateescape")
    code = stub.__loader__.get_code(stub.__name__)  # type: ignore[union-attr]
    run = f"import marshal\nnames = {{'__name__': 'stub'}}\nexec(marshal.loads({marshal.dumps(code)!r}), names)\n"
    return f"{start}{run}names['FIFOS'] = {fifos!r}\nnames['main']()\n".encode("utf-8", "surrogateescape")


def _source() -> str:
    text = stub.__loader__.get_source(stub.__name__)  # type: ignore[union-attr]
    return str(text).partition("\n")[2]
