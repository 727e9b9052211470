"""Names become addresses, off the loop: a few threads ask the system's resolver, and a pipe tells the loop that there are answers.

Questions are bounded; who asks for a name that is being looked up already shares the answer; an answer that is late is dropped.
Threads and not processes: a process would hold copies of the connections, and outlive us.
"""

from __future__ import annotations

import _thread
import os
import time
from _queue import SimpleQueue
from _socket import AF_INET, AF_INET6, SOCK_STREAM, getaddrinfo
from collections import deque

from agent_sandbox.launcher.poller import READ
from agent_sandbox.launcher.proxy.target import as_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.poller import Poller
    from agent_sandbox.launcher.proxy.limits import Limits

    Heard = Callable[[tuple[str, ...], str], None]  # addresses, or why there are none

STACK = 256 << 10
MOST = 32  # addresses of one name
HOSTS = "/etc/hosts"


def look_up(host: str) -> tuple[str, ...]:
    """The name that was judged and no other, whence the dot: where the machine has a search list, `wiki` would be the site's own
    `wiki.example.org`, whatever is said of that. The file of hosts knows no such dot."""
    texts = addresses_in(HOSTS, host) or [str(address[0]) for *_, address in _ask(f"{host}.")]
    return tuple(dict.fromkeys(found for text in texts if (found := as_address(text))))[:MOST]


def _ask(name: str) -> list[tuple[int, int, int, str, tuple[object, ...]]]:
    return [one for one in getaddrinfo(name, None, 0, SOCK_STREAM) if one[0] in (AF_INET, AF_INET6)]


def addresses_in(file: str, host: str) -> list[str]:
    """Of a name in the machine's own file of hosts."""
    try:
        with open(file, encoding="latin-1") as lines:
            words = [line.partition("#")[0].lower().split() for line in lines]
    except OSError:
        return []
    return [address for address, *names in filter(None, words) if host in names]


class Resolver:
    def __init__(self, poller: Poller, limits: Limits, look_up: Callable[[str], tuple[str, ...]] = look_up) -> None:
        self._poller, self._limits, self._look_up = poller, limits, look_up
        self._questions: SimpleQueue[str] = SimpleQueue()
        self._answers: deque[tuple[str, tuple[str, ...], str]] = deque()
        self._asked: dict[str, tuple[float, list[Heard]]] = {}  # oldest first
        self._late: set[str] = set()  # given up, and still in a thread
        self._threads = 0
        self._bell, self._ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        poller.watch(self._bell, READ, self._on_bell)

    def ask(self, host: str, heard: Heard) -> None:
        if known := self._asked.get(host):
            known[1].append(heard)
            return
        busy = len(self._asked) + len(self._late)
        if busy >= self._limits.questions or host in self._late:
            heard((), "too many names are being looked up")
            return
        self._asked[host] = (time.monotonic(), [heard])
        if busy >= self._threads < self._limits.resolvers:
            self._start()
        if self._threads:
            self._questions.put(host)
        else:
            del self._asked[host]
            heard((), "no thread could be started to look it up")

    def forget(self, host: str, heard: Heard) -> None:
        known = self._asked.get(host)
        if known and heard in known[1]:
            known[1].remove(heard)

    def tick(self, now: float) -> None:
        """Give up what takes too long: its thread comes back when the system's resolver does."""
        while self._asked:
            host, (since, heards) = next(iter(self._asked.items()))
            if now - since < self._limits.resolve_seconds:
                break
            del self._asked[host]
            self._late.add(host)
            for heard in heards:
                heard((), "looking up the name took too long")

    def _start(self) -> None:
        """Where the user may have no more threads, those that are there do."""
        before = _thread.stack_size(STACK)
        try:
            _thread.start_new_thread(self._work, ())
            self._threads += 1
        except RuntimeError:
            pass
        finally:
            _thread.stack_size(before)

    def _work(self) -> None:
        while True:
            host = self._questions.get()
            try:
                answer = (host, self._look_up(host), "")
            except (OSError, UnicodeError) as error:
                answer = (host, (), getattr(error, "strerror", None) or str(error))
            self._answers.append(answer)
            try:
                os.write(self._ring, b"x")
            except BlockingIOError:  # it rings already
                pass
            except OSError:  # closed
                return

    def _on_bell(self, events: int) -> None:
        os.read(self._bell, 4096)
        while self._answers:
            host, addresses, problem = self._answers.popleft()
            self._late.discard(host)
            for heard in self._asked.pop(host, (0.0, []))[1]:
                heard(addresses, problem or ("" if addresses else "the name has no address"))

    def close(self) -> None:
        self._poller.drop(self._bell)
        os.close(self._bell)
        os.close(self._ring)
