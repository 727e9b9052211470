"""The supervisor over time: it leaks nothing, is not ended by anything it is sent, keeps up, and its death opens nothing."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from agent_sandbox.launcher.supervisor.supervisor import Supervisor
from tests.unit.launcher.supervisor.box import error_of, raw
from tests.unit.launcher.supervisor.conftest import Ground, Server

CALLS = 20_000


def numbers_and_memory(_: Supervisor) -> tuple[int, int]:
    with open("/proc/self/statm") as file:
        return len(os.listdir("/proc/self/fd")), int(file.read().split()[1]) * 4096


def every_kind(ground: Ground) -> list[Callable[[], object]]:
    """Calls that succeed, calls that are refused, calls that make no sense."""
    inside, outside = os.fsencode(ground.inside / "file"), os.fsencode(ground.outside / "file")
    open_outside = os.open(ground.outside / "file", os.O_RDONLY)

    def connect(name: str) -> None:
        with socket.socket(socket.AF_UNIX) as client:
            error_of(lambda: client.connect(name))

    return [
        lambda: connect(str(ground.outside / "granted")), lambda: connect(str(ground.outside / "file")), lambda: connect("\0none"),
        lambda: raw("chmod", inside, 0o640), lambda: raw("chmod", outside, 0o640), lambda: raw("chmod", 8, 0), lambda: raw("fchmod", open_outside, 0),
        lambda: raw("fchmod", 999, 0), lambda: raw("setxattr", inside, b"user.a", b"x" * 99, 99, 0),
        lambda: raw("setxattr", inside, b"user.a", 8, 99, 0),
        lambda: raw("utimensat", open_outside, b"../x", None, 0), lambda: raw("inotify_add_watch", 999, inside, 4),
        lambda: raw("socketpair", 1, 2, 0, 8), lambda: [os.close(end.detach()) for end in socket.socketpair(type=socket.SOCK_DGRAM)],  # type: ignore[func-returns-value]
        lambda: [os.close(end) for end in os.openpty()],  # type: ignore[func-returns-value]
        lambda: raw("ioctl", open_outside, 0x5441, 2),
    ]  # fmt: skip


def test_twenty_thousand_calls_leave_nothing_behind(ground: Ground, server: Server) -> None:
    server.listen(str(ground.outside / "granted"))

    def act(count: int) -> int:
        kinds = every_kind(ground)
        for number in range(count):
            kinds[number % len(kinds)]()
        return count

    watched = replace(ground.box, watcher=numbers_and_memory)
    done, (before, after) = watched.look(lambda: act(CALLS))
    print("descriptors and bytes, before and after", before, after)
    assert done == CALLS
    assert after[0] == before[0]
    assert after[1] - before[1] < 2 << 20  # modules that are imported when they are first needed


def test_callers_that_die_in_the_middle_are_no_error(ground: Ground, server: Server) -> None:
    server.listen(str(ground.outside / "granted"))

    def act() -> int:
        for _ in range(30):
            child = os.fork()
            if child == 0:
                for kind in every_kind(ground) * 100:
                    kind()
                os._exit(0)
            time.sleep(0.003)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return raw("chmod", os.fsencode(ground.inside / "file"), 0o600)

    watched = replace(ground.box, watcher=numbers_and_memory)
    result, (before, after) = watched.look(act)
    assert (result, after[0]) == (0, before[0])


def test_a_dead_supervisor_refuses_at_once(ground: Ground, server: Server) -> None:
    path = str(ground.outside / "granted")
    server.listen(path)

    def act() -> list[object]:
        with socket.socket(socket.AF_UNIX) as client:
            works = error_of(lambda: client.connect(path))
        os.kill(os.getppid(), signal.SIGKILL)
        while os.getppid() == supervisor:
            time.sleep(0.001)
        begun = time.monotonic()
        signal.alarm(10)  # we end rather than hang
        with socket.socket(socket.AF_UNIX) as client:
            results = [error_of(lambda: client.connect(path)), raw("chmod", os.fsencode(ground.inside / "file"), 0o600)]
        return [works, *results, time.monotonic() - begun < 5]

    told, tell = os.pipe()
    supervisor = -1

    def tells() -> None:
        nonlocal supervisor
        supervisor = os.getppid()
        os.write(tell, repr(act()).encode())

    try:
        ground.box.run(tells)
    except AssertionError:
        pass  # the supervisor, killed, cannot say anything
    os.close(tell)
    with open(told, "rb") as file:
        assert file.read().decode() == repr([0, errno.ENOSYS, errno.ENOSYS, True])


def test_a_call_that_nobody_expects_is_refused(ground: Ground) -> None:
    unexpected = replace(ground.box, also=("getppid",))
    assert (unexpected.outside(lambda: raw("getppid")), unexpected.run(lambda: raw("getppid"))) == (0, errno.EPERM)


def test_a_supervisor_whose_callers_have_ended_has_nothing_to_do(ground: Ground) -> None:
    def turns(supervisor: Supervisor) -> int:
        """How often it is woken before it sleeps for good."""
        time.sleep(0.1)
        count, poll = 0, select.poll()
        poll.register(supervisor.fileno(), select.POLLIN)
        while poll.poll(50) and count < 100:
            supervisor.answer()
            count += 1
        return count

    assert replace(ground.box, watcher=turns).look(lambda: 0)[1][1] <= 1


def per_call(act: Callable[[], object], count: int = 3000) -> float:
    act()
    begun = time.perf_counter()
    for _ in range(count):
        act()
    return (time.perf_counter() - begun) / count * 1e6


def test_what_a_call_costs(ground: Ground, server: Server) -> None:
    """Printed (-s); the bounds here only tell minutes from microseconds."""
    path = str(ground.outside / "granted")
    server.listen(path)

    def connect() -> None:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)

    def costs() -> dict[str, float]:
        file = ground.inside / "file"
        kinds = {"connect": connect, "chmod": lambda: os.chmod(file, 0o600), "utime": lambda: os.utime(file)}
        return {name: round(per_call(act), 1) for name, act in kinds.items()}

    outside, inside = ground.box.outside(costs), ground.box.run(costs)
    print("µs a call outside", outside, "inside", inside)
    assert all(cost < 5000 for cost in inside.values())


def test_eight_processes_connect_at_the_same_time(ground: Ground, server: Server) -> None:
    path, each = str(ground.outside / "granted"), 500
    server.listen(path)

    def connects() -> int:
        done = 0
        for _ in range(each):
            with socket.socket(socket.AF_UNIX) as client:
                done += error_of(lambda c=client: c.connect(path)) == 0  # type: ignore[misc]
        return done

    def act() -> tuple[list[int], float]:
        begun = time.perf_counter()
        children = []
        for _ in range(8):
            child = os.fork()
            if child == 0:
                os._exit(0 if connects() == each else 1)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        return codes, 8 * each / (time.perf_counter() - begun)

    codes, rate = ground.box.run(act)
    print(f"{rate:.0f} connects a second")
    assert codes == [0] * 8
    assert rate > 200


def test_threads_call_at_the_same_time(ground: Ground) -> None:
    def act() -> list[int]:
        results: list[int] = []

        def change(number: int) -> None:
            path = os.fsencode(ground.inside / f"file{number}")
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            results.extend(raw("chmod", path, mode) or os.stat(path).st_mode & 0o777 ^ mode for mode in (0o600, 0o640) * 50)

        threads = [threading.Thread(target=change, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    assert ground.box.run(act) == [0] * 800
