"""The command as typed becomes what the jail runs first: found, or refused as a shell would; wrapped to restore signals. Pure given a Disk."""

from __future__ import annotations

import signal

from agent_sandbox.config.errors import UserError
from agent_sandbox.launcher.probe import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.launcher.policy import Host, Policy
    from agent_sandbox.launcher.probe import Disk

NOT_EXECUTABLE, NOT_FOUND = 126, 127
ENV = "/usr/bin/env"
LONGEST_ARGUMENT = 131071  # the kernel's limit for one string


def check_command(command: Sequence[str], policy: Policy, disk: Disk) -> None:
    """Say before the jail is built what a shell would say after: 127 = not there, 126 = cannot be run."""
    if any("\0" in word for word in command):
        raise UserError("an argument has a NUL character in it")
    if any(len(word.encode("utf-8", "surrogateescape")) > LONGEST_ARGUMENT for word in command):
        raise UserError("an argument is longer than the kernel takes (128 KiB)", hint="put it in a file")
    name = command[0]
    if "/" in name:
        _check_path(name if name.startswith("/") else f"{policy.cwd}/{name}", name, policy, disk)
        return
    places = [f"{place}/{name}" for place in policy.environment.values["PATH"].split(":") if place.startswith("/")]
    found = [path for path in places if disk.follow(path).kind == "file"]
    if any(policy.view.shows(disk.follow(path).real) for path in found):
        return
    if found:
        raise UserError(
            f"{printable(name)} is {printable(found[0])}, which is not visible inside the jail", code=NOT_FOUND,
            hint=f"grant it: agent-sandbox --ro {printable(found[0].rpartition('/')[0])} …",
        )  # fmt: skip
    raise UserError(f"{printable(name)}: command not found", code=NOT_FOUND)


def _check_path(path: str, name: str, policy: Policy, disk: Disk) -> None:
    found = disk.follow(path)
    if not found.kind or not policy.view.shows(found.real):
        raise UserError(f"{printable(name)}: not there, or not visible inside the jail", code=NOT_FOUND)
    if found.kind != "file" or not disk.executable(found.real):
        raise UserError(f"{printable(name)}: cannot be run: not an executable file", code=NOT_EXECUTABLE)


def inner_stage(host: Host) -> str:
    return f"{host.package}/launcher/inner.py"


def wrap_command(command: Sequence[str], host: Host, disk: Disk, ignored: Sequence[int], at_start: frozenset[int]) -> tuple[str, ...]:
    """Put back what the stage ignores, unless the caller had it ignored before us (`nohup`)."""
    restored = [signal.Signals(number).name.removeprefix("SIG") for number in ignored if number not in at_start]
    if not restored:
        return tuple(command)
    if "=" not in command[0] and b"--default-signal" in (disk.read(ENV) or b""):
        return (ENV, f"--default-signal={','.join(restored)}", "--", *command)
    return (host.python, "-I", "-S", inner_stage(host), ",".join(restored), *command)
