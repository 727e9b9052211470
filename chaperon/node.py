"""The other end of the envelope, on the compute node: data → Job → Case → jail. Started by Slurm as the user, outside the jail.

The session's settings stand for every layer but this node's admin, who can only clamp them. Whatever fails before the jail is
there ends the job with a reason on stderr, which is the forced log. Nothing of the agent's is run, read or opened by path here:
its script and the names of its files go inside as data, and `inside.py` makes use of them there.
"""

from __future__ import annotations

import marshal
import os
import sys

from agent_sandbox.chaperon.envelope import read_data, unpack_variables
from agent_sandbox.chaperon.export import choose, without_the_other_jail
from agent_sandbox.chaperon.inside import DEFAULT_PATH, ORDERS, PORT_TO_COME, PORT_VARIABLE, SCRIPT, interpreter
from agent_sandbox.chaperon.outputs import files_of, names_of
from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from agent_sandbox.chaperon.envelope import Job
    from agent_sandbox.chaperon.export import Chosen
    from agent_sandbox.config.location import Where
    from agent_sandbox.config.settings import Settings
    from agent_sandbox.launcher.handover import Guard
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Host, Policy
else:
    import _signal as signal

FAILED = 125
INSIDE = "/chaperon/inside.py"
SHELLS = (b"sh", b"bash", b"dash", b"ksh", b"mksh", b"zsh", b"csh", b"tcsh", b"fish")
DEADLY = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGPIPE,
    signal.SIGTERM, signal.SIGSYS, signal.SIGKILL, signal.SIGTRAP, signal.SIGALRM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU, signal.SIGXFSZ,
)  # fmt: skip
MOST_VARIABLES = 8 << 20  # bytes; the kernel takes less
# What the chaperon gave to sbatch, and what it made Slurm set: not the agent's, and not the job's.
OURS = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_CTYPE", "PWD", "TMPDIR", "SLURM_CONF", "SLURM_EXPORT_ENV", "SLURM_GET_USER_ENV",
    "SLURM_OPEN_MODE",
})  # fmt: skip


def main(packed: str) -> NoReturn:
    try:
        code = run(packed)
    except UserError as error:
        from agent_sandbox.launcher.say import say

        say(f"job {os.environ.get('SLURM_JOB_ID', '?')} was not started: {error}", "error")
        code = error.code
    except BaseException as error:
        import traceback

        from agent_sandbox.launcher.say import say

        traceback.print_exc()
        say(f"job {os.environ.get('SLURM_JOB_ID', '?')} was not started, or did not end as it should: {type(error).__name__}: {error}", "error")
        code = FAILED
    sys.stderr.flush()
    os._exit(code)


def run(packed: str) -> int:
    """The guard first, as in every launch: it loads its part, and the admin's settings, while we load ours."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    job, entry = read_data(packed)
    sys.argv[0] = entry  # it was Slurm's copy of the envelope
    os.chdir("/")  # Slurm may have put us anywhere, and the agent may have moved it since
    from agent_sandbox.launcher.handover import start_guard

    guard = start_guard()
    try:
        return launch(job, guard)
    finally:
        guard.dismiss()


def launch(job: Job, guard: Guard) -> int:
    from agent_sandbox.chaperon.canary import Canary
    from agent_sandbox.launcher.launch import announce, decide, execute, open_audit

    case = open_case(job)
    audit = open_audit(case.settings, case.places, case.host)
    try:
        decision = decide(case, guard)
    except UserError as error:
        audit.write("refused", {"project": case.project.real, "why": str(error), "job": os.environ.get("SLURM_JOB_ID", "")})
        raise
    announce(case, decision)
    guard.canary = Canary()
    code = execute(case, decision, audit, guard)
    if not is_shell(interpreter(job.script)):
        die_as(code)
    return code


def is_shell(words: Sequence[bytes]) -> bool:
    """By the first line of a script; `env` is looked through."""
    named = [word.rpartition(b"/")[2] for word in b" ".join(words).split() if not word.startswith(b"-") and b"=" not in word]
    return next((name for name in named if name != b"env"), b"sh") in SHELLS


def die_as(code: int) -> None:
    """A script of Python, say, that ended with 139 died of a signal, and Slurm is to see that. A shell's last command may have: it stays a code."""
    number = code - 128
    if number in DEADLY:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:  # which cannot be set
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)


def open_case(job: Job) -> Case:
    """As for a launch from a shell, with the session in the place of the person's and the repository's settings."""
    from agent_sandbox.config.location import ADMIN_DIR, Where
    from agent_sandbox.launcher import session as sessions
    from agent_sandbox.launcher.cli import Request
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.probe import Disk, printable, read_host
    from agent_sandbox.launcher.resolve.project import find_places, find_project

    host, disk = read_host(), Disk()
    places = find_places(host, disk, ADMIN_DIR, sessions.base_directory(host.uid))
    project = find_project(job.project, host, disk)
    if project.real != job.project:  # real when it was submitted: who can write above it may have put a link there since
        raise UserError("the project is not the directory that it was: its path leads elsewhere now", where=printable(job.project))
    where = Where(
        user=host.user, uid=host.uid, home=host.home, groups=tuple(name for _, name in host.groups), host=host.name,
        project=project.real, cwd=project.real,
    )  # fmt: skip
    chosen = choose(job.export, without_the_other_jail(read_variables(job.variables)))
    return Case(
        request=Request(word="", command=(host.python, "-I", "-S", host.package + INSIDE), settings={}, project=job.project),
        host=replace(host, cwd=project.real, environment=environment_of(job, chosen, os.environ)), disk=disk, places=places, project=project,
        settings=settings_for(where, dict(job.settings)), session=sessions.new_name(),
        files=((SCRIPT, job.script),), finish=lambda policy: with_orders(policy, orders_for(job, host, chosen)), started_with=dict(os.environ),
    )  # fmt: skip


def settings_for(where: Where, session: dict[str, object]) -> Settings:
    """The session's, clamped by this node's admin; slurm.network, whoever set it, makes the network of a job stricter than the session's."""
    from agent_sandbox.config.session import load_session
    from agent_sandbox.launcher.resolve.network import MODES

    settings = load_session(where, session)
    own, jobs = settings.text("network.mode"), settings.text("slurm.network")
    if not jobs or MODES.index(jobs) >= MODES.index(own):
        return settings
    return load_session(where, {**session, "network.mode": jobs})


def environment_of(job: Job, chosen: Chosen, given: Mapping[str, str]) -> dict[str, str]:
    """The agent's choice, and over it what Slurm and the site say of this job."""
    of_the_job = {name: value for name, value in given.items() if name not in OURS}
    export = "" if (job.export or "all").lower() == "all" else job.export
    asked = {
        "SLURM_SUBMIT_DIR": job.submit_directory, "SLURM_EXPORT_ENV": export, "SLURM_GET_USER_ENV": "1" if chosen.login else "",
        "SLURM_OPEN_MODE": job.open_mode[:1],
    }  # fmt: skip
    return {**chosen.values, **of_the_job, **{name: value for name, value in asked.items() if value}}


def orders_for(job: Job, host: Host, chosen: Chosen) -> dict[str, object]:
    """What `inside.py` is to do. Slurm's own variables are read here, where the agent's cannot stand in for them."""
    files = files_of(job.files, names_of(os.environ, host.user, job.name), job.cwd)
    return {
        "cwd": job.cwd, "umask": job.umask, "input": files.input, "output": files.output, "error": files.error,
        "append": job.open_mode == "append", "arguments": job.arguments, "shell": host.shell if chosen.login else "",
        "path_given": "PATH" in chosen.values,
    }  # fmt: skip


def with_orders(policy: Policy, orders: dict[str, object]) -> Policy:
    """The variables that were let through go along as data: until the job's own files are open, stderr is the forced log, and no
    library that they name shall be loaded by then."""
    from agent_sandbox.launcher.view import Kind, Mount, View, in_order

    own = f"{policy.rooms.own}/{ORDERS}"
    content = marshal.dumps({**orders, "environment": policy.environment.values})
    file = Mount(path=own, kind=Kind.FILE, content=content, origin="agent-sandbox")
    bare = {name: value for name, value in policy.environment.values.items() if name.startswith("AGENT_SANDBOX")}
    if any(PORT_TO_COME in value for value in policy.environment.values.values()):
        bare[PORT_VARIABLE] = PORT_TO_COME  # filled in when the jail is built; the others are in a file by then
    environment = replace(policy.environment, values={**bare, "PATH": DEFAULT_PATH, "LC_CTYPE": "C.UTF-8"})
    return replace(policy, environment=environment, view=View(mounts=in_order([*policy.view.mounts, file])))


def read_variables(path: str) -> dict[str, str]:
    """Of a file that is ours alone, opened without following a link."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        hint = "the state directory must be the same on every node"
        raise UserError(f"the job's variables cannot be read: {error.strerror}", where=path, hint=hint)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if found.st_mode & 0o170077 != 0o100000 or found.st_uid != os.getuid():
            raise UserError("the file of the job's variables is not a private file of yours", where=path)
        packed = file.read(MOST_VARIABLES + 1)
    if len(packed) > MOST_VARIABLES:
        raise UserError(f"the job's variables are more than {MOST_VARIABLES} bytes", where=path)
    return unpack_variables(packed)
