"""No user namespace can be made inside: in one the agent would hold every capability again."""

from __future__ import annotations

import os

import pytest

from agent_sandbox.launcher.seccomp.numbers import number_of
from tests.escapes.inside import python
from tests.machines.jail import Jail

MACHINE = os.uname().machine
NEWUSER = 0x10000000
CLONE, CLONE3 = number_of("clone", MACHINE), number_of("clone3", MACHINE)

BY_CLONE = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
r = libc.syscall({CLONE}, ctypes.c_ulong({NEWUSER} | 17), 0, 0, 0, 0)
if r == 0: os._exit(0)
print("made" if r > 0 else "refused", flush=True)
"""
BY_CLONE3 = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
arguments = (ctypes.c_uint64 * 11)({NEWUSER}, 0, 0, 0, 17)
r = libc.syscall({CLONE3}, ctypes.byref(arguments), ctypes.c_size_t(88))
if r == 0: os._exit(0)
print("made" if r > 0 else "refused", flush=True)
"""
BY_UNSHARE = f"""
import ctypes
print("made" if ctypes.CDLL(None).unshare({NEWUSER}) == 0 else "refused")
"""
BY_A_THREAD_THAT_GOES_ON_TRYING = """
import ctypes, os
libc = ctypes.CDLL(None)
done = []
for _ in range(200):
    pid = os.fork()
    if pid == 0: os._exit(0 if libc.unshare(0x10000000) == 0 else 1)
    done.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print("made" if 0 in done else "refused")
"""


@pytest.mark.parametrize("mode", ["hpc", "strict"])
@pytest.mark.parametrize("code", [BY_CLONE, BY_CLONE3, BY_UNSHARE, BY_A_THREAD_THAT_GOES_ON_TRYING])
def test_no_way_makes_a_user_namespace(jail: Jail, code: str, mode: str) -> None:
    assert jail.outside(*python(code)).out == "made\n"
    jail.write(jail.project / ".agent-sandbox.toml", f"[seccomp]\nmode = '{mode}'\n")
    assert jail.run(*python(code)).out == "refused\n"


def test_the_limit_on_user_namespaces_cannot_be_raised(jail: Jail) -> None:
    script = "echo 1000 > /proc/sys/user/max_user_namespaces; unshare -U true && echo MADE; echo ran"
    assert jail.run("sh", "-c", script).out == "ran\n"


def test_the_limit_is_the_jails_own(jail: Jail) -> None:
    before = open("/proc/sys/user/max_user_namespaces").read()
    assert jail.run("true").code == 0
    assert open("/proc/sys/user/max_user_namespaces").read() == before
    assert jail.outside("unshare", "-U", "true").code == 0


@pytest.mark.parametrize("kind", ["--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup"])
def test_no_other_namespace_can_be_made(jail: Jail, kind: str) -> None:
    assert jail.outside("unshare", "-U", kind, "true").code == 0
    inside = jail.run("unshare", kind, "true")
    assert inside.code == 1
    assert inside.err.startswith("unshare:")


def test_mounts_made_outside_do_not_appear_and_none_can_be_made_inside(jail: Jail) -> None:
    inside = jail.run(
        "sh",
        "-c",
        "mount -t tmpfs none /tmp; mount --bind /etc /tmp; umount /tmp; umount -l /proc; echo ran; grep -c shared: /proc/self/mountinfo",
    )
    assert inside.out == "ran\n0\n"


def test_a_jail_in_a_jail_is_refused_in_words(jail: Jail) -> None:
    inside = jail.run("sh", "-c", "agent-sandbox true")
    assert inside.code == 125
    assert "already inside" in inside.err
