"""Where Slurm's own programs are on this machine: the ones that the chaperon runs, and every one that a jail would see. Reads the disk."""

from __future__ import annotations

import os
import stat

from agent_sandbox.config.errors import UserError, plain
from agent_sandbox.launcher.policy import Access
from agent_sandbox.launcher.probe import Found
from agent_sandbox.launcher.view import way_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

NAMES = (
    "sbatch", "srun", "salloc", "squeue", "scancel", "scontrol", "sacct", "sacctmgr", "sinfo", "sstat", "sprio", "sshare", "sdiag", "sreport",
    "strigger", "sattach", "sbcast", "scrontab", "scrun",
)  # fmt: skip
TELLING = ("sbatch", "srun", "squeue")  # a directory with one of them is one of Slurm's
USUAL_PLACES = (
    "/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/opt/slurm/current/bin", "/opt/slurm/default/bin", "/usr/local/slurm/bin",
    "/cm/shared/apps/slurm/current/bin",
)  # fmt: skip
MOST_MODULES, LONGEST_MODULE = 16, 1 << 16
QUOTES = "\"'()[]{},;$ \t\n"


def find_programs(policy: Policy, case: Case) -> str:
    """The directory of the real sbatch: the admin's word, else along the caller's PATH – but never one that an agent can change."""
    prefix = case.settings.text("slurm.prefix")
    for place in (f"{prefix}/bin",) if prefix else _places(case):
        path = os.path.normpath(f"{place}/sbatch")
        if place.startswith("/") and _follow(path, case).kind == "file" and is_out_of_reach(path, policy, case, is_named=bool(prefix)):
            return os.path.dirname(path)
    return ""


def _follow(path: str, case: Case) -> Found:
    """A link to itself, which an agent may have left, is nothing."""
    try:
        return case.disk.follow(path)
    except UserError:
        return Found(real=path, links=(), kind="")


def _entries(directory: str, case: Case) -> tuple[str, ...]:
    try:
        return case.disk.entries(directory)
    except UserError:  # too many
        return ()


def is_out_of_reach(path: str, policy: Policy, case: Case, *, is_named: bool = False) -> bool:
    """Of this jail's agent, and of those in other projects: neither the file nor a link on the way to it can be changed by them. It is opened
    by this path, and what is beside it too, whenever it is needed. `is_named`: an admin named it, and answers for the others."""
    found = _follow(path, case)
    places = (found.real, *[link for link, _ in found.links])
    return not any([_is_writable(place, policy) or not (is_named or _is_of_others(place, case)) for place in places])


def settings_file(policy: Policy, case: Case) -> str:
    """Slurm's own, where it is not in its usual place: it names libraries that Slurm's programs load, and they run outside."""
    named, given = case.settings.text("slurm.conf"), started_with(case).get("SLURM_CONF", "")
    if named or not given or (given.startswith("/") and is_out_of_reach(given, policy, case)):
        return named or given
    hint = "unset SLURM_CONF; or slurm.conf, which an admin sets; or slurm.enabled = off"
    raise UserError("SLURM_CONF names a file that an agent could change, and Slurm's programs would obey it outside", where=plain(given), hint=hint)


def _is_of_others(path: str, case: Case) -> bool:
    """What a user may change, an agent of theirs may have been granted somewhere. Root may change everything, and knows it."""
    uid, disk = case.host.uid, case.disk
    for place in way_to(path) if uid else ():
        seen = disk.stat(place)
        if seen and (seen.st_uid == uid or (disk.writable(place) and not seen.st_mode & stat.S_ISVTX)):
            return False
    return True


def _is_writable(path: str, policy: Policy) -> bool:
    mount = policy.view.covering(path)
    return mount is not None and mount.access == Access.WRITE


def started_with(case: Case) -> Mapping[str, str]:
    """Never the variables that an agent chose for its job: Slurm's settings name libraries that its programs load, outside."""
    return case.host.environment if case.started_with is None else case.started_with


def _places(case: Case) -> tuple[str, ...]:
    return (*started_with(case).get("PATH", "").split(":"), *USUAL_PLACES)


def real_programs(policy: Policy, case: Case, programs: str) -> list[str]:
    """Every one that the jail shows, by its real path: where we found ours, on PATH, in the usual places, in what a module would add.

    But for what it can write: there an agent can put any program, and could put a link while the jail is being built."""
    disk, seen = case.disk, {}
    for place in dict.fromkeys((programs, *_places(case), *case.host.environment.get("PATH", "").split(":"), *_of_modules(case))):
        home = _follow(place, case).real if place.startswith("/") else ""
        if home and home not in seen and not _is_writable(home, policy) and any(disk.kind(f"{home}/{name}") for name in TELLING):
            seen[home] = [_follow(f"{home}/{name}", case) for name in NAMES]
    found = dict.fromkeys(one.real for all_there in seen.values() for one in all_there if one.kind == "file")
    return [path for path in found if policy.view.shows(path) and not _is_writable(path, policy)]


def _of_modules(case: Case) -> Iterator[str]:
    """Directories that a module named slurm speaks of: `module load slurm` inside would put them first."""
    for place in case.host.environment.get("MODULEPATH", "").split(":"):
        if not place.startswith("/") or case.disk.kind(f"{place}/slurm") != "directory":
            continue
        for name in _entries(f"{place}/slurm", case)[:MOST_MODULES]:
            text = (case.disk.read(f"{place}/slurm/{name}", LONGEST_MODULE) or b"").decode("utf-8", "replace")
            yield from _directories(text)


def _directories(text: str) -> list[str]:
    """Every word of the file that is an absolute path, and `bin` below it: a modulefile may put the two together."""
    words = text.translate(dict.fromkeys(map(ord, QUOTES), " ")).split()
    paths = [os.path.normpath(word) for word in words if word.startswith("/") and len(word) > 1]
    return [place for path in paths[:200] for place in (path, f"{path}/bin")]
