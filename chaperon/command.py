"""What an answer may be: a Reply, a wish for a file, or a real program to run whose Result becomes the next of these. Pure."""

from __future__ import annotations

from agent_sandbox.chaperon.wire import Reply, Request, Want
from agent_sandbox.config.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from agent_sandbox.chaperon.orders import Orders

    Step: TypeAlias = "Reply | Want | Command"
    Handler = Callable[[Request, Orders], Step]


@record
class Result:
    """How a program ended. Of one whose output was passed on as it came, `out` and `err` are empty."""

    code: int  # 128 + n = by signal n
    out: bytes = b""
    err: bytes = b""
    timed_out: bool = False
    cut: bool = False  # there was more output than Command.most


@record
class Command:
    """One of the scheduler's programs, with the output captured, or passed on live.

    Captured: the program runs to its end whatever becomes of the stub, `finish` sees its output (and writes the ledger) before
    the stub does. Live: the stub sees the output as it comes, of any length; a stub that goes away ends the program, so it
    must change nothing.
    """

    program: str  # a name in the directory of the real ones, or an absolute path
    words: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()  # added to a clean one
    stdin: bytes | Callable[[], bytes] = b""  # or what makes it while the program starts; if that raises, the program is ended unheard
    finish: Callable[[Result], Step] | None = None  # None: the result is the answer
    hear: Callable[[bytes], bytes] | None = None  # of a captured one: its first line, once it has said it, becomes what the stub is told then
    first: bytes = b""  # the stub's output before the program starts
    live: bool = False
    lasting: bool = False  # without a time limit; counted apart, so that those that wait for a job do not stop the others
    seconds: float = 300.0
    most: int = 1 << 20  # bytes of output that are captured


def finished(command: Command, result: Result) -> Step:
    """What follows from the end of a program."""
    if command.finish:
        return command.finish(result)
    err = result.err
    name = command.program.rpartition("/")[2]
    if result.timed_out:
        err += f"{name}: error: no end after {command.seconds:g} s; it was stopped\n".encode()
    if result.cut:
        err += f"{name}: error: the output is longer than {command.most} bytes; the rest was dropped\n".encode()
    return Reply(code=result.code or int(result.cut), out=result.out, err=err)
