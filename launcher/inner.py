"""Second stage, inside the jail, where no `env --default-signal` is at hand: restore signals and become the command."""

import os
import signal
import sys


def main(words: list[str]) -> int:
    for name in words[0].split(","):
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(words[1], words[1:])
    except FileNotFoundError:
        code, why = 127, "command not found"
    except OSError as error:
        code, why = 126, error.strerror
    print(f"agent-sandbox: {words[1]!r}: {why}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
