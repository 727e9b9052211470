"""The name of a mode and a machine become the bytes of its ready filter. On the launch path: reads one file.

The files are made ahead by `compile`, so a launch needs neither libseccomp nor the time to compile. A filter that is
missing or cannot be loaded stops the launch: there is no jail without one unless an administrator says so.
"""

from __future__ import annotations

from agent_sandbox.config.errors import UserError

FOLDER = __file__.rpartition("/")[0] + "/filters"
INSTRUCTION = 8  # bytes of a struct sock_filter
LONGEST = 4096 * INSTRUCTION  # BPF_MAXINSNS: the kernel loads no longer program

# What uname() calls a machine → what the kernel calls its system-call table (AUDIT_ARCH_*).
ARCHITECTURES = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}


def architecture_of(machine: str) -> int:
    if machine not in ARCHITECTURES:
        known = " and ".join(sorted(ARCHITECTURES))
        raise UserError(f"there is no system-call filter for {machine} machines", hint=f"there are filters for {known}")
    return ARCHITECTURES[machine]


def path_of(mode: str, machine: str, *, nested: bool) -> str:
    return f"{FOLDER}/{mode}{'-nested' if nested else ''}.{machine}.bpf"


def ready_filter(mode: str, machine: str, nested: bool) -> bytes:
    """The program for PR_SET_SECCOMP or `bwrap --seccomp`: an array of struct sock_filter."""
    architecture_of(machine)
    path = path_of(mode, machine, nested=nested)
    try:
        with open(path, "rb") as file:
            program = file.read(LONGEST + 1)
    except OSError as error:
        raise unusable(path, "system-call filter", error.strerror) from error
    if not program or len(program) % INSTRUCTION or len(program) > LONGEST:
        raise unusable(path, "system-call filter", f"{len(program)} bytes is no length of one")
    return program


def unusable(path: str, what: str, problem: object) -> UserError:
    return UserError(f"the {what} cannot be used: {problem}", where=path, hint="install agent-sandbox again")
