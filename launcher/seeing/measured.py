"""A jail started as any other: what is seen in it becomes what doctor says is enforced. Starts a jail."""

from __future__ import annotations

import os
import tempfile

from agent_sandbox.config.errors import UserError
from agent_sandbox.config.record import record, replace
from agent_sandbox.launcher.__main__ import launch_guarded
from agent_sandbox.launcher.launch import decide, open_case
from agent_sandbox.launcher.resolve.hidden import resolve_hidden
from agent_sandbox.launcher.seeing.child import in_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_sandbox.launcher.cli import Request
    from agent_sandbox.launcher.launch import Case
    from agent_sandbox.launcher.policy import Policy

LONGEST = 30  # seconds
CANARY = "DOCTOR_CANARY_TOKEN"
NAMESPACES = ("user", "mnt", "pid", "ipc", "uts")
PROBE = """
while read -r name value rest; do
  case $name in CapEff:|CapBnd:|NoNewPrivs:|Seccomp:) echo "$name $value";; esac
done < /proc/self/status
for one in user mnt pid ipc uts net; do echo "$one: $(readlink /proc/self/ns/$one)"; done
while read -r id parent device root at options rest; do
  [ "$at" != /usr ] || echo "usr: ${options%%,*}"
done < /proc/self/mountinfo
for number in /proc/self/fd/*; do
  number=${number##*/}; [ "$number" -le 2 ] || [ ! -e "/proc/self/fd/$number" ] || echo "file: $number"
done
shown=0
for path; do [ ! -r "$path" ] || [ -c "$path" ] || shown=$((shown + 1)); done
echo "shown: $shown"
echo "canary: ${DOCTOR_CANARY_TOKEN-gone}"
"""


@record
class Measured:
    name: str
    holds: bool
    found: str


def measure(request: Request) -> tuple[Measured, ...]:
    """In an empty directory; where an admin does not take that for a project, in the one that was asked for."""
    os.environ[CANARY] = "seen"  # must not get in
    with tempfile.TemporaryDirectory(prefix="agent-sandbox-doctor-", dir="/tmp") as empty:
        first = _measure_in(empty, request)
    return first if first[0].holds else _measure_in(request.project, request)


def _measure_in(project: str, request: Request) -> tuple[Measured, ...]:
    try:
        asked = replace(
            request, word="", project=project, command=("/bin/sh", "-c", PROBE, "doctor"), dry_run=False,
            settings={**request.settings, "sandbox.quiet": True, "limits.wall_time": LONGEST},
        )  # fmt: skip
        case = open_case(asked)
        hidden = _readable_hidden(case)
        asked = replace(asked, command=(*asked.command, *hidden))
        policy = decide(replace(case, request=asked)).policy
    except UserError as error:
        return (Measured(name="jail", holds=False, found=error.problem),)
    ended = in_child(lambda: _launch(asked))
    if ended.code:
        return (Measured(name="jail", holds=False, found=ended.err.strip() or f"it ended with status {ended.code}"),)
    seen = dict(line.split(": ", 1) for line in ended.out.splitlines() if ": " in line)
    started = Measured(name="jail", holds=True, found="a command ran in it; what follows was seen there")
    return (started, *_properties(seen, policy, len(hidden)))


def _readable_hidden(case: Case) -> list[str]:
    """What the jail must not show and this user can read: the control of the measurement."""
    return [one.path for one in resolve_hidden(case.settings, case.places, case.disk) if os.access(one.path, os.R_OK)]


def _launch(request: Request) -> int:
    """With an open file that must not get in."""
    os.set_inheritable(os.open("/", os.O_RDONLY), True)
    return launch_guarded(request)


def _properties(seen: dict[str, str], policy: Policy, hidden: int) -> Iterator[Measured]:
    def property(name: str, holds: bool, words: str, otherwise: str) -> Measured:
        return Measured(name=name, holds=holds, found=words if holds else otherwise)

    capabilities = {seen.get("CapEff"), seen.get("CapBnd")}
    yield property("capabilities", capabilities == {"0" * 16}, "none", f"some are left: {seen.get('CapBnd')}")
    yield property("no_new_privs", seen.get("NoNewPrivs") == "1", "set", "not set")
    mode = policy.syscalls.mode
    off = mode == "off"
    loaded = "no filter: seccomp.mode is off" if off else f"filter {mode}"
    yield property("syscalls", seen.get("Seccomp") == ("0" if off else "2"), loaded, "no filter")
    wanted = [*NAMESPACES, *(["net"] if policy.network.mode == "isolated" else [])]
    shared = [name for name in wanted if seen.get(name, "") in ("", os.readlink(f"/proc/self/ns/{name}"))]
    yield property("namespaces", not shared, f"own: {' '.join(wanted)}", f"shared with the host: {' '.join(shared)}")
    yield property("fs-write", seen.get("usr") == "ro", "/usr is read-only", "/usr is not read-only")
    shown = seen.get("shown")
    gone = f"{hidden} paths that you can read outside cannot be read"
    yield property("hidden", shown == "0", gone, f"{shown} of {hidden} paths can be read")
    kept = CANARY not in dict(policy.environment.removed)  # somebody allows such names
    found = "lets tokens in, as the settings say" if kept else "a token did not get in"
    yield property("environment", kept or seen.get("canary") == "gone", found, "a token got in")
    yield property("open files", "file" not in seen, "none inherited", "one was inherited")
