"""Inside the jail, where `env --default-signal` will not do: restore signals and become the command."""

from __future__ import annotations

import errno
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(words: list[str]) -> NoReturn:
    names, command = words[0], words[1:]
    for name in (*names.split(","), "PIPE", "XFSZ"):
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_DFL)
    become(command, dict(os.environ))


def become(command: Sequence[str], environment: dict[str, str]) -> NoReturn:
    """As a shell does it: 127 = not found, 126 = found and not to be run; a text without an interpreter is the shell's."""
    try:
        os.execvpe(command[0], [*command], environment)
    except FileNotFoundError:
        code, why = 127, "command not found"
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            _run_script(command, environment)
        code, why = 126, str(error.strerror)
    os.write(2, f"agent-sandbox: {command[0]!r}: {why}\n".encode("utf-8", "backslashreplace"))
    os._exit(code)


def _run_script(command: Sequence[str], environment: dict[str, str]) -> None:
    import shutil

    found = shutil.which(command[0], path=environment.get("PATH")) or command[0]
    os.execve("/bin/sh", ["sh", found, *command[1:]], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
