"""System calls that reach around the jail, made in a real one: refused inside, and working outside."""

from __future__ import annotations

import errno
import os
import pty
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from agent_sandbox.launcher.seccomp.numbers import number_of
from tests.escapes.backends import only
from tests.escapes.inside import call, python
from tests.machines import users
from tests.machines.copies import make_copy
from tests.machines.jail import Jail
from tests.machines.needs import missing, need_root

MACHINE = os.uname().machine
x86_only = pytest.mark.skipif(MACHINE != "x86_64", reason="other machines have neither int 0x80 nor x32")
SESSION_KEYRING = -3


def number(name: str) -> int:
    found = number_of(name, MACHINE)
    assert found is not None
    return found


@x86_only
@pytest.mark.parametrize("calls", [("int80", "20"), ("int80", "425", "1", "0"), ("native", str(0x40000000 + 39))])
def test_calls_of_another_architecture_are_refused(jail: Jail, attempt: str, calls: tuple[str, ...]) -> None:
    """i386 getpid, i386 io_uring_setup, x32 getpid: numbers that mean other calls to the filter."""
    inside = jail.run(attempt, "-", *calls)
    assert (inside.code, inside.out) == (0, f"-1 {errno.ENOSYS}\n")
    if calls == ("int80", "20"):
        assert int(jail.outside(attempt, "-", *calls).out.split()[0]) > 0


REFUSED = [
    ("io_uring_setup", (1, 0), errno.ENOSYS),
    ("keyctl", (0, SESSION_KEYRING, 0), errno.EPERM),
    ("mount", (0, 0, 0, 0, 0), errno.EPERM),
    ("open_tree", (-100, 0, 1), errno.EPERM),
    ("bpf", (0, 0, 0), errno.EPERM),
    ("userfaultfd", (0,), errno.EPERM),
    ("open_by_handle_at", (0, 0, 0), errno.EPERM),
    ("personality", (8,), errno.EPERM),
    ("personality", (0xDEADBEEF_00000008,), errno.EPERM),
]


@pytest.mark.parametrize(("name", "arguments", "error"), REFUSED)
def test_the_call_is_refused(jail: Jail, name: str, arguments: tuple[int, ...], error: int) -> None:
    assert jail.run(*call(number(name), *arguments)).out == f"-1 {error}\n"


def test_a_key_of_the_users_session_cannot_be_read(jail: Jail) -> None:
    """In one process: put a key into the session keyring, and start the jail from it."""
    code = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
keyctl, add_key = int(sys.argv[1]), int(sys.argv[2])
libc.syscall(keyctl, 1, None)
key = libc.syscall(add_key, b"user", b"secret", b"hunter2", ctypes.c_size_t(7), -3)
reader = ("import ctypes; libc = ctypes.CDLL(None); libc.syscall.restype = ctypes.c_long; b = ctypes.create_string_buffer(20); "
          f"n = libc.syscall({keyctl}, 11, {key}, b, ctypes.c_size_t(20), 0); print(n, b.value.decode(), flush=True)")
os.execv(sys.argv[3], [*sys.argv[3:], "/usr/bin/python3", "-I", "-c", reader])
"""
    numbers = (str(number("keyctl")), str(number("add_key")))
    outside = jail.outside(*python(code, *numbers, "/usr/bin/env"))
    if outside.out != "7 hunter2\n":
        missing(f"this kernel gives a user no keyring ({outside.out.strip()})")
    inside = jail.outside(*python(code, *numbers, str(jail.program), "--quiet", "--"))
    assert inside.out == "-1 \n"


@pytest.mark.parametrize(
    ("family", "kind", "protocol", "error"),
    [
        ("AF_VSOCK", "SOCK_STREAM", 0, errno.EAFNOSUPPORT),
        ("AF_ALG", "SOCK_SEQPACKET", 0, errno.EAFNOSUPPORT),
        ("AF_PACKET", "SOCK_RAW", 0, errno.EAFNOSUPPORT),
        ("AF_NETLINK", "SOCK_RAW", 4, errno.EPROTONOSUPPORT),  # NETLINK_SOCK_DIAG: every socket of the host
        ("AF_NETLINK", "SOCK_RAW", 9, errno.EPROTONOSUPPORT),  # NETLINK_AUDIT
        ("AF_NETLINK", "SOCK_RAW", 15, errno.EPROTONOSUPPORT),  # NETLINK_KOBJECT_UEVENT
        ("AF_INET", "SOCK_RAW", 1, errno.EPERM),
    ],
)
@pytest.mark.parametrize("network", ["isolated", "open"])
def test_a_socket_of_this_kind_cannot_be_made(
    jail: Jail, backend: str, family: str, kind: str, protocol: int, error: int, network: str
) -> None:
    """Isolated without a network namespace, there is no family but AF_UNIX at all."""
    if (backend, network) == ("landlock", "isolated"):
        error = errno.EAFNOSUPPORT
    code = (
        f"import socket as s\ntry:\n    s.socket(s.{family}, s.{kind}, {protocol}); print('made')\nexcept OSError as e:\n    print(e.errno)"
    )
    assert jail.run(*python(code), options=["--quiet", "--network", network]).out == f"{error}\n"


@pytest.mark.parametrize(("family", "kind"), [("AF_UNIX", "SOCK_STREAM"), ("AF_INET", "SOCK_STREAM"), ("AF_NETLINK", "SOCK_RAW")])
def test_control_ordinary_sockets_can_be_made(jail: Jail, family: str, kind: str) -> None:
    code = f"import socket as s; s.socket(s.{family}, s.{kind}, 0); print('made')"
    assert jail.run(*python(code), options=["--quiet", "--network", "open"]).out == "made\n"


@pytest.mark.parametrize(
    "device",
    ["/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/mem", "/dev/kmsg", "/dev/loop-control", "/dev/vsock", "/dev/vda", "/dev/uinput"],
)
def test_the_device_is_not_there(jail: Jail, backend: str, device: str) -> None:
    """On Landlock it may be there, and cannot be opened."""
    look = f"for how in '<' '>' '<>'; do (eval : $how{device}) && echo OPENED; done" if backend == "landlock" else f"ls -l {device}"
    inside = jail.run("sh", "-c", f"{look}; test -c /dev/null && : <>/dev/null && echo ran")
    assert inside.out == "ran\n"


def test_a_device_is_there_if_it_is_granted_and_not_denied(jail: Jail) -> None:
    """Nodes of our own, each another /dev/null: which of the names above a machine has is chance."""
    need_root()
    plain, denied = (f"/dev/{name}-agent-sandbox-test-{os.getpid()}" for name in ("x", "vd"))
    look = ("sh", "-c", f"for node in {plain} {denied}; do (: < $node) && echo $node; done; echo ran")
    try:
        for path in (plain, denied):
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        assert jail.outside(*look).out == f"{plain}\n{denied}\nran\n"
        assert jail.run(*look).out == "ran\n"
        jail.configure(f"[filesystem]\ndevices = ['{plain}', '{denied}', '/dev/*-agent-sandbox-test-*']\n")
        assert jail.run(*look).out == f"{plain}\nran\n"
    finally:
        for path in (plain, denied):
            Path(path).unlink(missing_ok=True)


def test_the_terminals_of_others_are_not_there(jail: Jail, backend: str) -> None:
    master, slave = os.openpty()
    try:
        assert os.path.exists(os.ttyname(slave))
        os.chown(os.ttyname(slave), jail.user.uid, -1)
        write = f"(: <> {os.ttyname(slave)}) && echo OPENED; ls /dev/pts; echo ran"
        assert jail.outside("sh", "-c", write).out.startswith("OPENED\n")
        assert jail.run("sh", "-c", write).out == ("ran\n" if backend == "landlock" else "ptmx\nran\n")
    finally:
        os.close(master)
        os.close(slave)


TYPE_IT = """
import ctypes, sys
ioctl, request = (int(word, 0) for word in sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True); libc.syscall.restype = ctypes.c_long
for letter in b"typed\\n":
    done = libc.syscall(ioctl, ctypes.c_ulong(0), ctypes.c_ulong(request), ctypes.byref(ctypes.c_char(letter)))
    if done: break
print("result", done, ctypes.get_errno(), flush=True)
"""


def type_at_a_terminal(jail: Jail, *around: str | Path, request: int) -> str:
    """What the program says, and in brackets what its caller then reads at the terminal that they share."""
    program = jail.write(jail.project / "type.py", TYPE_IT)
    words = [*map(str, around), "/usr/bin/python3", "-I", str(program), str(number("ioctl")), hex(request)]
    pid, master = pty.fork()
    if pid == 0:
        users.become(jail.user)()
        os.chdir(jail.project)
        os.execve("/bin/bash", ["bash", "-c", '"$@"; read -r -t 0.5 line; echo "[$line]"', "bash", *words], jail.user.environment)
    text = b""
    while True:
        try:
            text += os.read(master, 4096)
        except OSError:  # the last one there has left
            break
    os.close(master)
    os.waitpid(pid, 0)
    return text.decode(errors="replace")


@pytest.mark.parametrize("request_", [0x5412, 0xDEADBEEF_00005412, 0xFFFFFFFF_00005412, 0x80000000_00005412])
def test_nothing_can_be_typed_into_the_callers_terminal(jail: Jail, request_: int) -> None:
    if Path("/proc/sys/dev/tty/legacy_tiocsti").exists() and Path("/proc/sys/dev/tty/legacy_tiocsti").read_text() != "1\n":
        missing("this kernel lets nobody type into a terminal")
    outside = type_at_a_terminal(jail, request=request_)
    assert "result 0 0" in outside and "[typed]" in outside
    inside = type_at_a_terminal(jail, jail.program, "--quiet", "--", request=request_)
    assert f"result -1 {errno.EPERM}" in inside
    assert "[]" in inside


def test_without_its_filter_nothing_starts(jail: Jail) -> None:
    """A filter that is missing, empty or broken stops the launch: it never runs with none."""
    for content in (None, b"", b"12345", b"\0" * 8 * 5000):
        with make_copy() as copy:
            path = copy / f"lib/agent_sandbox/launcher/seccomp/filters/hpc.{MACHINE}.bpf"
            path.unlink()
            if content is not None:
                path.write_bytes(content)
            inside = Jail(copy=copy, user=jail.user, project=jail.project).run("echo", "ran")
            assert (inside.code, inside.out) == (125, ""), content
            assert "filter" in inside.err


def test_a_filter_that_the_kernel_refuses_stops_the_launch(jail: Jail) -> None:
    with make_copy() as copy:
        path = copy / f"lib/agent_sandbox/launcher/seccomp/filters/hpc.{MACHINE}.bpf"
        path.write_bytes(b"\xff" * 64)
        inside = Jail(copy=copy, user=jail.user, project=jail.project).run("echo", "ran")
        assert inside.out == ""
        assert inside.code == 125


@only("bwrap")
def test_without_bwrap_nothing_starts(jail: Jail) -> None:
    """In a mount namespace where it is gone: no fall-back to no jail."""
    from tests.machines.needs import need_root

    need_root()
    hide = 'for p in /usr/bin/bwrap /usr/local/bin/bwrap; do test -e $p && mount --bind /etc/hostname $p; done; exec "$@"'
    user = jail.user
    words = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        hide,
        "sh",
        "setpriv",
        f"--reuid={user.uid}",
        f"--regid={user.gid}",
        "--clear-groups",
    ]
    done = subprocess.run([*words, str(jail.program), "--", "echo", "ran"], cwd=jail.project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert "bwrap" in done.stderr
    assert shutil.which("bwrap")


@only("bwrap")
@pytest.mark.parametrize("target", ["1", "self"])
def test_the_jails_first_process_cannot_be_used_to_get_out(jail: Jail, target: str) -> None:
    """It is bwrap, in the same jail: tracing it gives neither capabilities nor another root."""
    code = f"""
import ctypes, os
pid = os.getpid() if {target!r} == "self" else 1
print(os.readlink(f"/proc/{{pid}}/root"), os.path.exists("/proc/1/root/home/nobody"))
status = open(f"/proc/{{pid}}/status").read()
print([line.split()[1] for line in status.splitlines() if line.startswith(("CapEff", "CapPrm", "Seccomp:", "NoNewPrivs"))])
"""
    inside = jail.run(*python(code))
    assert inside.out.splitlines()[1] == str(["0" * 16, "0" * 16, "1", "2"])
    assert inside.out.startswith("/ False")
