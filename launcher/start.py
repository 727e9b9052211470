"""The command as typed becomes what the jail runs first: found or refused as by a shell, signals restored. Pure given a Disk."""

from __future__ import annotations

import signal

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.view import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.launcher.policy import Host, Policy
    from agent_sandbox.launcher.probe import Disk

NOT_EXECUTABLE, NOT_FOUND = 126, 127
ENV = "/usr/bin/env"
ENV_OPTION = "--default-signal="
INNER_STAGE = "/launcher/inner.py"
STAGES = (INNER_STAGE, "/chaperon/inside.py")  # of ours, and each becomes the command
LONGEST_ARGUMENT = 131071  # the kernel's limit for one string


def check_command(command: Sequence[str], policy: Policy, disk: Disk) -> None:
    """Say before the jail is built what a shell would say after: 127 = not there, 126 = cannot be run."""
    if any("\0" in word for word in command):
        raise UserError("an argument has a NUL character in it")
    if any(len(word.encode("utf-8", "surrogateescape")) > LONGEST_ARGUMENT for word in command):
        raise UserError("an argument is longer than the kernel takes (128 KiB)", hint="put it in a file")
    name = command[0]
    if not name:
        raise UserError("the command is an empty word", hint="without a command your shell is started", code=NOT_FOUND)
    if "/" in name:
        _check_path(name if name.startswith("/") else f"{policy.cwd}/{name}", name, policy, disk)
    else:
        _check_search(name, policy, disk)


def _check_path(path: str, name: str, policy: Policy, disk: Disk) -> None:
    kind, real = _follow(path, policy, disk)
    if not kind or not policy.view.shows(real):
        raise UserError(f"{printable(name)}: not there, or not visible inside the jail", code=NOT_FOUND)
    if kind != "file" or not disk.executable(real):
        raise UserError(f"{printable(name)}: cannot be run: not an executable file", code=NOT_EXECUTABLE)


def _check_search(name: str, policy: Policy, disk: Disk) -> None:
    """Along PATH as a shell does it: an empty entry is the current directory, and what cannot be run is passed over."""
    unseen = unfit = ""
    for place in policy.environment.values["PATH"].split(":"):
        path = f"{place}/{name}" if place.startswith("/") else f"{policy.cwd}/{place or '.'}/{name}"
        kind, real = _follow(path, policy, disk)
        if kind != "file":
            continue
        if not disk.executable(real):
            unfit = unfit or path
        elif not policy.view.shows(real):
            unseen = unseen or path
        else:
            return
    if unseen:
        raise UserError(
            f"{printable(name)} is {printable(unseen)}, which is not visible inside the jail", code=NOT_FOUND,
            hint=f"grant it: agent-sandbox --ro {printable(unseen.rpartition('/')[0])} …",
        )  # fmt: skip
    if unfit:
        raise UserError(f"{printable(unfit)}: cannot be run: not an executable file", code=NOT_EXECUTABLE)
    raise UserError(f"{printable(name)}: command not found", hint=_own_word(name), code=NOT_FOUND)


def _own_word(name: str) -> str:
    import difflib

    from agent_sandbox.launcher.cli import WORDS

    near = difflib.get_close_matches(name, WORDS, 1, 0.75)
    return f"did you mean `agent-sandbox {near[0]}`?" if near else ""


def _follow(path: str, policy: Policy, disk: Disk) -> tuple[str, str]:
    """What is there and where it really is, by the links that we make inside as well; links that go in circles lead nowhere."""
    made = next((mount.target for mount in policy.view.mounts if mount.path == path and mount.kind == Kind.LINK), path)
    try:
        found = disk.follow(made if made.startswith("/") else path)
    except UserError:
        return "", path
    return found.kind, found.real


def inner_stage(host: Host) -> str:
    return host.package + INNER_STAGE


def wrap_command(command: Sequence[str], host: Host, disk: Disk, ignored: Sequence[int], at_start: frozenset[int]) -> tuple[str, ...]:
    """Put back what the stage ignores, unless the caller had it ignored before us (`nohup`)."""
    restored = [signal.Signals(number).name.removeprefix("SIG") for number in ignored if number not in at_start]
    if not restored:
        return tuple(command)
    if _env_takes(command[0]) and b"--default-signal" in (disk.read(ENV) or b""):
        return (ENV, f"{ENV_OPTION}{','.join(restored)}", "--", *command)
    return (host.python, "-I", "-S", inner_stage(host), ",".join(restored), *command)


def _env_takes(name: str) -> bool:
    """To `env` a word with = in it is a variable, and - an empty environment."""
    return "=" not in name and name != "-"


def is_wrapper(words: Sequence[str]) -> bool:
    """Is this command line the wrapping, which is still to become the command?"""
    if words[0] == ENV:
        return len(words) > 1 and words[1].startswith(ENV_OPTION)
    return len(words) > 3 and words[3].endswith(STAGES)
