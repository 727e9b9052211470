"""Where a credential lives → its text, read outside when everything else is decided; a plan becomes one whose proxy knows it.

From here it goes through a pipe to the guard and into the memory of the proxy: it is in no argument, no variable, no file, no log and no message.
One that is not there stops no launch – the proxy says so to who asks for it –, one that is kept carelessly does.
"""

from __future__ import annotations

import os
import stat
import time

from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.proxy.inject import asked, wire
from agent_sandbox.launcher.proxy.orders import pack, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_sandbox.launcher.launch import Case, Decision
    from agent_sandbox.launcher.plan import Plan
    from agent_sandbox.launcher.policy import Helper, Host
    from agent_sandbox.launcher.proxy.inject import Asked

PROXY = "agent_sandbox.launcher.proxy.main"
SECONDS = 20.0  # for a command to say it
SHORTEST, LONGEST = 8, 8192  # one of fewer characters would be found in every other text
OTHERS = stat.S_IRWXO | stat.S_IWGRP


class Missing(Exception):
    """Why there is none, in words that hold nothing of it."""


@record
class Filled:
    plan: Plan
    missing: tuple[str, ...]  # what is to be said


def fill(decision: Decision, case: Case) -> Filled:
    wired, said = [], []
    for one in asked(case.settings):
        try:
            secret = find(one, case)
            check_absent(secret, one, decision)
            wired.append(wire(one.injection, secret))
        except Missing as problem:
            wired.append(wire(one.injection, missing=str(problem)))
            said.append(f"network.inject {one.injection.name}: {problem}: requests to it will be refused")
    helpers = [_told(helper, tuple(wired)) if helper.module == PROXY else helper for helper in decision.plan.helpers]
    return Filled(plan=replace(decision.plan, helpers=tuple(helpers)), missing=tuple(said))


def _told(helper: Helper, wired: tuple[object, ...]) -> Helper:
    return replace(helper, orders=pack(replace(unpack(helper.orders), credentials=wired)))


def find(one: Asked, case: Case) -> str:
    source, place = one.injection.source, one.injection.place
    if source == "env":
        given = case.host.environment if case.started_with is None else case.started_with  # in a job the former are the agent's
        raw = given.get(place, "").encode("utf-8", "surrogateescape")
        if not raw:
            raise Missing(f"the variable {place} is not set where this was started")
    else:
        raw = _read(one) if source == "file" else _run(one.injection.command, case.host)
    return checked(raw, one)


def checked(raw: bytes, one: Asked) -> str:
    text = raw.rstrip(b"\r\n").decode("latin-1")
    if not SHORTEST <= len(text) <= LONGEST or not text.isascii() or not text.isprintable() or text != text.strip():
        raise one.refused(f"must be {SHORTEST} to {LONGEST} printable ASCII characters on one line, and is something else")
    return text


def check_absent(secret: str, one: Asked, decision: Decision) -> None:
    """What would take it inside all the same."""
    for name, value in decision.policy.environment.values.items():
        if secret in value:
            hint = f'block = ["{name}"] in [environment] keeps it out'
            raise one.refused(f"is also in the variable {name}, and would enter the jail with it", hint)
    if any(secret in word for word in decision.command):
        raise one.refused("is also in the command's arguments, and would enter the jail with them")


def _read(one: Asked) -> bytes:
    """Of a file that is the user's own or root's, and that nobody else can read."""
    path = one.injection.place
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Missing(f"{path} cannot be read: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise one.refused(f"is in {path}, which is not a regular file")
        if found.st_uid not in (0, os.getuid()):
            raise one.refused(f"is in {path}, which belongs to somebody else")
        if found.st_mode & OTHERS:
            raise one.refused(f"is in {path}, which others can read or change", f"chmod 600 {path}")
        return file.read(LONGEST + 3)


def _run(command: Sequence[str], host: Host) -> bytes:
    """With variables of ours, no shell, no input, and so much time and output. What it says on stderr may hold the secret: nobody sees it."""
    import subprocess

    environment = {"PATH": "/usr/bin:/bin", "HOME": host.home, "USER": host.user, "LOGNAME": host.user, "LANG": "C.UTF-8"}
    if os.path.isdir(runtime := f"/run/user/{host.uid}"):
        environment["XDG_RUNTIME_DIR"] = runtime
    try:
        with subprocess.Popen(
            command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            assert process.stdout
            said = _hear(process.stdout.fileno(), time.monotonic() + SECONDS)
            if said is None:
                process.kill()
                raise Missing(f"{command[0]} did not end within {SECONDS:.0f} s, or said too much")
            code = process.wait()
    except OSError as error:
        raise Missing(f"{command[0]} cannot be run: {error.strerror}") from None
    if code:
        raise Missing(f"{command[0]} ended with status {code}")
    return said


def _hear(pipe: int, deadline: float) -> bytes | None:
    """All that is said, until the end; None = too late, or too much."""
    import select

    said = b""
    while (left := deadline - time.monotonic()) > 0 and len(said) <= LONGEST + 2:
        if select.select([pipe], [], [], left)[0]:
            piece = os.read(pipe, LONGEST)
            if not piece:
                return said
            said += piece
    return None
