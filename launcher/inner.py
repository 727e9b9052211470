"""Inside the jail, where `env --default-signal` will not do: restore signals and become the command."""

import errno
import os
import signal
import sys


def main(words: list[str]) -> int:
    names, command = words[0], words[1:]
    for name in (*names.split(","), "PIPE", "XFSZ"):
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        code, why = 127, "command not found"
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            return run_script(command)
        code, why = 126, str(error.strerror)
    print(f"agent-sandbox: {command[0]!r}: {why}", file=sys.stderr)
    return code


def run_script(command: list[str]) -> int:
    """A text without a first line that names its interpreter: a shell's."""
    import shutil

    os.execv("/bin/sh", ["sh", shutil.which(command[0]) or command[0], *command[1:]])
    return 126


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
