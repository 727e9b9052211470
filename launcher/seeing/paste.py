"""A decision becomes a command that can be pasted into bash and builds the same jail. Reads the limits that hold.

Our stage (namespaces, mounts below what is writable, limits, open files) is a small script in front of the backend.
What a shell cannot do is said in a comment, so that what is pasted is not silently weaker.
"""

from __future__ import annotations

import base64
import resource
import signal

from agent_sandbox.launcher.probe import printable
from agent_sandbox.launcher.seccomp.filters import path_of
from agent_sandbox.launcher.seeing.quoting import quote, quote_inside, reference
from agent_sandbox.launcher.stage import RLIMITS
from agent_sandbox.launcher.view import Carving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.launch import Case, Decision
    from agent_sandbox.launcher.plan import Data

CLEAN = "env -i PATH=/usr/bin:/bin"
UNSHARE = "unshare --user --map-root-user --mount --propagation private"
# How many words follow each option of the backend; `--perms` belongs to the option after it.
WORDS_AFTER = {
    "--setenv": 2, "--bind": 2, "--ro-bind": 2, "--bind-try": 2, "--ro-bind-try": 2,
    "--dev-bind": 2, "--symlink": 2, "--file": 2, "--ro-bind-data": 2,
    "--tmpfs": 1, "--dev": 1, "--proc": 1, "--remount-ro": 1, "--chdir": 1, "--cap-drop": 1, "--perms": 3,
    "--seccomp": 1, "--add-seccomp-fd": 1, "--json-status-fd": 1,
}  # fmt: skip
PRLIMIT = {
    "processes": "nproc", "memory": "as", "cpu_time": "cpu", "file_size": "fsize", "open_files": "nofile",
    "core_size": "core",
}  # fmt: skip
# An open file that is inherited reaches around the jail.
CLOSE = 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; ((fd < 3 || fd >= FIRST && fd <= LAST)) || eval "exec $fd>&-"; done'
NOTES = (
    "This builds the jail without the launcher: no audit line, no session, nobody ends it if your shell is killed;",
    "values of variables show in the process list; mounts are made by path, not on files that were checked before;",
    "a file system mounted below a read-only part of the project stays as it is.",
)


def paste(case: Case, decision: Decision) -> str:
    """Comments, the command over several lines, then the files that it reads."""
    head = [_enter(decision), f"bash -c {quote(_script(case, decision))} agent-sandbox"]
    options = [f"  {group}" for group in _options(case, decision)]
    command = ["  -- " + " ".join(map(quote, decision.plan.command))]
    files = [_file(one, case, decision) for one in decision.plan.data]
    opened = [f"  {' '.join(opening for opening, _ in files)}"]
    lines = [*head, quote(decision.plan.program), *options, *command, *opened]
    return "\n".join(_comments(case, decision)) + "\n" + " \\\n".join(lines) + "\n" + "".join(text for _, text in files)


def _comments(case: Case, decision: Decision) -> Iterator[str]:
    yield from (f"# {note}" for note in NOTES)
    if case.settings.text("slurm.enabled") != "off":
        yield "# NOT in here, as it lives with a session: the chaperon. Slurm is out of reach."
    if decision.plan.stage.scope_abstract_sockets:
        yield "# NOT in here, as no shell can do it: the Landlock scope that cuts off the host's abstract unix sockets."
    found = [clamp.line() for clamp in case.settings.clamps]
    found += [gap.line() for gap in (*decision.gaps, *decision.policy.weaknesses)]
    yield from (f"# {printable(line)}" for line in found)


def _enter(decision: Decision) -> str:
    seconds = decision.plan.stage.limits.wall_time
    limit = f" timeout --foreground --signal=KILL {seconds}" if seconds is not None else ""
    return f"/usr/bin/{CLEAN}{limit} {UNSHARE}"


def _script(case: Case, decision: Decision) -> str:
    """What stage.py does, in a shell: as root of a user namespace of its own, which bwrap leaves again."""
    stage = decision.plan.stage
    lines = ["", "set -e"]
    if stage.most_user_namespaces is not None:
        lines.append(f"echo {stage.most_user_namespaces} > /proc/sys/user/max_user_namespaces")
    lines += _carves(case, decision)
    lines.append(CLOSE.replace("FIRST", str(decision.plan.data[0].fd)).replace("LAST", str(decision.plan.data[-1].fd)))
    names = " ".join(signal.Signals(number).name.removeprefix("SIG") for number in stage.ignored_signals)
    lines.append(f'trap "" {names}')
    lines.append(f'exec {CLEAN}{"".join(_limits(decision))} "$@"')
    return "\n".join([*lines, ""])


def _carves(case: Case, decision: Decision) -> Iterator[str]:
    """All of them put in place from the top down, then made read-only: a copy of a read-only mount is read-only too."""
    carves = [(carve, quote_inside(carve.path)) for carve in decision.plan.stage.carves]
    absent = [path for carve, path in carves if carve.carving == Carving.HIDE and not case.disk.kind(carve.path)]
    if absent:  # directories of our own, which must not be made from inside
        yield f"mkdir -p -m 700 {' '.join(absent)}"
    for carve, path in carves:
        if carve.carving != Carving.HIDE:
            yield f"mount --rbind {path} {path}"
        elif case.disk.kind(carve.path) in ("directory", ""):
            yield f"mount -t tmpfs -o mode=0000,nosuid,nodev none {path}"
        else:
            yield f"mount --bind /dev/null {path}"
    for carve, path in carves:
        if carve.carving in (Carving.READ, Carving.HIDE):
            yield f"mount -o remount,bind,ro {path}"


def _limits(decision: Decision) -> Iterator[str]:
    limits = {name: getattr(decision.plan.stage.limits, name) for name in RLIMITS}
    given = [f"--{PRLIMIT[name]}={_most(name, wanted)}" for name, wanted in limits.items() if wanted is not None]
    if given:
        yield f" prlimit {' '.join(given)}"


def _most(name: str, wanted: int) -> int:
    """As stage.set_limits: nobody can go above what holds already."""
    hard = resource.getrlimit(RLIMITS[name])[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _options(case: Case, decision: Decision) -> Iterator[str]:
    """One group a line, the plain flags together."""
    groups = list(_groups(decision.plan.options))
    flags = [group[0] for group in groups if len(group) == 1]
    # The user's own number inside: the stage was root of its namespace.
    yield " ".join([*flags, "--uid", str(case.host.uid), "--gid", str(case.host.gid)])
    for group in groups:
        if group[0] == "--setenv":
            yield f"--setenv {quote(group[1])} {_value(group[1], group[2], case, decision)}"
        elif len(group) > 1 and group[0] != "--json-status-fd":
            yield " ".join(map(quote, group))


def _groups(options: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    at = 0
    while at < len(options):
        size = 1 + WORDS_AFTER.get(options[at], 0)
        if options[at] == "--perms":
            size += WORDS_AFTER[options[at + 2]] - 1
        yield options[at : at + size]
        at += size


def _value(name: str, value: str, case: Case, decision: Decision) -> str:
    return quote(value) if is_ours(name, value, case, decision) else reference(name)


def is_ours(name: str, value: str, case: Case, decision: Decision) -> bool:
    """Did we or the settings write this value? One that the caller's variable holds unchanged is not shown."""
    return name in decision.policy.environment.renamed or case.host.environment.get(name) != value


def _file(one: Data, case: Case, decision: Decision) -> tuple[str, str]:
    """How the file is opened on its number, and the text that follows the command for that."""
    ready = _ready_filter(one, case, decision)
    if ready:
        return f"{one.fd}<{quote(ready)}", ""
    end = f"END-{one.fd}"
    text = one.content.decode("utf-8", "replace")
    if text.encode() == one.content and _is_lines(text) and end not in text.splitlines():
        return f"{one.fd}<<'{end}'", f"{text}{end}\n"
    return f"{one.fd}< <(base64 -d <<<{base64.b64encode(one.content).decode()})", ""


def _is_lines(text: str) -> bool:
    return text.endswith("\n") and all(char.isprintable() or char in "\n\t" for char in text)


def _ready_filter(one: Data, case: Case, decision: Decision) -> str:
    """The shipped file with this content, if it is a filter that has one."""
    syscalls = decision.policy.syscalls
    path = path_of(syscalls.mode, case.host.machine, nested=syscalls.nested)
    return path if one.label == "seccomp" and case.disk.read(path) == one.content else ""
