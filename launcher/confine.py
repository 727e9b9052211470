"""Our own process becomes a Landlock jail: a room, a domain, filters – and beside the command a supervisor, which is this process.

Two domains, one in the other. The outer one holds what the supervisor must obey as well, since it acts for the jail: no signal
and no abstract socket beyond it, and the rules on TCP. The inner one, of the command alone, has the rules on files. The command is
a fork of this process: nothing is loaded twice, and it hands its filter's listener over by number.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys

from agent_sandbox.config.record import replace
from agent_sandbox.launcher import inner, rights, syscalls
from agent_sandbox.launcher.own import PORT_TO_COME
from agent_sandbox.launcher.processes import end_children, reap
from agent_sandbox.launcher.stage import StageError, set_limits, set_signals
from agent_sandbox.launcher.status import tell
from agent_sandbox.launcher.supervisor import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from agent_sandbox.launcher.plan import Domain, PathRule, Plan
    from agent_sandbox.launcher.supervisor.supervisor import Supervisor

STANDARD_FILES = (0, 1, 2)
SO_TYPE = 3
CONNECTED_TYPES = (1, 5)  # SOCK_STREAM, SOCK_SEQPACKET
FAILED = 125
COLLECT = 5000  # milliseconds after which orphans are looked for


def become(plan: Plan, status: int, environment: dict[str, str], ready: Callable[[], object], hatch: int = -1) -> None:
    """Never returns: ends with the command's exit code."""
    assert plan.domain is not None
    domain = open_the_way_out(plan.domain, hatch)
    plan = replace(plan, domain=domain)
    refuse_datagrams()
    ruleset = make_ruleset(domain)
    enter_outer_domain(domain)
    report, listener = os.pipe()
    mind, go = os.pipe()
    command = os.fork()
    if command == 0:
        _be_command(plan, ruleset, status, (report, go), (listener, mind), ready)
    for handle in (ruleset, listener, mind):
        os.close(handle)
    os._exit(_stay(command, domain, status, report, go))


def open_the_way_out(domain: Domain, hatch: int) -> Domain:
    """The proxy's port, which is any that is free: known from here on to the rules, to the supervisor and to the variables."""
    if not domain.proxied or hatch < 0:
        return domain
    from agent_sandbox.launcher import listener

    try:
        made, port = listener.listen(0)
        heard, told = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        listener.hand_out(hatch, made, heard)
        for handle in (made, heard):
            os.close(handle)
    except OSError as error:
        raise StageError(f"the proxy's port cannot be opened: {error.strerror}")
    return replace(
        domain, allowed=replace(domain.allowed, hosts=((listener.HERE, port),), told=told),
        environment={name: value.replace(PORT_TO_COME, str(port)) for name, value in domain.environment.items()},
    )  # fmt: skip


def refuse_datagrams() -> None:
    """Through a datagram socket that the caller left us, every path and address could be sent to, and nobody would look."""
    for number in STANDARD_FILES:
        try:
            kind = int.from_bytes(kernel.socket_option(number, SO_TYPE, 4), sys.byteorder)
        except OSError:  # closed, or no socket
            continue
        if kind not in CONNECTED_TYPES:
            name = ("input", "output", "error output")[number]
            raise StageError(f"the standard {name} is a datagram socket, and leads out of the jail: give a pipe or a file instead")


def make_ruleset(domain: Domain) -> int:
    """Each path is opened meeting no link, so that what was resolved is what is granted."""
    try:
        ruleset = syscalls.landlock_ruleset(domain.handled_files, 0, domain.scoped)
        top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for rule in domain.rules:
            _add_rule(ruleset, rule, top)
        for number in STANDARD_FILES:
            _add_standard_file(ruleset, number, domain.handled_files)
        os.close(top)
        return ruleset
    except OSError as error:
        raise StageError(f"the Landlock rules cannot be made: {error.strerror}")


def _add_rule(ruleset: int, rule: PathRule, top: int) -> None:
    try:
        found = syscalls.open_beneath(top, rule.path[1:] or ".", os.O_PATH)
    except OSError as error:
        if rule.optional and error.errno in (errno.ENOENT, errno.ELOOP, errno.EACCES):
            return
        raise StageError(f"{rule.path} changed while the jail was being built ({error.strerror}): start again")
    if rule.without:
        _add_around(ruleset, rule, found)
        return
    is_directory = os.fstat(found).st_mode & 0o170000 == 0o040000
    wanted = rule.rights if is_directory else rule.rights & rights.OF_FILES
    if wanted:
        syscalls.landlock_allow_path(ruleset, found, wanted)
    os.close(found)


def _add_around(ruleset: int, rule: PathRule, directory: int) -> None:
    """Rights add up along a path: to leave something out, its neighbours get them one by one. What the directories list stays."""
    syscalls.landlock_allow_path(ruleset, directory, rule.rights & rights.READ_DIR)
    listed = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    with os.scandir(listed) as entries:
        shown = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if not entry.is_symlink()]
    os.close(listed)
    for name, is_directory in shown:
        path = f"{rule.path.rstrip('/')}/{name}"
        if path in rule.without:
            continue
        below = tuple(one for one in rule.without if one.startswith(f"{path}/"))
        found = _open_entry(name, directory)
        if found < 0:
            continue
        if below:
            _add_around(ruleset, replace(rule, path=path, without=below), found)
            continue
        syscalls.landlock_allow_path(ruleset, found, rule.rights if is_directory else rule.rights & rights.OF_FILES)
        os.close(found)
    os.close(directory)


def _open_entry(name: str, directory: int) -> int:
    """-1 = it is gone, or a link by now."""
    try:
        return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return -1


def _add_standard_file(ruleset: int, number: int, handled: int) -> None:
    """What the caller gave us open may be opened again by the same name (/dev/stdout, the terminal), as far as it is open."""
    import fcntl

    mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
    wanted = {os.O_RDONLY: rights.READ_FILE, os.O_WRONLY: rights.WRITE_FILE}.get(mode, rights.READ_FILE | rights.WRITE_FILE)
    is_terminal = os.isatty(number)
    if os.fstat(number).st_mode & 0o170000 == 0o040000:
        return
    try:
        syscalls.landlock_allow_path(ruleset, number, (wanted | rights.IOCTL_DEV * is_terminal) & handled)
    except OSError:  # a pipe or a socket: those need no rule
        pass


def enter_outer_domain(domain: Domain) -> None:
    try:
        syscalls.drop_capabilities()
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        if domain.handled_network or domain.scoped:
            outer = syscalls.landlock_ruleset(domain.handled_files & rights.REFER, domain.handled_network, domain.scoped)
            _allow_moves(outer, domain)
            for _, port in domain.allowed.hosts or ():
                if domain.handled_network:
                    syscalls.landlock_allow_port(outer, port, rights.CONNECT_TCP)
            syscalls.landlock_restrict(outer)
            os.close(outer)
    except OSError as error:
        raise StageError(f"this kernel does not take the Landlock rules: {error.strerror}")


def _allow_moves(outer: int, domain: Domain) -> None:
    """A domain that says nothing of moving files from directory to directory forbids it, as soon as another one is about files."""
    if domain.handled_files & rights.REFER:
        top = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        syscalls.landlock_allow_path(outer, top, rights.REFER)
        os.close(top)


def _be_command(
    plan: Plan, ruleset: int, status: int, closed: tuple[int, int], pipes: tuple[int, int], ready: Callable[[], object],
) -> NoReturn:  # fmt: skip
    """The fork that becomes the command. Whatever goes wrong is told, and nothing of it runs."""
    domain = plan.domain
    assert domain is not None
    try:
        for handle in closed:
            os.close(handle)
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)  # all of ours killed at one moment: nobody else would end it
        os.chdir(domain.cwd)
        set_limits(plan.stage.limits)
        syscalls.landlock_restrict(ruleset, log_denials=domain.log_denials)
        _load_filters(domain, *pipes)
        ready()
        set_signals(())
        syscalls.close_from(3)
        inner.become(plan.command, domain.environment)
    except OSError as error:
        tell(status, stage_error=f"the jail cannot be entered: {error.strerror}")
    except StageError as error:
        tell(status, stage_error=str(error))
    finally:
        os._exit(FAILED)


def _load_filters(domain: Domain, listener: int, mind: int) -> None:
    """The supervisor takes the listener out of this process, and this process gives it up: a dead supervisor must not leave it open."""
    *plain, last = domain.filters
    for program in plain:
        syscalls.seccomp_load(program, listener=False)
    held = syscalls.seccomp_load(last, listener=domain.supervised)
    if domain.supervised:
        os.write(listener, held.to_bytes(4))
        if not os.read(mind, 1):
            raise StageError("the supervisor could not be started")
        os.close(held)


def _stay(command: int, domain: Domain, status: int, report: int, go: int) -> int:
    """The supervisor's life: out of the caller's process group, answering until the command ends, or the guard."""
    guard = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: _leave_without(guard, domain))
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    _leave_without(guard, domain)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGTERM}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            pass
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # now that a key pressed while we started cannot end us
    os.setsid()
    supervisor = _take_listener(command, domain, status, report) if domain.supervised else None
    os.write(go, b".")
    os.close(go)
    tell(status, child_pid=os.getpid())
    code = _until_it_ends(command, supervisor)
    tell(status, exit_code=code)
    _end_the_rest(domain)
    return code


def _take_listener(command: int, domain: Domain, status: int, report: int) -> Supervisor | None:
    from agent_sandbox.launcher.supervisor.supervisor import Supervisor

    number = os.read(report, 4)
    if len(number) < 4:  # the command's process has said why
        os._exit(FAILED)
    process = kernel.pidfd_open(command)
    try:
        listener = kernel.pidfd_getfd(process, int.from_bytes(number))
    except OSError as error:
        tell(status, stage_error=f"the supervisor cannot look into the jail's processes: {error.strerror}")
        os._exit(FAILED)
    os.close(process)
    return Supervisor(listener, domain.machine, domain.allowed)


def _until_it_ends(command: int, supervisor: Supervisor | None) -> int:
    """Its exit code. Orphans of the jail come to us, and are collected as well."""
    process = kernel.pidfd_open(command)
    poll = select.poll()
    poll.register(process, select.POLLIN)
    if supervisor:
        poll.register(supervisor.fileno(), select.POLLIN)
    while True:
        for number, events in poll.poll(COLLECT):
            if number != process and supervisor:
                supervisor.answer() if events & select.POLLIN else poll.unregister(number)
        code = reap(command)
        if code is not None:
            return code


def _leave_without(guard: int, domain: Domain) -> None:
    """Once the guard is gone nobody but us is left to end the jail. A batch system sends SIGTERM to us as well, for the command to hear."""
    if os.getppid() != guard:
        _end_the_rest(domain)
        os._exit(FAILED)


def _end_the_rest(domain: Domain) -> None:
    """All at once, so that none can start another meanwhile – but only where Landlock keeps our signals inside the domain: else to
    kill `all` would be to kill everything of this user's. That a signal to our parent is refused does not tell: it may be root's."""
    if domain.scoped & rights.SCOPE_SIGNALS:
        try:
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass
    end_children()
