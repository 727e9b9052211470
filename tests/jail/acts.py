"""What the facts try. This file runs as a program, inside a jail and outside it: acts by name become answers, one line of JSON.

An act that works answers "yes"; one that does not, the name of the error. Each is done in a process of its own, so that one
which is killed for it ends nothing but itself. Nothing of ours is imported.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import grp
import json
import mmap
import os
import pty
import pwd
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

LONGEST = 20  # seconds for one act
PLENTY = 1 << 22
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.shmat.restype = ctypes.c_void_p

CALLS = {
    "x86_64": {"io_uring_setup": 425, "bpf": 321, "add_key": 248, "userfaultfd": 323, "name_to_handle_at": 303, "kcmp": 312,
               "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "process_vm_readv": 310, "mq_open": 240, "ioprio_set": 251,
               "sched_getscheduler": 145, "perf_event_open": 298},
    "aarch64": {"io_uring_setup": 425, "bpf": 280, "add_key": 217, "userfaultfd": 282, "name_to_handle_at": 264, "kcmp": 272,
                "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "process_vm_readv": 270, "mq_open": 180, "ioprio_set": 30,
                "sched_getscheduler": 120, "perf_event_open": 241},
}[os.uname().machine]  # fmt: skip


class Refused(Exception):
    """An act that did not do what it was for, without an error of the kernel's."""


def call(name, *arguments):
    return checked(libc.syscall(CALLS[name], *(one if isinstance(one, bytes) or hasattr(one, "_obj") else ctypes.c_long(one) for one in arguments)))


def checked(result):
    if result in (-1, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "")
    return result


def expect(truth, otherwise):
    if not truth:
        raise Refused(otherwise)


# Files


def read(path):
    with open(path, "rb") as file:
        expect(file.read(), "empty")


def lists(path, name):
    expect(name in os.listdir(path), "not listed")


def sees(path):
    os.stat(path)


def enters(path):
    os.chdir(path)


def runs(path):
    expect(subprocess.run([path], capture_output=True, timeout=LONGEST).returncode == 0, "failed")


def answers_with(code, *names):
    """Every program, found along PATH."""
    answers = {name: subprocess.run([name], capture_output=True, timeout=LONGEST).returncode for name in names}
    expect(set(answers.values()) == {int(code)}, str(answers))


def reads_when_asked(path, chore):
    ask(chore)
    read(path)


def ask(chore):
    """Somebody outside does something: `chore` is the name of a file that asks for it; it is gone when it was done."""
    open(chore, "w").close()
    while os.path.exists(chore):
        time.sleep(0.02)


def reads_link(path):
    os.readlink(path)


def appends(path):
    with open(path, "a") as file:
        file.write("changed\n")


def truncates(path):
    os.truncate(path, 0)


def makes(path):
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def makes_directory(path):
    os.mkdir(path)


def makes_fifo(path):
    os.mkfifo(path)


def makes_link(path):
    os.symlink("/etc", path)


def links(path, name):
    os.link(path, name)


def moves(path, name):
    os.rename(path, name)


def moves_and_back(path, name):
    os.rename(path, name)
    os.rename(name, path)


def makes_and_removes(path):
    makes(path)
    os.unlink(path)


def removes(path):
    os.unlink(path)


def removes_directory(path):
    os.rmdir(path)


def changes_mode(path):
    os.chmod(path, 0o600)


def changes_mode_of_open(path):
    with open(path, "rb") as file:
        os.fchmod(file.fileno(), 0o640)


def changes_owner(path):
    os.chown(path, os.getuid(), os.getgid())


def changes_times(path):
    os.utime(path, (1, 1))


def changes_times_of_open(path):
    with open(path, "rb") as file:
        os.utime(file.fileno(), (2, 2))


def sets_attribute(path):
    os.setxattr(path, "user.test", b"x")


def sets_attribute_of_open(path):
    with open(path, "rb") as file:
        os.setxattr(file.fileno(), "user.other", b"x")


def sets_flags(path):
    """chattr +d: works on a file that is open for reading."""
    get_flags, set_flags, no_dump = 0x80086601, 0x40086602, 0x40
    with open(path, "rb") as file:
        flags = struct.unpack("l", fcntl.ioctl(file, get_flags, struct.pack("l", 0)))[0]
        fcntl.ioctl(file, set_flags, struct.pack("l", flags | no_dump))


def opens_for_both(path):
    os.close(os.open(path, os.O_RDWR))


def makes_temporary():
    """The name is the answer: somebody looks for it afterwards."""
    handle, path = tempfile.mkstemp()
    os.write(handle, b"x")
    return path


# Environment


def has_variable(name, value):
    expect(os.environ.get(name) == value, "unset" if name not in os.environ else "other")


def finds_in_processes(value):
    """In the environment of any process that lets us look."""
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if value.encode() in file.read():
                    return
        except OSError:
            pass
    raise Refused("in none")


# Processes


def signals(pid):
    os.kill(int(pid), 0)


def signals_by_file(pid):
    call("pidfd_send_signal", call("pidfd_open", int(pid), 0), 0, 0, 0)


def traces(pid):
    seize, detach = 0x4206, 17
    checked(libc.ptrace(seize, int(pid), None, None))
    libc.ptrace(detach, int(pid), None, None)


def reads_memory(pid):
    with open(f"/proc/{pid}/maps") as maps:
        start = int(maps.readline().split("-")[0], 16)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(start)
        expect(memory.read(4), "empty")


def takes_open_file(pid):
    call("pidfd_getfd", call("pidfd_open", int(pid), 0), 0, 0)


def lowers_priority(pid):
    os.setpriority(os.PRIO_PROCESS, int(pid), os.getpriority(os.PRIO_PROCESS, int(pid)) + 1)


def changes_limit(pid):
    hard = resource.prlimit(int(pid), resource.RLIMIT_CORE)[1]
    resource.prlimit(int(pid), resource.RLIMIT_CORE, (0, hard))


def changes_processors(pid):
    os.sched_setaffinity(int(pid), os.sched_getaffinity(int(pid)))


def ends_own_child():
    child = subprocess.Popen(["/bin/sleep", "60"])
    child.terminate()
    expect(child.wait(LONGEST) == -signal.SIGTERM, "lives")


def traces_own_child():
    traces(subprocess.Popen(["/bin/sleep", "1"]).pid)


# Shared memory


def attaches(key):
    """System V shared memory."""
    number = checked(libc.shmget(int(key), 0, 0))
    expect(ctypes.string_at(checked(libc.shmat(number, None, 0o10000)), 7) == b"hunter2", "other")


def attaches_number(number):
    """Without its key, as `ipcs` lists it."""
    expect(ctypes.string_at(checked(libc.shmat(int(number), None, 0o10000)), 7) == b"hunter2", "other")


def finds_queue(key):
    checked(libc.msgget(int(key), 0))


def finds_semaphores(key):
    checked(libc.semget(int(key), 0, 0))


def opens_posix_queue(name):
    call("mq_open", name.encode(), os.O_RDWR, 0, 0)


def makes_shared_memory():
    from multiprocessing import shared_memory

    memory = shared_memory.SharedMemory(create=True, size=4096)
    memory.close()
    memory.unlink()


# Users


def knows_user(name):
    try:
        pwd.getpwnam(name)
    except KeyError:
        raise Refused("unknown")


def knows_user_when_asked(name, chore):
    ask(chore)
    knows_user(name)


def knows_number(number):
    try:
        pwd.getpwuid(int(number))
    except KeyError:
        raise Refused("unknown")


def knows_group(name):
    try:
        grp.getgrnam(name)
    except KeyError:
        raise Refused("unknown")


def knows_member(group, name):
    expect(name in grp.getgrnam(group).gr_mem, "no member")


# Terminals


def has_terminal():
    expect(os.isatty(0), "none")
    with open("/dev/tty", "w") as terminal:
        expect(terminal.isatty(), "none")


def makes_terminal():
    ours, theirs = pty.openpty()
    os.write(theirs, b"x")
    expect(os.read(ours, 1) == b"x", "silent")


def types_ahead():
    """TIOCSTI on the terminal that we were started from."""
    fcntl.ioctl(0, 0x5412, b"\n")


def types_ahead_with_high_bits():
    checked(libc.syscall(16 if os.uname().machine == "x86_64" else 29, 0, ctypes.c_ulong(0x7_0000_5412), b"\n"))


def opens_terminal(path):
    os.close(os.open(path, os.O_RDWR | os.O_NOCTTY))


# System calls


def has_new_privileges():
    with open("/proc/self/status") as file:
        expect("NoNewPrivs:\t0" in file.read(), "no_new_privs")


def becomes_root(program):
    """`program` is `id`, owned by root and setuid."""
    found = subprocess.run([program, "-u"], capture_output=True, text=True, timeout=LONGEST).stdout.strip()
    expect(found == "0", f"user {found}" if found else "failed")


def makes_ring():
    call("io_uring_setup", 1, ctypes.byref((ctypes.c_char * 120)()))


def adds_key():
    user_keyring = -4
    call("add_key", b"user", b"agent-sandbox-test", b"x", 1, user_keyring)


def makes_user_namespace():
    new_user = 0x10000000
    checked(libc.unshare(new_user))


def mounts_in_own_namespace():
    new_user, new_mounts = 0x10000000, 0x20000
    checked(libc.unshare(new_user | new_mounts))
    checked(libc.mount(b"none", b"/mnt", b"tmpfs", 0, None))


def names_file_by_handle(path):
    handle = (ctypes.c_char * 136)()
    struct.pack_into("I", handle, 0, 128)
    call("name_to_handle_at", -100, path.encode(), ctypes.byref(handle), ctypes.byref(ctypes.c_int()), 0)


def compares_kernel_pointers():
    call("kcmp", os.getpid(), os.getpid(), 0, 0, 0)


def takes_old_personality():
    read_implies_exec = 0x0400000
    checked(libc.personality(read_implies_exec))


def asks_for_scheduler():
    """Harmless; the settings deny it."""
    call("sched_getscheduler", 0)


# Sockets


def greets(server):
    server.settimeout(5)
    expect(server.recv(5) == b"hello", "silent")


def connects(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path.replace("@", "\0"))
        greets(client)


def sends(path):
    """A datagram, as to the system's log."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", path.replace("@", "\0"))


def connects_in_order(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(path)


def talks_to_itself(path):
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path.replace("@", "\0"))
        server.listen()
        client.connect(path.replace("@", "\0"))
        server.accept()[0].sendall(b"hello")
        greets(client)


def makes_pair():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        one.send(b"x")
        expect(other.recv(1) == b"x", "silent")


def dials(host, port, protocol="0"):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, int(protocol)) as client:
        client.settimeout(5)
        client.connect((host, int(port)))
        greets(client)


def serves_itself():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5) as client:
        server.accept()[0].sendall(b"x")
        expect(client.recv(1) == b"x", "silent")


def asks_the_proxy(host, port):
    """Where it refuses, it says so at once, and why."""
    proxy = os.environ["http_proxy"].removeprefix("http://").split(":")
    with socket.create_connection((proxy[0], int(proxy[1])), 5) as client:
        client.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        said = client.recv(4096)
    expect(b" 403 " in said and b"floor loopback" in said, repr(said[:100]))


def dials_fast(host, port):
    """TCP fast open: sendto() connects."""
    with socket.socket() as client:
        client.sendto(b"x", socket.MSG_FASTOPEN, (host, int(port)))
        greets(client)


def asks_by_udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        client.sendto(b"x", (host, int(port)))
        greets(client)


def opens_socket(family, kind, protocol):
    socket.socket(int(family), int(kind), int(protocol)).close()


# Limits


def takes_memory(size):
    mmap.mmap(-1, int(size)).close()


def writes_much(path, size):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open(path, "wb", buffering=0) as file:
        expect(file.write(bytes(int(size))) == int(size), "cut")


def opens_files(number):
    files = [open("/dev/null") for _ in range(int(number))]
    expect(len(files) == int(number), "fewer")


def starts_processes(number):
    started = []
    try:
        for _ in range(int(number)):
            started.append(subprocess.Popen(["/bin/sleep", "60"]))
    finally:
        for child in started:
            child.kill()
            child.wait()


def works_for(seconds):
    end = time.process_time() + float(seconds)
    while time.process_time() < end:
        pass


def may_dump_core():
    least = 1  # with 0 the kernel would still hand a core to a program outside
    expect(not 0 <= resource.getrlimit(resource.RLIMIT_CORE)[1] <= least, "no room")


# The project


def commits(path):
    git = ["git", "-C", path, "-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"]
    subprocess.run([*git, "commit", "--allow-empty", "-qm", "x"], check=True, capture_output=True, timeout=LONGEST)


# How an act becomes an answer


def answer(act, *arguments):
    try:
        return f"yes {globals()[act](*arguments) or ''}".rstrip()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    except (Refused, subprocess.SubprocessError) as error:
        return str(error)
    except Exception as error:  # whatever it is, this process must end here
        return f"broken: {error!r}"


def apart(act):
    """In a process of its own."""
    ours, theirs = os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        return errno.errorcode[error.errno]
    if child == 0:
        signal.alarm(LONGEST)
        os.write(theirs, answer(*act).encode())
        os._exit(0)
    os.close(theirs)
    with open(ours) as pipe:
        found = pipe.read()
    status = os.waitpid(child, 0)[1]
    return found or signal.Signals(os.WTERMSIG(status)).name


if __name__ == "__main__":
    print(json.dumps([apart(act) for act in json.loads(sys.argv[1])]), flush=True)
