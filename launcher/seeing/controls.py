"""Things outside that a jail must not reach, each reached from here first. Starts a process, listens on loopback, makes a directory."""

from __future__ import annotations

import os
import signal
import socket
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

PLACES = ("/var/tmp", "/tmp")  # our own stage covers /tmp: what is not reached there need not be the backend's work


class Controls:
    """The arguments of the measurement inside, in its order; all of it gone at the end."""

    def __enter__(self) -> Controls:
        place = next((path for path in PLACES if os.access(path, os.W_OK | os.X_OK)), PLACES[-1])
        self._directory = tempfile.TemporaryDirectory(prefix="agent-sandbox-doctor-", dir=place)
        self.empty = f"{self._directory.name}/project"
        outside = f"{self._directory.name}/outside"
        os.mkdir(self.empty)
        os.mkdir(outside)
        path, abstract = f"{outside}/socket", f"agent-sandbox-doctor-{os.urandom(8).hex()}"
        self._listeners = [
            _listen(socket.AF_UNIX, path), _listen(socket.AF_UNIX, "\0" + abstract), _listen(socket.AF_INET, ("127.0.0.1", 0)),
        ]  # fmt: skip
        self._process = _start_process()
        port = self._listeners[2].getsockname()[1]
        self.arguments = (str(self._process), path, abstract, str(port), outside)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        for one in self._listeners:
            one.close()
        self._directory.cleanup()


def _listen(family: int, address: str | tuple[str, int]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(8)
    return listener


def _start_process() -> int:
    """It only waits to be ended: by us, or together with us."""
    told, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(held)
            os.read(told, 1)
        finally:
            os._exit(0)
    os.close(told)
    return pid
