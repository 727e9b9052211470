"""What one process sees and can do, as lines of `name: value`. Run inside a jail by `doctor`; imports nothing of ours.

Arguments: the number of a process outside, a socket's path, an abstract name, a port, a directory outside, then paths that are
hidden. Each was reached, written or read by the same user outside a moment before.
"""

from __future__ import annotations

import os
import socket
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STATUS = ("CapEff", "CapPrm", "CapInh", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters")
NAMESPACES = ("user", "mnt", "pid", "ipc", "uts", "net")
MOST_FILES = 256


def main(pid: str, path: str, abstract: str, port: str, directory: str, *hidden: str) -> None:
    seen = {
        **read_status(), **{kind: read_namespace(kind) for kind in NAMESPACES},
        "signals": can(lambda: os.kill(int(pid), 0)), "processes": can(lambda: os.close(os.open(f"/proc/{pid}/cmdline", os.O_RDONLY))),
        "unix-sockets": can(lambda: connect(socket.AF_UNIX, path)), "abstract-sockets": can(lambda: connect(socket.AF_UNIX, "\0" + abstract)),
        "network": can(lambda: connect(socket.AF_INET, ("127.0.0.1", int(port)))),
        "proxy": ask_proxy(port), "outside": can(lambda: write(directory)), "usr": can(lambda: write("/usr")),
        "files": sum(is_open(number) for number in range(3, MOST_FILES)), "shown": sum(is_shown(one) for one in hidden),
        "canary": os.environ.get("DOCTOR_CANARY_TOKEN", "gone"),
    }  # fmt: skip
    for name, value in seen.items():
        print(f"{name}: {value}")


def can(act: Callable[[], object]) -> str:
    try:
        act()
    except OSError as error:
        return error.strerror or str(error)
    return "yes"


def read_status() -> dict[str, str]:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            lines = [line.partition(":") for line in file]
    except OSError:  # /proc may be closed
        return {}
    return {name: value.strip() for name, _, value in lines if name in STATUS}


def read_namespace(kind: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return ""


def connect(family: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as one:
        one.settimeout(2)
        one.connect(address)


def ask_proxy(port: str) -> str:
    """For a way to the service: the code of its answer, or what went wrong; "" = nobody tells of a proxy."""
    host, _, number = os.environ.get("http_proxy", "").removeprefix("http://").rpartition(":")
    if not host or not number.isdecimal():
        return ""
    try:
        with socket.create_connection((host, int(number)), 5) as one:
            one.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            return one.recv(100).decode("ascii", "replace")[9:12]
    except OSError as error:
        return error.strerror or str(error)


def write(directory: str) -> None:
    path = f"{directory}/agent-sandbox-doctor-{os.getpid()}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def is_shown(path: str) -> bool:
    """Opened: asking for permission is answered by the file's mode alone. A device in its place is a mask."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    mode = os.fstat(handle).st_mode
    os.close(handle)
    return not stat.S_ISCHR(mode)


if __name__ == "__main__":
    main(*sys.argv[1:])
