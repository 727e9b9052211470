"""The launcher: argv → Request → Settings → Policy → Plan → jail. This file is the map."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # the same without names, which cost more than all else that is loaded here

gc.disable()  # a launch is over before collecting would pay
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while we start: end, as any program does, without a traceback

from agent_sandbox.config.errors import UserError  # noqa: E402
from agent_sandbox.launcher.cli import parse  # noqa: E402
from agent_sandbox.launcher.own import summary_path  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.launcher.cli import Request


def main(argv: Sequence[str] | None = None) -> int:
    fill_standard_files()
    try:
        return run(parse(sys.argv[1:] if argv is None else argv))
    except UserError as error:
        from agent_sandbox.launcher.say import say

        say(str(error), "error")
        return error.code
    except BrokenPipeError:  # whoever read our output is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141


def fill_standard_files() -> None:
    """A closed one is taken by the next file that is opened: by our log, or by bwrap's hold on the host's /proc."""
    lowest = os.open(os.devnull, os.O_RDWR)
    while lowest <= 2:
        os.set_inheritable(lowest, True)
        lowest = os.open(os.devnull, os.O_RDWR)
    os.close(lowest)


def run(request: Request) -> int:
    if request.word:
        from agent_sandbox.launcher.words import run_word

        return run_word(request, inside=bool(summary_path()))
    if summary_path():
        raise UserError("already inside a jail: run the command itself", hint="a jail in a jail would not be one more wall")
    if request.bot:
        from importlib import import_module  # bots are the admin's side, which may know us, and we not it

        return leave(import_module("agent_sandbox.admin.bots.launch").run(request))
    if request.dry_run:
        from agent_sandbox.launcher.seeing.dryrun import run as show

        return show(request)
    return leave(launch_guarded(request))


def launch_guarded(request: Request) -> int:
    """The guard first: it loads its part, and the settings, while we load ours."""
    from agent_sandbox.launcher.handover import start_guard

    guard = start_guard()
    try:
        from agent_sandbox.launcher.launch import launch

        return launch(request, guard)
    finally:
        guard.dismiss()


def leave(code: int) -> int:
    """End at once: taking the interpreter apart in good order costs as much as reading the settings."""
    if sys.stdout is not None:  # closed when we were started
        sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
