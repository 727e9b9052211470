"""The listener's notifications become answers: each call is done here, or refused. None is ever left to the kernel to continue.

One thread, which never blocks for long: `fileno` can be read when there is something to do, `answer` does one such thing.
"""

from __future__ import annotations

import errno
import select

from agent_sandbox.launcher.seccomp.filters import architecture_of
from agent_sandbox.launcher.seccomp.numbers import read_numbers
from agent_sandbox.launcher.supervisor import attributes, gifts, kernel, telling
from agent_sandbox.launcher.supervisor.allowed import Reach
from agent_sandbox.launcher.supervisor.call import Call, Gone
from agent_sandbox.launcher.supervisor.connect import Connector, Waits
from agent_sandbox.launcher.supervisor.waiting import Waiting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_sandbox.launcher.supervisor.allowed import Allowed

    Handler = Callable[[Call, Reach], int]


class Supervisor:
    def __init__(self, listener: int, machine: str, allowed: Allowed) -> None:
        self._listener = listener
        self._architecture = architecture_of(machine)
        self._reach = Reach(allowed)
        self._call = Call(listener)
        self._poll = select.epoll()
        self._poll.register(listener, select.EPOLLIN)
        self._waiting = Waiting(listener, self._poll)
        self._handlers = _by_number(machine, Connector(allowed, self._waiting))
        kernel.wake_in_step(listener)

    def fileno(self) -> int:
        return self._poll.fileno()

    def answer(self) -> None:
        """One thing that there is to do. Never raises: a caller must not be able to end us."""
        try:
            for descriptor, events in self._poll.poll(0, 1):
                self._serve(descriptor, events)
        except Exception:
            pass

    def _serve(self, descriptor: int, events: int) -> None:
        if descriptor == self._waiting.timer:
            self._waiting.ring()
        elif descriptor != self._listener:
            self._waiting.ready(descriptor)
        elif events & select.EPOLLIN:
            self._answer_call()
        else:
            self._poll.unregister(descriptor)  # nobody is left who could call

    def _answer_call(self) -> None:
        call = self._call
        try:
            call.receive()
            call.answer(self._handler()(call, self._reach))
        except (Gone, Waits):
            pass
        except OSError as error:
            call.answer(0, error.errno or errno.EPERM)
        except Exception:
            call.answer(0, errno.EPERM)
        finally:
            call.release()

    def _handler(self) -> Handler:
        if self._call.architecture != self._architecture:
            raise OSError(errno.ENOSYS, "")
        if self._call.tid == 0:  # a process that we cannot see
            raise OSError(errno.EPERM, "")
        return self._handlers.get(self._call.number, _refuse)


def _refuse(call: Call, reach: Reach) -> int:
    raise OSError(errno.EPERM, "")


def _by_number(machine: str, connector: Connector) -> dict[int, Handler]:
    numbers = read_numbers(machine)
    handlers: dict[str, Handler] = {"connect": connector.connect, **attributes.HANDLERS, **gifts.HANDLERS, **telling.HANDLERS}
    return {numbers[name]: handler for name, handler in handlers.items() if name in numbers}
