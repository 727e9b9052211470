"""Places for the supervisor's tests: `inside` is writable, `shown` readable, `outside` neither; sockets listen everywhere."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.machines.needs import missing
from tests.machines.users import TestUser
from tests.unit.launcher.supervisor.box import Box


@dataclass(frozen=True, kw_only=True)
class Ground:
    top: Path
    inside: Path
    shown: Path
    outside: Path
    box: Box


@pytest.fixture
def ground(account: TestUser) -> Iterator[Ground]:
    if account.uid == 0:
        missing("an ordinary user: root can look into every process")
    top = Path(tempfile.mkdtemp(prefix="sv", dir="/var/tmp")).resolve()
    places = {name: top / name for name in ("inside", "shown", "outside")}
    for path in (top, *places.values()):
        path.mkdir(exist_ok=True)
        os.chown(path, account.uid, account.gid)
    for name, path in places.items():
        (path / "file").write_text(name)
        (path / "file").chmod(0o640)
        os.chown(path / "file", account.uid, account.gid)
    box = Box(user=account, writable=(places["inside"],), readable=(places["shown"],), sockets=(places["outside"] / "granted",))
    yield Ground(top=top, box=box, **places)
    shutil.rmtree(top, ignore_errors=True)


class Server:
    """Sockets that say their own name to whoever connects."""

    def __init__(self) -> None:
        self._open: list[socket.socket] = []
        self.over = False

    def listen(self, address: str | bytes | tuple[str, int], kind: int = socket.SOCK_STREAM) -> socket.socket:
        family = socket.AF_UNIX if not isinstance(address, tuple) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        server = socket.socket(family, kind)
        server.bind(address)
        if isinstance(address, str) and not address.startswith("\0"):
            os.chmod(address, 0o777)
        server.listen(1024)
        self._open.append(server)
        threading.Thread(target=self._serve, args=(server, repr(address).encode()), daemon=True).start()
        return server

    def _serve(self, server: socket.socket, name: bytes) -> None:
        while not self.over:
            try:
                peer, _ = server.accept()
                peer.sendall(name)
                peer.close()
            except OSError:
                continue

    def close(self) -> None:
        self.over = True
        for server in self._open:
            try:
                server.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            server.close()


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    yield one
    one.close()
