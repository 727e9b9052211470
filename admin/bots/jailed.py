"""`agent-sandbox --bot NAME …`, the bot's side: what was handed over becomes a session in a jail, as the bot. Started by sudo.

The person's settings stand for every layer but this machine's admin, who can only clamp them.
"""

from __future__ import annotations

import os
import pwd
import signal
import socket
import sys

from agent_sandbox.admin.bots.attend import fork, peer
from agent_sandbox.admin.bots.believed import INJECT, believed
from agent_sandbox.admin.bots.handed import SIZE, from_frame, size_of
from agent_sandbox.admin.bots.session import UMASK
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace
from agent_sandbox.config.session import load_session
from agent_sandbox.launcher import syscalls
from agent_sandbox.launcher.cli import Request
from agent_sandbox.launcher.handover import FORWARDED, WATCHED, start_guard
from agent_sandbox.launcher.launch import find_ground, launch_case
from agent_sandbox.launcher.probe import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from agent_sandbox.admin.bots.facts import Facts
    from agent_sandbox.admin.bots.handed import Handed
    from agent_sandbox.launcher.launch import Case

PATIENCE = 10  # seconds
OTHERWISE = "/bin/sh"  # for a shell that the bot cannot run


def session(facts: Facts, name: str) -> int:
    """`name` is the socket where the person's side waits."""
    line = call(name, facts)
    handed = take(line)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.umask(UMASK)
    start_ear(line)
    guard = start_guard()
    try:
        return launch_case(open_case(facts, handed), guard)
    finally:
        guard.dismiss()


def call(name: str, facts: Facts) -> socket.socket:
    """The owner's own process, by the word of the kernel."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    line.settimeout(PATIENCE)
    try:
        line.connect(f"\0{name}")
    except (OSError, ValueError) as error:
        raise UserError(f"nobody is there who could say what to run: {error}", hint="`agent-sandbox --bot` starts this")
    if peer(line)[1] not in (0, pwd.getpwnam(facts.owner).pw_uid):
        raise UserError(f"what to run as {facts.name} is said by {facts.owner} alone")
    return line


def take(line: socket.socket) -> Handed:
    try:
        return from_frame(_read(line, size_of(_read(line, SIZE))))
    except OSError as error:
        raise UserError(f"what to run was not said to the end: {error}")


def _read(line: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = line.recv(min(count - len(data), 1 << 16))
        if not piece:
            raise ConnectionError("the other end is gone")
        data += piece
    return bytes(data)


def start_ear(line: socket.socket) -> None:
    """A process that hears for us the signals that were sent to the person's. Where that one is killed so are we, and our guard ends the rest."""
    launcher = os.getpid()
    if fork() == 0:
        try:
            _be_ear(line, launcher)
        finally:
            os._exit(0)
    line.close()


def _be_ear(line: socket.socket, launcher: int) -> NoReturn:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    line.settimeout(None)
    while said := line.recv(1):
        if said[0] in FORWARDED and os.getppid() == launcher:
            os.kill(launcher, said[0])
    if os.getppid() == launcher:
        os.kill(launcher, signal.SIGKILL)
    os._exit(0)


def open_case(facts: Facts, handed: Handed) -> Case:
    sys.argv[0] = "agent-sandbox"
    check_reach(facts, handed.project)
    ground = find_ground(handed.asked, real=handed.project, bot=facts.name)
    shell = handed.shell if os.access(handed.shell, os.X_OK) else OTHERWISE
    cwd = handed.cwd if ground.disk.kind(handed.cwd) == "directory" else handed.project
    settings = believed(handed.settings, facts, lambda: load_session(ground.where, {}).names(INJECT))
    request = Request(word="", command=handed.command, settings={}, project=handed.asked, bot=facts.name)
    return replace(
        ground.case(request, load_session(ground.where, settings)),
        host=replace(ground.host, cwd=cwd, shell=shell, environment=handed.environment), asked_by=facts.owner, started_with=dict(os.environ),
    )  # fmt: skip


def check_reach(facts: Facts, project: str) -> None:
    """By mode bits and ACLs of the directory and of all above it."""
    if not os.access(project, os.R_OK | os.W_OK | os.X_OK):
        hint = f"share it first: sudo botadm share -r {printable(project)}"
        raise UserError(f"{facts.name} cannot work in the project: it is not shared with bots", where=printable(project), hint=hint)
